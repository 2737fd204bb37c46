"""Which part of the completion a clause is about."""
