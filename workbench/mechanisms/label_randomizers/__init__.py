"""Mechanisms that publish a label: RR-on-Bins, any channel of labels, lattice noise."""
