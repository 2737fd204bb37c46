"""The free-form aligner: comments that quote nothing, by small learned models."""
