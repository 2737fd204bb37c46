"""Critics: what is right and wrong with a completion, as written feedback with spans."""
