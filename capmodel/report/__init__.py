"""Report: what a person reads, first the answer, then its interval, what binds, how far to trust."""
