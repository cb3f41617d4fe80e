"""The planner page: sliders over the same answers, on this machine only."""
