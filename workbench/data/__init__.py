"""Readers of the data and options that users give."""
