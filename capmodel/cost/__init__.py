"""Cost: what an hour, a token, a turn and a session cost, and what the market pays for them."""
