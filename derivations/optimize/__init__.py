"""What the optimiser relies on."""
