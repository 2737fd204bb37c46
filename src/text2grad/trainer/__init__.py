"""Change the model there, and only there."""
