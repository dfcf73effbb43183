"""Benchmarks: ratios measured in one run (`make bench`), never timed tests."""
