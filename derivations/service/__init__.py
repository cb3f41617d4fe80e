"""Seconds of a step, and what bounds them."""
