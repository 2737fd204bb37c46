"""The command line: one module per command, shared options, and the terminal display."""
