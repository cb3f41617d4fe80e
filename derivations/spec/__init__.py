"""Laws of random quantities."""
