"""Comments by people: CSV, JSON lines, Label Studio, Argilla."""
