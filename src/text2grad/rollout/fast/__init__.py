"""Faster decoding with the same results, behind the setting `fast_decoding`.

Everywhere: grouped attention for single tokens (attention.py) and prepared LoRA layers (modules.py). On a GPU also CUDA
graphs (decoders.py) and fused norms (modules.py). Models that do not support one of these decode without it.
"""
