"""Policy optimisation from token rewards."""
