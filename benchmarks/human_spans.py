"""Exactness of the span-to-token mapping on human spans.

Data: all error spans of QA-Feedback (character offsets in an answer), with three kinds of tokenizers: the default
model's byte-level BPE, a SentencePiece-style BPE with byte fallback, and a Unigram with Metaspace, the last two trained
here on the answers. The reference decodes every prefix of the ids and shares no code with `offsets`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from harness import Bar, data_folder, options, report, show
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from text2grad.align.tokens import decode, offsets, overlapping
from text2grad.data import fgrlhf
from text2grad.models.loading import DEFAULT_MODEL, load_tokenizer
from text2grad.schema import Example, Range

VOCAB_SIZE = 4_000


def main() -> None:
    args = options(__doc__ or "")
    folder = data_folder() / "fgrlhf_qa_feedback"
    examples = [e for name in ("dev.json.gz", "dev_feedback.json.gz") for e in fgrlhf.read(folder / name)]
    examples = [e for e in examples if e.feedback and e.feedback.spans][: 50 if args.quick else None]
    texts = [example.completion for example in examples]
    tokenizers = {
        "byte_level": load_tokenizer(DEFAULT_MODEL),
        "sentencepiece_bpe": sentencepiece_bpe(texts),
        "unigram": unigram(texts),
    }
    figures: dict[str, float] = {"answers": len(examples)}
    rows = []
    for name, tokenizer in tokenizers.items():
        spans, tokens, wrong, unspelt = measure(examples, tokenizer)
        figures |= {
            f"{name}_spans": spans,
            f"{name}_tokens": tokens,
            f"{name}_wrong": wrong,
            f"{name}_unspelt": unspelt,
        }
        rows.append([name, str(spans), str(tokens), str(wrong), str(unspelt)])
    show("Human spans to tokens", ["tokenizer", "spans", "tokens", "spans wrong", "answers decoded wrongly"], rows)
    bars = {f"{name}_{what}": Bar(at_most=0) for name in tokenizers for what in ("wrong", "unspelt")}
    report("human_spans", figures, bars, args)


def measure(examples: Iterable[Example], tokenizer: PreTrainedTokenizerBase) -> tuple[int, int, int, int]:
    """Count the spans, the tokens, the spans mapped to wrong tokens, and the answers that decode differently."""
    spans = tokens = wrong = unspelt = 0
    for example in examples:
        ids = tokenizer(example.completion, add_special_tokens=False)["input_ids"]
        unspelt += decode(ids, tokenizer) != example.completion
        ours, truth = offsets(ids, tokenizer), prefix_ranges(ids, tokenizer)
        tokens += len(ids)
        for span in example.feedback.spans if example.feedback else []:
            reached = [
                i for i, (start, end) in enumerate(truth) if start < span.end and end > span.start and end > start
            ]
            wrong += overlapping(span.start, span.end, ours) != reached
            spans += 1
    return spans, tokens, wrong, unspelt


def prefix_ranges(ids: list[int], tokenizer: PreTrainedTokenizerBase) -> list[Range]:
    """Return each token's range from decoded prefixes; a character that a token only begins belongs to it too."""
    text = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    whole = [0]
    partly = [0]
    for count in range(1, len(ids) + 1):
        prefix = tokenizer.decode(ids[:count], clean_up_tokenization_spaces=False)
        shared = next(
            (i for i, (a, b) in enumerate(zip(prefix, text, strict=False)) if a != b), min(len(prefix), len(text))
        )
        whole.append(shared)
        partly.append(shared + (len(prefix) > shared))
    return [(whole[i], partly[i + 1]) for i in range(len(ids))]


def sentencepiece_bpe(texts: list[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE, special_tokens=["<unk>", *BYTES], limit_alphabet=80, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    described = json.loads(tokenizer.to_str())
    # The trainer adds the bytes as special tokens, which decoding would skip; make them ordinary tokens.
    described["added_tokens"] = [token for token in described["added_tokens"] if token["content"] not in BYTES]
    return wrap_tokenizer(Tokenizer.from_str(json.dumps(described)))


def unigram(texts: list[str]) -> PreTrainedTokenizerFast:
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCAB_SIZE, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False
    )
    trained.train_from_iterator(texts, trainer)
    return wrap_tokenizer(trained, decoders.Metaspace())


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def wrap_tokenizer(tokenizer: Tokenizer, decoder: object | None = None) -> PreTrainedTokenizerFast:
    if decoder is not None:
        tokenizer.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<unk>")


if __name__ == "__main__":
    main()
