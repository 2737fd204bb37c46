"""`SpanRewardModel`: reads a prompt and an answer, and says which words are good and which are poor, and why.

It is a critic like any other: `critique(examples)`. The fast path is one forward pass with a token head; the
generative path writes the critique and quotes the spans, under a grammar that leaves it nothing that cannot be read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from peft import PeftModel
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from text2grad.errors import UserError
from text2grad.files import replace_text
from text2grad.models.backbone import hidden_size, vocab_size
from text2grad.models.batching import pad_right_rows, split_by_token_budget
from text2grad.models.loading import load_model, load_tokenizer
from text2grad.reward_model.features import Prepared
from text2grad.reward_model.feedback import graded_feedback, span_feedback, written_feedback
from text2grad.reward_model.grammar import most_tokens
from text2grad.reward_model.head import IGNORE, Calibration, Probabilities, TokenHead
from text2grad.reward_model.inputs import Question, Reader, TooLongError
from text2grad.reward_model.judgement import UnreadableError, read
from text2grad.reward_model.matchers import Matchers
from text2grad.reward_model.scorer import SpanScorer
from text2grad.reward_model.settings import Layout, Rewards
from text2grad.rollout.grammar import reply_of, tokens_to_match
from text2grad.rollout.rng import Stream
from text2grad.rollout.sampling import noise, sample
from text2grad.schema import Example, Feedback, Range
from text2grad.settings import Settings

SETTINGS_FILE, HEAD_FILE = "reward_model.json", "head.safetensors"
MAX_TOKENS_PER_BATCH = {"cpu": 8192, "cuda": 131_072}


class Saved(Settings):
    """What stands beside the weights."""

    base: str
    layout: Layout
    rewards: Rewards
    calibration: Calibration


@dataclass(frozen=True)
class Scored:
    """What the head says about one answer: the characters of each token, and its (tokens, 3) probabilities."""

    offsets: list[Range]
    probabilities: Probabilities


class SpanRewardModel:
    """A reward model on any causal language model with a chat template and a fast tokenizer."""

    def __init__(
        self,
        scorer: SpanScorer,
        tokenizer: PreTrainedTokenizerBase,
        layout: Layout,
        rewards: Rewards,
        base: str,
        calibration: Calibration | None = None,
    ) -> None:
        self.scorer = scorer
        self.tokenizer = tokenizer
        self.layout = layout
        self.rewards = rewards
        self.base = base
        self.calibration = calibration or Calibration()
        self.name = "reward"
        self._reader = Reader(tokenizer, layout)

    @classmethod
    def from_pretrained(
        cls, name: str | Path, device: str | None = None, dtype: torch.dtype | None = None, **rewards: Any
    ) -> SpanRewardModel:
        """Load from a folder or from the Hugging Face hub.

        device: where to compute; a GPU where there is one. dtype: bfloat16 on a GPU, else float32.
        rewards: fields of `Rewards` that replace the saved ones, as path="generative".
        """
        folder = _folder(name)
        saved = Saved.parse(_settings_of(folder), where=str(folder / SETTINGS_FILE))
        chosen = Rewards.parse({**saved.rewards.model_dump(), **rewards}, where="reward model")
        place = _device(device)
        dtype = dtype or (torch.bfloat16 if place.type == "cuda" else torch.float32)
        is_adapter = (folder / "adapter_config.json").is_file()
        model: Any = load_model(saved.base if is_adapter else folder, dtype)
        if is_adapter:
            model = PeftModel.from_pretrained(model, folder, use_safetensors=True).merge_and_unload()
        head = TokenHead(hidden_size(model))
        head.load_state_dict(safetensors.torch.load_file(folder / HEAD_FILE))
        scorer = SpanScorer(model, head).to(place).eval()
        return cls(scorer, load_tokenizer(folder), saved.layout, chosen, saved.base, saved.calibration)

    def save_pretrained(self, folder: str | Path) -> None:
        """Weights as safetensors, the tokenizer, the settings and a model card."""
        from text2grad.reward_model.model_card import model_card

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        network = self.scorer.model
        if isinstance(network, PeftModel):
            network.peft_config["default"].base_model_name_or_path = self.base
            network.save_pretrained(str(folder), save_embedding_layers=False)  # "auto" asks the hub about the base
        else:
            network.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        head = {name: tensor.detach().cpu() for name, tensor in self.scorer.head.state_dict().items()}
        safetensors.torch.save_file(head, folder / HEAD_FILE)
        saved = Saved(base=self.base, layout=self.layout, rewards=self.rewards, calibration=self.calibration)
        replace_text(folder / SETTINGS_FILE, saved.model_dump_json(indent=2) + "\n")
        replace_text(folder / "README.md", model_card(saved))

    def push_to_hub(self, repository: str, private: bool = True) -> str:
        """Upload what `save_pretrained` writes; returns the address of the commit."""
        import tempfile

        from huggingface_hub import HfApi

        api = HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return str(api.upload_folder(repo_id=repository, folder_path=folder, commit_message="Add reward model"))

    def fingerprint(self) -> str:
        """Changes whenever the same answer could get other feedback: with the weights and the settings."""
        digest = hashlib.blake2b(digest_size=16)
        for text in (self.layout.model_dump_json(), self.rewards.model_dump_json(), self.calibration.model_dump_json()):
            digest.update(text.encode())
        for _, tensor in sorted(self.scorer.state_dict().items()):
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return f"reward:{digest.hexdigest()}"

    def critique(self, examples: Sequence[Example]) -> list[Feedback]:
        """One Feedback an example, in order, by the path that `rewards` names; an answer too long to read is failed."""
        return [feedback for feedback, _ in self.critique_and_score(examples)]

    def critique_and_score(self, examples: Sequence[Example]) -> list[tuple[Feedback, Scored | TooLongError]]:
        """Feedback beside the probabilities that it comes from."""
        scored = self.score(examples)
        written = self.write(examples) if self.rewards.path == "generative" else [None] * len(examples)
        feedback = [self._feedback(*given) for given in zip(examples, scored, written, strict=True)]
        return list(zip(feedback, scored, strict=True))

    def score(self, examples: Sequence[Example]) -> list[Scored | TooLongError]:
        """The head's calibrated probabilities, one forward pass an answer."""
        questions = self._reader.read_all(examples)
        readable = [i for i, question in enumerate(questions) if isinstance(question, Question)]
        results: list[Any] = list(questions)
        logits = self._head_logits([questions[i] for i in readable])  # type: ignore[misc]
        for i, rows in zip(readable, logits, strict=True):
            results[i] = Scored(questions[i].offsets, self.calibration.probabilities(rows))  # type: ignore[union-attr]
        return results

    def write(
        self, examples: Sequence[Example], temperature: float = 0.0, seed: int = 0, batch_size: int = 64
    ) -> list[str | TooLongError]:
        """Judgements in writing (see reward.judgement), greedy or sampled; each has the right form and closes."""
        drawn = self.write_ids(examples, temperature, seed, batch_size)
        return [ids if isinstance(ids, TooLongError) else reply_of(ids, self._vocabulary) for ids in drawn]

    def write_ids(
        self, examples: Sequence[Example], temperature: float = 0.0, seed: int = 0, batch_size: int = 64
    ) -> list[list[int] | TooLongError]:
        """The same as the tokens that were drawn, the end token included."""
        questions = self._reader.read_all(examples)
        context = int(getattr(self.scorer.config, "max_position_embeddings", 1 << 30))
        results: list[Any] = list(questions)
        rooms = [most_tokens(example.completion, self.layout.limits) for example in examples]
        for i, question in enumerate(questions):
            if isinstance(question, Question) and len(question.ids) + rooms[i] > context:
                results[i] = TooLongError(
                    f"too long: a judgement may take {rooms[i]} tokens; the context has {context}"
                )
        fitting = [i for i, result in enumerate(results) if isinstance(result, Question)]
        fitting.sort(key=lambda i: len(results[i].ids))
        for start in range(0, len(fitting), batch_size):
            batch = fitting[start : start + batch_size]
            answers = [examples[i].completion for i in batch]
            uniforms = noise(Stream.EVALUATION, seed, 0, batch, max(rooms[i] for i in batch))
            with self._evaluating():
                written = sample(
                    self.scorer.model,
                    [results[i].ids for i in batch],
                    uniforms,
                    temperature,
                    end_ids=[self._vocabulary.eos_token],
                    pad_id=int(self.tokenizer.pad_token_id),
                    guide=Matchers(self._vocabulary, answers, self.layout),
                )
            for i, ids in zip(batch, written.completions, strict=True):
                results[i] = ids
        return results

    def head_logits(self, prepared: Prepared) -> tuple[Tensor, Tensor]:
        """What calibration is fitted on: logits (judged tokens, 3) and labels (judged tokens,) of all rows."""
        questions = []
        labels: list[int] = []
        for row in prepared.rows:
            places = [i for i, label in enumerate(row["head_labels"]) if label != IGNORE]
            labels += [row["head_labels"][i] for i in places]
            questions.append(Question(row["input_ids"], (places[0], places[-1] + 1), [], 0))
        return torch.cat(self._head_logits(questions)), torch.tensor(labels)

    @property
    def batch_size(self) -> int:
        """How many examples may usefully be given at once."""
        return 256 if self.scorer.model.device.type == "cuda" else 16

    @contextmanager
    def using(self, **rewards: Any) -> Iterator[None]:
        """With other settings of `Rewards` for a while, as path="generative"."""
        before = self.rewards
        self.rewards = Rewards.parse({**before.model_dump(), **rewards}, where="reward model")
        try:
            yield
        finally:
            self.rewards = before

    @cached_property
    def _vocabulary(self) -> Any:
        return tokens_to_match(self.tokenizer, vocab_size(self.scorer.model))

    @torch.no_grad()
    def _head_logits(self, questions: Sequence[Question]) -> list[Tensor]:
        """(judged tokens, 3) of each question, in order, float32, on the CPU. Only what the head reads is computed."""
        device = next(self.scorer.head.parameters()).device
        most_padded = MAX_TOKENS_PER_BATCH.get(device.type, MAX_TOKENS_PER_BATCH["cpu"])
        rows = [question.ids[: question.judged[1]] for question in questions]
        results: dict[int, Tensor] = {}
        with self._evaluating():
            for batch in split_by_token_budget([len(row) for row in rows], most_padded):
                states = self.scorer.states(pad_right_rows([rows[i] for i in batch], device))
                judged = [states[k, questions[i].judged[0] : questions[i].judged[1]] for k, i in enumerate(batch)]
                logits = self.scorer.head(torch.cat(judged)).float().cpu()
                results |= dict(zip(batch, logits.split([len(part) for part in judged]), strict=True))
        return [results[i] for i in range(len(questions))]

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        was_training = self.scorer.training
        self.scorer.eval()
        try:
            yield
        finally:
            self.scorer.train(was_training)

    def _feedback(
        self, example: Example, scored: Scored | TooLongError, written: str | TooLongError | None
    ) -> Feedback:
        for result in (scored, written):
            if isinstance(result, TooLongError):
                return Feedback.failure(self.name, str(result))
        assert isinstance(scored, Scored)
        if isinstance(written, str):
            try:
                return written_feedback(read(written, example.completion), scored, self.name, raw=written)
            except UnreadableError as error:
                return Feedback.failure(self.name, f"unreadable: {error}", raw=written)
        if self.rewards.rewards == "spans":
            return span_feedback(example.completion, scored, self.rewards.floor, self.name)
        centre = self.calibration.centre if self.rewards.centered else 0.0
        return graded_feedback(example.completion, scored, self.rewards.floor, self.name, centre)


def _folder(name: str | Path) -> Path:
    folder = Path(name)
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = ["*.json", "*.safetensors", "*.jinja"]
    try:
        return Path(snapshot_download(str(name), etag_timeout=5, allow_patterns=patterns))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError) as error:
        raise UserError(
            f'reward model "{name}" cannot be found: give the folder that `text2grad reward train` wrote, or a Hugging '
            f"Face name that the hub or its cache has"
        ) from error


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f'"{name}" is not a device; give cpu, cuda or cuda:1') from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f'device "{name}" is not there: this machine has {torch.cuda.device_count()} GPUs; give cpu')
    return device


def _settings_of(folder: Path) -> Any:
    for name in (SETTINGS_FILE, HEAD_FILE):
        if not (folder / name).is_file():
            raise UserError(f"{folder} is not a reward model: it has no {name}; `text2grad reward train` makes one")
    path = folder / SETTINGS_FILE
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON ({error}); restore the file, or train the model again") from error
