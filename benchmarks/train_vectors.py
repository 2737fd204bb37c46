"""Word vectors for reading comments: the default model's input embeddings of common words, in 48 dimensions.

The words are the most frequent ones of the public training sets and of the comments in `comments_train`. The vectors
are the principal components of the embeddings, scaled to the range of a byte; SmolLM2's licence (Apache-2.0) allows it.
Writes src/text2grad/text/weights/vectors.safetensors.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from harness import ROOT, data_folder
from safetensors.numpy import save_file

from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.text.vectors import DIMENSIONS

NUM_WORDS = 9_000
OUR_WEIGHT = 5  # a word of our own comments counts as often as this in public texts
PUBLIC = (
    "defacto/train.jsonl.gz",
    "scitldr_a/train.jsonl.gz",
    "mbpp/mbpp.jsonl.gz",
    "ilf_code/surge_annotations.jsonl.gz",
)
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def main() -> None:
    words = common_words()
    tokenizer = load_tokenizer(DEFAULT_MODEL)
    embeddings = load_model(DEFAULT_MODEL, torch.float32).get_input_embeddings().weight.detach().numpy()
    rows = np.stack([embed(word, tokenizer, embeddings) for word in words])
    rows -= rows.mean(0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    left, scales, _ = np.linalg.svd(rows, full_matrices=False)
    vectors = left[:, :DIMENSIONS] * np.sqrt(scales[:DIMENSIONS])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rounded = np.round(vectors * 127 / np.abs(vectors).max()).astype(np.int8)
    spelled = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    path = ROOT / "src" / "text2grad" / "text" / "weights" / "vectors.safetensors"
    save_file({"words": spelled, "vectors": rounded}, path)
    print(f"{len(words)} words, {path.stat().st_size / 1e3:.0f} kB in {path}")


def common_words() -> list[str]:
    counts: Counter[str] = Counter()
    for name in PUBLIC:
        with gzip.open(data_folder() / name, "rt", encoding="utf-8") as file:
            counts.update(_WORD.findall(file.read().lower()))
    for path in sorted(Path(__file__).parent.glob("comments_train/*.jsonl")):
        if path.name != "labels.jsonl":
            ours = Counter(_WORD.findall(path.read_text(encoding="utf-8").lower()))
            counts.update({word: OUR_WEIGHT * count for word, count in ours.items()})
    return sorted(word for word, _ in counts.most_common(NUM_WORDS))


def embed(word: str, tokenizer: object, embeddings: np.ndarray) -> np.ndarray:
    """Mean embedding of the tokens of a word within a sentence, written small and, less so, with a capital."""
    small, capital = (
        embeddings[tokenizer(text, add_special_tokens=False)["input_ids"]].mean(0)  # type: ignore[operator]
        for text in (f" {word}", f" {word.capitalize()}")
    )
    return np.asarray(0.7 * small + 0.3 * capital)


if __name__ == "__main__":
    main()
