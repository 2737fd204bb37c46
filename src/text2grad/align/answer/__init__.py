"""A completion as comments speak of it: its parts, things and statements, and what may be cut or put in."""
