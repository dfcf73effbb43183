"""Publish statistics of a table: sensitivities, noise, certificates, errors and guarantees."""
