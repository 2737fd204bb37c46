"""The learned aligner: finds what a comment is about when it quotes nothing, with small trained models."""
