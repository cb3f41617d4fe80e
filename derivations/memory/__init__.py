"""Bytes, blocks and what fits."""
