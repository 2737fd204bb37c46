"""Whether words praise or blame: a small trained model."""
