"""Report: the answer, its interval, what binds and how far to trust it."""
