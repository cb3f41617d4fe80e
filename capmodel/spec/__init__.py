"""Spec: what is given, as frozen and checked descriptions."""
