"""What comments on programs are about."""
