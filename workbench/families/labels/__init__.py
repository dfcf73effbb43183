"""Label randomizers: RR-on-Bins, any channel, the unbiased optimum."""
