"""Corrupted examples from faithful ones: deterministic for a seed, and without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

from pydantic import Field, NonNegativeInt, PositiveInt

from text2grad.errors import UserError
from text2grad.reward_model.corruptions import additions, facts, omissions, relations
from text2grad.reward_model.corruptions.edits import Edit, apply_edits
from text2grad.reward_model.corruptions.material import FaithfulText, Pool, build_pool, faithful_text
from text2grad.reward_model.corruptions.wording import CLEAN, describe_fault
from text2grad.schema import Example, Feedback, Omission, Span
from text2grad.settings import Settings

Rule = Callable[[FaithfulText, Pool, Random], Edit | None]

# Weights: how often a rule is tried first. Without a source, a reader can only see that a sentence is out of place.
ADDED_SENTENCES: dict[Rule, float] = {
    additions.add_clause: 1.0,
    additions.add_sentence: 1.5,
    additions.add_digression: 3.0,
    additions.repeat_sentence: 0.5,
}
RULES: dict[Rule, float] = ADDED_SENTENCES | {
    additions.add_phrase: 2.5,
    additions.add_modifier: 0.8,
    facts.exchange_name: 4.0,
    facts.exchange_number: 3.0,
    facts.exchange_date: 2.0,
    facts.exchange_unit: 1.0,
    facts.exchange_word: 2.0,
    facts.exchange_answer: 3.0,
    relations.reverse_relation: 1.5,
    relations.negate: 1.0,
    omissions.drop_words: 0.7,
}
CRITIC = "corruption"
_WORDS_PER_FAULT = 10  # at most one fault in so many words


class CorruptionSettings(Settings):
    """How faithful texts are corrupted. seed: the same one gives the same examples."""

    per_text: PositiveInt = Field(2, description="corrupted examples per faithful text, at most")
    clean_share: float = Field(0.25, ge=0, le=1, description="share of the examples that stay as they are")
    max_faults: PositiveInt = Field(3, description="per example")
    seed: NonNegativeInt = 0


def corrupt(examples: Sequence[Example], settings: CorruptionSettings | None = None) -> Iterator[Example]:
    """Yield corrupted and unchanged copies of examples whose completions agree with their sources.

    The source is `meta["document"]`, or the prompt without it; with an empty document the completion cannot be checked
    against anything, so sentences are added and no words exchanged. What is added or exchanged may come from the other
    examples, so they should be of one kind. A span's `replacement` is what the faithful text had in
    its place, its reason and the critique say so. A text to which no rule applies is left out.
    """
    settings = settings or CorruptionSettings()
    texts = [faithful_text(example) for example in examples]
    for text in texts:
        if not text.example.completion.strip():
            raise UserError(f'example "{text.example.id}" has no completion to corrupt; give the right answer there')
    pool = build_pool(texts)
    for text in texts:
        for copy in range(settings.per_text):
            rng = Random(f"{settings.seed}/{text.example.id}/{copy}")
            edits = [] if rng.random() < settings.clean_share else choose_edits(text, pool, settings.max_faults, rng)
            if edits is not None:
                yield make_example(text, edits, f"{text.example.id}-corrupted-{copy}", rng)


def with_completion(example: Example) -> Example:
    """Return the example with its first reference as the completion, where it has no completion."""
    reference = example.reference if isinstance(example.reference, str) else (example.reference or [""])[0]
    return example if example.completion.strip() else example.model_copy(update={"completion": reference})


def choose_edits(text: FaithfulText, pool: Pool, max_faults: int, rng: Random) -> list[Edit] | None:
    """Return between one and `max_faults` edits in the order of the text; None if no rule applies."""
    rules = RULES if text.source_text else ADDED_SENTENCES
    count = rng.randint(1, max(1, min(max_faults, len(text.completion.words) // _WORDS_PER_FAULT)))
    # Sorted by these keys, rules come first with a probability proportional to their weights.
    order = sorted(rules, key=lambda rule: rng.random() ** (1 / rules[rule]), reverse=True)
    edits: list[Edit] = []
    for rule in order:
        edit = rule(text, pool, rng)
        if edit is not None and not any(edit.overlaps(other) for other in edits):
            edits.append(edit)
        if len(edits) == count:
            break
    return sorted(edits, key=lambda edit: edit.start) or None


def make_example(text: FaithfulText, edits: Sequence[Edit], name: str, rng: Random) -> Example:
    """Return the edited text with its feedback; without edits, as it is."""
    completion, ranges = apply_edits(text.example.completion, edits)
    critique = "" if edits else rng.choice(CLEAN)
    spans: list[Span] = []
    missing: list[Omission] = []
    for edit, (start, end) in zip(edits, ranges, strict=True):
        dropped = text.example.completion[edit.start : edit.end]
        original = dropped.strip()
        reason = describe_fault(edit.kind, edit.written, original, rng)
        critique += " " * bool(critique)
        phrase = (len(critique), len(critique) + len(reason))
        critique += reason
        if start == end:
            missing.append(Omission(text=original.strip(" ,;"), phrase=phrase, insert_at=start, insertion=dropped))
        else:
            kind = f"{CRITIC}:{edit.kind}"
            spans.append(
                Span(
                    start=start, end=end, label="poor", phrase=phrase, reason=reason, critic=kind, replacement=original
                )
            )
    return Example(
        id=name,
        prompt=text.example.prompt,
        completion=completion,
        feedback=Feedback(critique=critique, spans=spans, omissions=missing, critic=CRITIC),
        meta={"faithful": text.example.completion},
    )
