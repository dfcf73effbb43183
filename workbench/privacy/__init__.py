"""Exact privacy: audits, certificates, accounting and sampling, in rational and ball arithmetic."""
