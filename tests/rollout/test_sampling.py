from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from text2grad.models.loading import load_model
from text2grad.rollout import constrained as guide_module
from text2grad.rollout import sampling
from text2grad.rollout.fast import decoders
from text2grad.rollout.grammar import Masks
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import inverse_cdf, noise, sample, sample_tokens

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")),
]
PROMPTS = [[10, 11, 12, 13], [20, 21], [30]]
END = 1


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> PreTrainedModel:
    return load_model(tiny_model).eval()


def roll(
    model: PreTrainedModel, prompts: list[list[int]], samples: list[int], n: int = 1, length: int = 12
) -> list[list[int]]:
    uniforms = noise(Stream.SAMPLING, 7, 1, samples, length)
    return sample(model, prompts, uniforms, temperature=1.3, end_ids=[END], pad_id=END, num_generations=n).completions


def test_noise_is_keyed_by_sample_and_purpose_not_by_batch() -> None:
    whole = noise(Stream.SAMPLING, 0, 3, range(4), 5)
    assert torch.equal(noise(Stream.SAMPLING, 0, 3, [2], 5)[0], whole[2])
    for other in (noise(Stream.SAMPLING, 1, 3, range(4), 5), noise(Stream.SAMPLING, 0, 4, range(4), 5)):
        assert not torch.isclose(whole, other).any()
    assert not torch.isclose(whole, noise(Stream.EVALUATION, 0, 3, range(4), 5)).any()


def test_tokens_are_sampled_by_the_inverse_cdf() -> None:
    logits = torch.tensor([[0.2, 0.5, 0.3]]).log().expand(4, 3)
    assert sample_tokens(logits, torch.tensor([0.0, 0.19, 0.21, 0.71]), temperature=1.0).tolist() == [0, 0, 1, 2]
    assert sample_tokens(logits, torch.tensor([0.999999999] * 4), temperature=1.0).tolist() == [2] * 4
    assert sample_tokens(logits, torch.zeros(4), temperature=0).tolist() == [1] * 4


def test_an_impossible_token_is_never_sampled() -> None:
    logits = torch.tensor([[float("-inf"), 0.0, float("-inf")]])
    for uniform in (0.0, 0.5, 1 - 1e-16):
        assert sample_tokens(logits, torch.tensor([uniform], dtype=torch.float64), temperature=1.0).item() == 1


def test_a_large_vocabulary_is_searched_to_the_exact_token() -> None:
    generator = torch.Generator().manual_seed(0)
    for vocabulary in (1, 127, 128, 1000, 4096):
        probabilities = torch.softmax(4 * torch.randn(200, vocabulary, generator=generator), -1)
        probabilities[:, ::3] = 0 if vocabulary > 1 else 1
        uniforms = torch.rand(200, generator=generator, dtype=torch.float64)
        cumulative = probabilities.double().cumsum(-1)
        expected = (cumulative <= (uniforms * cumulative[:, -1]).unsqueeze(-1)).sum(-1)
        assert inverse_cdf(probabilities, uniforms).tolist() == expected.tolist()
        last = inverse_cdf(probabilities, torch.ones(200, dtype=torch.float64))
        assert last.tolist() == [int(row.nonzero()[-1]) for row in probabilities]


def test_samples_follow_the_tempered_distribution() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    uniforms = torch.rand(40_000, generator=torch.Generator().manual_seed(0))
    drawn = sample_tokens(logits.expand(len(uniforms), 4), uniforms, temperature=0.7)
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    torch.testing.assert_close(shares, torch.softmax(logits / 0.7, -1), atol=0.01, rtol=0)


def test_padding_and_batch_do_not_change_a_completion(model: PreTrainedModel) -> None:
    together = roll(model, PROMPTS, [0, 1, 2])
    assert together == [roll(model, [prompt], [i])[0] for i, prompt in enumerate(PROMPTS)]


def test_completions_of_one_prompt_share_its_cache_and_differ(model: PreTrainedModel) -> None:
    shared = roll(model, [PROMPTS[0]], [0, 1, 2], n=3)
    assert shared == roll(model, [PROMPTS[0]] * 3, [0, 1, 2])
    assert len({tuple(ids) for ids in shared}) == 3


def test_a_completion_ends_with_the_first_end_token(model: PreTrainedModel) -> None:
    many = roll(model, [[i] for i in range(40, 104)], list(range(64)), length=60)
    ended = [ids for ids in many if END in ids]
    assert ended, "the tiny model ends some answers"
    assert all(ids.index(END) == len(ids) - 1 for ids in ended)
    assert all(len(ids) == 60 for ids in many if END not in ids)


