"""Small tokenizers of every kind that offsets are known for."""

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SENTENCES = [
    "The meeting is not on Friday, it's on Monday. The minister isn't there!",
    "def count(xs):\n    return sum(1 for x in xs if x > 0)\n",
    "日本語の文章と中文的句子。 Naïve café, Zürich, e\u0301 a\u0308.",
    "😀😀 good 👍🏽 job 👩‍👩‍👧 日本 🇯🇵",
] * 3
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def wrap(backend: Tokenizer) -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.add_tokens(["<tool call>", AddedToken("naïve—", normalized=False), "日本"])
    return tokenizer


def byte_level() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return wrap(backend)


def sentencepiece(decoder: decoders.Decoder) -> PreTrainedTokenizerFast:
    """Pieces with ▁ for spaces, and a token for each byte. The last emoji and the kana are left to the byte tokens."""
    words = [
        "▁",
        "▁the",
        "▁▁",
        "e",
        "n",
        "é",
        "e\u0301",
        "日本",
        "😀",
        "\ufffd",
        "▁a▁b",
        "<0xZZ>",
        "<0x100>",
        "a<0x41>",
    ]
    vocab = {token: index for index, token in enumerate(["<unk>", *BYTE_TOKENS, *words])}
    backend = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unk>", byte_fallback=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    backend.decoder = decoder
    return wrap(backend)


def llama() -> PreTrainedTokenizerFast:
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    return sentencepiece(decoders.Sequence(steps))


def gemma() -> PreTrainedTokenizerFast:
    return sentencepiece(decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]))


def metaspace_with_bytes() -> PreTrainedTokenizerFast:
    return sentencepiece(decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()]))


def unigram() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=120, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    return wrap(backend)


def wordpiece(cleanup: bool) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(cleanup=cleanup)
    trainer = trainers.WordPieceTrainer(vocab_size=150, special_tokens=["[UNK]"], show_progress=False)
    backend.train_from_iterator(SENTENCES, trainer)
    return wrap(backend)


def word_level() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "é😀": 2, ".": 3}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return wrap(backend)


TOKENIZERS: dict[str, PreTrainedTokenizerFast] = {
    "byte-level": byte_level(),
    "llama": llama(),
    "gemma": gemma(),
    "metaspace with bytes": metaspace_with_bytes(),
    "unigram": unigram(),
    "wordpiece": wordpiece(cleanup=False),
    "wordpiece, cleaned": wordpiece(cleanup=True),
    "no decoder": word_level(),
}
