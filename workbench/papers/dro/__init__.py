"""Additive noise by distributionally robust optimization: the tables of a fifth paper."""
