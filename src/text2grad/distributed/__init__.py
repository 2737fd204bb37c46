"""Distributed training: launch environment, processes, micro-batches, FSDP2."""
