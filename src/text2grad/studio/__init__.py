"""The studio: see answers, say what should change, and teach the model on the spot."""
