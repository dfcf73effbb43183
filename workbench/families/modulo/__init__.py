"""Additive noise modulo a finite query domain."""
