"""What a comment says should have been written."""
