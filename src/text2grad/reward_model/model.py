"""`SpanRewardModel`: predicts which words of a completion are good or poor, and generates the critique that says why.

It is a critic as any other: `critique(examples)`. The `head` method takes one forward pass with a token head; the
`generative` method generates the critique and quotes the spans, constrained by a grammar.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.files import replace_text
from text2grad.models.backbone import hidden_size, vocab_size
from text2grad.models.batching import pad_right_rows, split_by_token_budget
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.reward_model.critique_format import CritiqueFormatError, parse_critique
from text2grad.reward_model.dataset import RewardDataset
from text2grad.reward_model.familiarity import Familiarity, trust, weaken
from text2grad.reward_model.feedback import (
    FeedbackSettings,
    TokenProbabilities,
    graded_feedback,
    span_feedback,
    written_feedback,
)
from text2grad.reward_model.grammar import critique_guide, max_critique_tokens
from text2grad.reward_model.head import IGNORE, TokenHead
from text2grad.reward_model.inputs import InputBuilder, InputError, ModelInput
from text2grad.reward_model.loading import (
    FAMILIARITY_FILE,
    HEAD_FILE,
    SETTINGS_FILE,
    find_folder,
    load_familiarity,
    parse_device,
    read_settings,
)
from text2grad.reward_model.model_card import model_card
from text2grad.reward_model.network import SpanRewardNetwork
from text2grad.reward_model.settings import RewardModelSettings
from text2grad.rollout.grammar import build_llguidance_tokenizer, decode_until_end
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import noise, sample
from text2grad.schema import Example, Feedback

MAX_TOKENS_PER_BATCH = {"cpu": 8192, "cuda": 131_072}


class SpanRewardModel:
    """A reward model on any causal language model with a chat template and a fast tokenizer.

    familiarity: tells which completions are unlike the training data; without it, all count as familiar.
    """

    name = "reward"

    def __init__(
        self,
        network: SpanRewardNetwork,
        tokenizer: PreTrainedTokenizerBase,
        settings: RewardModelSettings,
        familiarity: Familiarity | None = None,
    ) -> None:
        self.network = network
        self.tokenizer = tokenizer
        self.settings = settings
        self.familiarity = familiarity
        self._inputs = InputBuilder(tokenizer, settings.inputs)

    @classmethod
    def from_pretrained(
        cls, name: str | Path, device: str | None = None, dtype: torch.dtype | None = None, **feedback: Any
    ) -> SpanRewardModel:
        """Load from a folder or from the Hugging Face hub.

        device: default is a GPU where there is one. dtype: default is bfloat16 on a GPU, else float32.
        feedback: fields of `FeedbackSettings` that replace the saved ones, such as method="generative".
        """
        folder = find_folder(name)
        settings = RewardModelSettings.parse(read_settings(folder), where=str(folder / SETTINGS_FILE))
        settings = _with_feedback(settings, feedback)
        torch_device = parse_device(device)
        dtype = dtype or (torch.bfloat16 if torch_device.type == "cuda" else torch.float32)
        is_adapter = (folder / "adapter_config.json").is_file()
        model: Any = load_model(settings.base if is_adapter else folder, dtype)
        if is_adapter:
            model = PeftModel.from_pretrained(model, folder, use_safetensors=True).merge_and_unload()
        head = TokenHead(hidden_size(model))
        head.load_state_dict(safetensors.torch.load_file(folder / HEAD_FILE))
        network = SpanRewardNetwork(model, head).to(torch_device).eval()
        return cls(network, load_tokenizer(folder), settings, load_familiarity(folder))

    def save_pretrained(self, folder: str | Path) -> None:
        """Save the weights as safetensors, the tokenizer, the settings and a model card."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        language_model = self.network.model
        if isinstance(language_model, PeftModel):
            language_model.peft_config["default"].base_model_name_or_path = self.settings.base
            language_model.save_pretrained(str(folder), save_embedding_layers=False)  # "auto" queries the hub
        else:
            language_model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        head = {name: tensor.detach().cpu() for name, tensor in self.network.head.state_dict().items()}
        safetensors.torch.save_file(head, folder / HEAD_FILE)
        if self.familiarity is not None:
            safetensors.torch.save_file(self.familiarity.state(), folder / FAMILIARITY_FILE)
        else:
            (folder / FAMILIARITY_FILE).unlink(missing_ok=True)  # of another model that was saved there
        replace_text(folder / SETTINGS_FILE, self.settings.model_dump_json(indent=2) + "\n")
        replace_text(folder / "README.md", model_card(self.settings))

    def push_to_hub(self, repository: str, private: bool = True) -> str:
        """Upload what `save_pretrained` writes, and return the address of the commit."""
        import tempfile

        from huggingface_hub import HfApi

        api = HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return str(api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Add reward model"))

    def fingerprint(self) -> str:
        """Return a hash of the weights and settings that predictions depend on."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self.settings.model_dump_json(exclude={"base"}).encode())
        familiarity = self.familiarity.state() if self.familiarity is not None else {}
        for _, tensor in [*sorted(self.network.state_dict().items()), *sorted(familiarity.items())]:
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return f"reward:{digest.hexdigest()}"

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """Return one Feedback per example, in order; a completion that is empty or too long gets failed feedback."""
        return [feedback for feedback, _ in self.critique_and_score(examples)]

    def critique_and_score(self, examples: Sequence[Example]) -> list[tuple[Feedback, TokenProbabilities | InputError]]:
        """Return the feedback of each example with the probabilities behind it."""
        scores = self.score(examples)
        generative = self.settings.feedback.method == "generative"
        critiques = self.generate_critiques(examples) if generative else [None] * len(examples)
        feedback = [self._make_feedback(*columns) for columns in zip(examples, scores, critiques, strict=True)]
        return list(zip(feedback, scores, strict=True))

    def score(self, examples: Sequence[Example]) -> list[TokenProbabilities | InputError]:
        """Return the head's calibrated probabilities; one forward pass per completion."""
        results: list[Any] = list(self._inputs.build_batch(examples))
        valid = [i for i, result in enumerate(results) if isinstance(result, ModelInput)]
        for i, (logits, features) in zip(valid, self._read_completions([results[i] for i in valid]), strict=True):
            probabilities = self.settings.calibration.probabilities(logits)
            distance = None if self.familiarity is None else float(self.familiarity.distances(features[None])[0])
            results[i] = TokenProbabilities(results[i].offsets, probabilities, distance)
        return results

    def generate_critiques(
        self, examples: Sequence[Example], temperature: float = 0.0, seed: int = 0, batch_size: int = 64
    ) -> list[str | InputError]:
        """Return critiques in the critique format, greedy or sampled; the grammar makes each well-formed."""
        generated = self.generate_critique_ids(examples, temperature, seed, batch_size)
        return [ids if isinstance(ids, InputError) else decode_until_end(ids, self._vocabulary) for ids in generated]

    def generate_critique_ids(
        self, examples: Sequence[Example], temperature: float = 0.0, seed: int = 0, batch_size: int = 64
    ) -> list[list[int] | InputError]:
        """Return the sampled ids of the critiques, including the end token."""
        critique_format = self.settings.critique_format
        context = int(getattr(self.network.config, "max_position_embeddings", 1 << 30))
        results: list[Any] = list(self._inputs.build_batch(examples))
        max_new_tokens = [max_critique_tokens(example.completion, critique_format.limits) for example in examples]
        for i, result in enumerate(results):
            if isinstance(result, ModelInput) and len(result.ids) + max_new_tokens[i] > context:
                results[i] = InputError(
                    f"too long: a critique may take {max_new_tokens[i]} tokens; the context has {context}"
                )
        valid = [i for i, result in enumerate(results) if isinstance(result, ModelInput)]
        valid.sort(key=lambda i: len(results[i].ids))
        for start in range(0, len(valid), batch_size):
            batch = valid[start : start + batch_size]
            uniforms = noise(Stream.EVALUATION, seed, 0, batch, max(max_new_tokens[i] for i in batch))
            with self._eval_mode():
                sampled = sample(
                    self.network.model,
                    [results[i].ids for i in batch],
                    uniforms,
                    temperature,
                    end_ids=[self._vocabulary.eos_token],
                    pad_id=int(self.tokenizer.pad_token_id),
                    guide=critique_guide(self._vocabulary, [examples[i].completion for i in batch], critique_format),
                )
            for i, ids in zip(batch, sampled.completions, strict=True):
                results[i] = ids
        return results

    def read_rows(self, dataset: RewardDataset) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the calibration and the familiarity are fitted on.

        Logits (completion tokens, 3) and labels (completion tokens,) of all rows, and features (rows, width).
        """
        inputs = []
        labels: list[int] = []
        for row in dataset.rows:
            positions = [i for i, label in enumerate(row["head_labels"]) if label != IGNORE]
            labels += [row["head_labels"][i] for i in positions]
            inputs.append(ModelInput(row["input_ids"], (positions[0], positions[-1] + 1), [], 0))
        logits, features = zip(*self._read_completions(inputs), strict=True)
        return torch.cat(logits), torch.tensor(labels), torch.stack(features)

    @property
    def batch_size(self) -> int:
        """Examples per call that make good use of the device."""
        return 256 if self.network.model.device.type == "cuda" else 16

    @contextmanager
    def override(self, **feedback: Any) -> Iterator[None]:
        """Temporarily replace fields of `FeedbackSettings`, such as method="generative"."""
        before = self.settings
        self.settings = _with_feedback(before, feedback)
        try:
            yield
        finally:
            self.settings = before

    @cached_property
    def _vocabulary(self) -> Any:
        return build_llguidance_tokenizer(self.tokenizer, vocab_size(self.network.model))

    @torch.no_grad()
    def _read_completions(self, inputs: Sequence[ModelInput]) -> list[tuple[Tensor, Tensor]]:
        """Return float32 logits, (completion tokens, 3), and the mean state, (width,), of each input, on the CPU."""
        device = next(self.network.head.parameters()).device
        max_tokens = MAX_TOKENS_PER_BATCH.get(device.type, MAX_TOKENS_PER_BATCH["cpu"])
        rows = [one.ids[: one.completion_range[1]] for one in inputs]
        results: dict[int, tuple[Tensor, Tensor]] = {}
        with self._eval_mode():
            for batch in split_by_token_budget([len(row) for row in rows], max_tokens):
                states = self.network.states(pad_right_rows([rows[i] for i in batch], device))
                scored = [states[k, slice(*inputs[i].completion_range)] for k, i in enumerate(batch)]
                logits = self.network.head(torch.cat(scored)).float().cpu()
                features = torch.stack([part.float().mean(0) for part in scored]).cpu()
                parts = zip(logits.split([len(part) for part in scored]), features, strict=True)
                results |= dict(zip(batch, parts, strict=True))
        return [results[i] for i in range(len(inputs))]

    @contextmanager
    def _eval_mode(self) -> Iterator[None]:
        was_training = self.network.training
        self.network.eval()
        try:
            yield
        finally:
            self.network.train(was_training)

    def _make_feedback(
        self, example: Example, scored: TokenProbabilities | InputError, critique: str | InputError | None
    ) -> Feedback:
        for result in (scored, critique):
            if isinstance(result, InputError):
                return Feedback.failure(self.name, str(result))
        assert isinstance(scored, TokenProbabilities)
        try:
            feedback = self._describe_prediction(example, scored, critique if isinstance(critique, str) else None)
        except CritiqueFormatError as error:
            return Feedback.failure(self.name, f"unreadable: {error}", raw=str(critique))
        if scored.distance is None:
            return feedback
        weakened = weaken(feedback, trust(scored.distance)) if self.settings.feedback.weaken_unfamiliar else feedback
        return weakened.model_copy(update={"distance": scored.distance})

    def _describe_prediction(self, example: Example, scored: TokenProbabilities, critique: str | None) -> Feedback:
        if critique is not None:
            written = parse_critique(critique, example.completion)
            return written_feedback(example.completion, written, scored, self.name, raw=critique)
        settings = self.settings.feedback
        if settings.rewards == "spans":
            return span_feedback(example.completion, scored, settings.threshold, self.name)
        centre = self.settings.calibration.centre if settings.centered else 0.0
        return graded_feedback(example.completion, scored, settings.threshold, self.name, centre)


def _with_feedback(settings: RewardModelSettings, feedback: dict[str, Any]) -> RewardModelSettings:
    parsed = FeedbackSettings.parse({**settings.feedback.model_dump(), **feedback}, where="reward model")
    return settings.model_copy(update={"feedback": parsed})