def test_log_probabilities_are_those_of_a_plain_forward_pass(model: PreTrainedModel) -> None:
    """Answers that end early and rows that leave the batch included."""
    prompts = [[i] for i in range(40, 72)]
    uniforms = noise(Stream.SAMPLING, 7, 1, range(64), 60)
    completions, logprobs = sample(model, prompts, uniforms, 1.3, [END], END, num_generations=2, return_logprobs=True)
    assert sample(model, prompts, uniforms, 1.3, [END], END, num_generations=2) == (completions, None)
    assert logprobs is not None
    assert len({len(ids) for ids in completions}) > 2
    for i, (ids, scored) in enumerate(zip(completions, logprobs, strict=True)):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompts[i // 2], *ids]])).logits[0, :-1] / 1.3
        plain = logits.log_softmax(-1)[torch.arange(len(ids)), ids]
        torch.testing.assert_close(torch.tensor(scored), plain, atol=1e-5, rtol=1e-5)


def test_a_token_that_is_decided_has_no_log_probability(model: PreTrainedModel) -> None:
    uniforms = noise(Stream.SAMPLING, 7, 1, range(3), 5)
    completions, logprobs = sample(model, PROMPTS, uniforms, 0.0, [END], END, return_logprobs=True)
    assert sample(model, PROMPTS, uniforms, 0.0, [END], END) == (completions, None)
    assert logprobs is None


@pytest.mark.parametrize("temperature", [0.0, 1.3])
@pytest.mark.parametrize("device", DEVICES)
def test_tokens_sampled_within_a_step_are_the_same(
    tiny_model: Path, device: str, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that end early, rows that leave the batch and caches that grow included."""
    model = load_model(tiny_model).eval().to(device)
    prompts = [[i] for i in range(40, 72)]
    uniforms = noise(Stream.SAMPLING, 7, 1, range(64), 90)
    options = {"end_ids": [END], "pad_id": END, "num_generations": 2, "return_logprobs": True}
    expected, logprobs = sample(model, prompts, uniforms, temperature, fast_decoding=False, **options)
    monkeypatch.setattr(decoders, "CAPTURE_COST", 0)
    monkeypatch.setattr(sampling, "fast_decoder", partial(decoders.GraphDecoder, capture=device == "cuda"))
    found, found_logprobs = sample(model, prompts, uniforms, temperature, **options)
    assert found == expected
    assert len({len(ids) for ids in found}) > 2
    assert (logprobs is None) == (found_logprobs is None) == (temperature == 0)
    for mine, plain in zip(found_logprobs or [], logprobs or [], strict=True):
        assert mine == pytest.approx(plain, abs=1e-4)


class Spells:
    """Lets each completion be nothing but its own word, and remembers who was told what."""

    def __init__(self, words: list[list[int]]) -> None:
        self.words = words
        self.told: list[list[int]] = [[] for _ in words]

    def fill(self, masks: Masks, lines: Sequence[int], completions: Sequence[int]) -> None:
        masks[lines] = 0
        for line, row in zip(lines, completions, strict=True):
            token = self.words[row][len(self.told[row])]
            masks.view(np.uint32)[line, token // 32] = 1 << token % 32

    def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
        for row, token in zip(completions, tokens, strict=True):
            self.told[row].append(token)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_guide_decides_what_can_be_sampled(
    model: PreTrainedModel, temperature: float, ahead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of all lengths, so that rows end and leave the batch at different times."""
    monkeypatch.setattr(guide_module, "is_asynchronous", lambda device: ahead)  # True is how it goes on a GPU
    words = [[7] * i + [END] for i in (0, 1, 2, 5, 9, 3)]
    guide = Spells(words)
    uniforms = noise(Stream.SAMPLING, 0, 0, range(6), 12)
    drawn, _ = sample(model, PROMPTS, uniforms, temperature, end_ids=[END], pad_id=END, num_generations=2, guide=guide)
    assert drawn == words
    assert guide.told == words, "nothing is said of a completion that has ended"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_guide_decides_on_a_gpu_too(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With captured graphs, reallocated when rows end."""
    monkeypatch.setattr(decoders, "CAPTURE_COST", 0)
    model = load_model(tiny_model).eval().to("cuda")
    words = [[7] * i + [END] for i in (0, 1, 2, 50, 90, 3)]
    guide = Spells(words)
    uniforms = noise(Stream.SAMPLING, 0, 0, range(6), 100)
    drawn, _ = sample(model, PROMPTS, uniforms, 1.0, end_ids=[END], pad_id=END, num_generations=2, guide=guide)
    assert drawn == guide.told == words


def test_what_goes_wrong_in_a_guide_is_raised(model: PreTrainedModel) -> None:
    class Broken(Spells):
        def advance(self, completions: Sequence[int], tokens: Sequence[int]) -> None:
            raise RuntimeError("the guide is lost")

    with pytest.raises(RuntimeError, match="the guide is lost"):
        sample(model, PROMPTS, torch.zeros(3, 5), 0.0, end_ids=[END], pad_id=END, guide=Broken([[7, 7]] * 3))


def test_a_guide_that_allows_everything_changes_nothing(model: PreTrainedModel) -> None:
    class Free(Spells):
        def fill(self, masks: Masks, lines: Sequence[int], completions: Sequence[int]) -> None:
            masks[lines] = -1

    uniforms = noise(Stream.SAMPLING, 7, 1, [0, 1, 2], 12)
    free, _ = sample(model, PROMPTS, uniforms, 1.3, end_ids=[END], pad_id=END, guide=Free([[]] * 3))
    assert free == roll(model, PROMPTS, [0, 1, 2])
