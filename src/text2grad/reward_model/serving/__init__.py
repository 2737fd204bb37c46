"""HTTP server of the reward model."""
