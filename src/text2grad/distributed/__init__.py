"""Several processes: launch environment, work sharing, FSDP2."""
