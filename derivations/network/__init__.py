"""Where sessions settle: queue and cache together."""
