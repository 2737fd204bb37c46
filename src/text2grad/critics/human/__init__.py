"""Comments by people, from CSV, JSON lines, Label Studio and Argilla."""
