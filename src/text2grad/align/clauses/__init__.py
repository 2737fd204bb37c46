"""What a comment says: its clauses, their stance, and what they say is missing."""
