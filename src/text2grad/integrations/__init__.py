"""Critics, alignment and credit inside other people's trainers."""
