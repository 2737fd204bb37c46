"""Training data with known faults: faithful texts, corrupted by rule, with the critique and the correction."""
