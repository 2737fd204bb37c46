"""Distributed training: launch environment, processes, learner with its micro-batches, FSDP2."""
