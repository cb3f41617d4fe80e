"""What a cache still holds when a session returns."""
