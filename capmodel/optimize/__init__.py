"""Optimize: the cheapest plan within the SLOs, and why no other is cheaper."""
