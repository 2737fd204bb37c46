"""What one step on a correction does: 200 real answers, each with what should have been written.

DeFacto summaries (people's corrections), FGRLHF answers (people's corrections), and answers of the untrained default
model to XQuAD's questions (the qa critic's corrections). For each answer separately, the step of `text2grad explain`
(`constrained_step.py`), with the corrections and without them: is the replacement more probable after it,
does greedy decoding after the same prefix write it now, and how far did words move that nobody criticised?
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from statistics import fmean, median
from typing import Any, NamedTuple

import torch
from harness import Bar, data_folder, options, report, show
from untrained_answers import untrained_answers

from text2grad.align.tokens import decode, offsets
from text2grad.constrained_step import constrained_step
from text2grad.critics.rules.qa import QACritic
from text2grad.data import defacto, fgrlhf, xquad
from text2grad.models.loading import DEFAULT_MODEL, load_model, load_tokenizer
from text2grad.models.policy import Policy
from text2grad.models.prompts import encode_prompts
from text2grad.models.special_tokens import encode_texts
from text2grad.rewards.corrections import Completion, CorrectedBranch, find_corrections
from text2grad.rewards.credit import Credit, token_rewards
from text2grad.schema import Example, Feedback

TRIPLES = {"defacto": 80, "fgrlhf": 60, "xquad": 60}
SUMMARISE = "{article}\n\nSummarise the text above in one sentence."
STEP_SIZE, MAX_PROMPT = 0.5, 1500
BARS = {
    "replacement_up_share": Bar(at_least=0.98),
    "greedy_ratio": Bar(at_least=3.0),
    "locality_ratio": Bar(at_least=1.0),
}


class Triple(NamedTuple):
    """An answer with corrections, as ids. rewards: of its tokens."""

    prompt: list[int]
    answer: list[int]
    rewards: list[float]
    branches: list[CorrectedBranch]


class Look(NamedTuple):
    """logprob: mean over corrections of the mean over their tokens. greedy: whether all these are the most probable."""

    logprob: float
    greedy: bool


class Effect(NamedTuple):
    """up: mean change of the log-probability of the corrections. greedy: whether all of their tokens are now the most
    probable ones. inside, outside: mean absolute change of rewarded and of other tokens."""

    up: float
    greedy: bool
    inside: float
    outside: float


def main() -> None:
    args = options(__doc__ or "")
    name = DEFAULT_MODEL
    tokenizer = load_tokenizer(name)
    policy = Policy(load_model(name, torch.float32), keep_reference=False).to(args.device)
    start = {key: value.clone() for key, value in policy.model.state_dict().items()}
    figures: dict[str, Any] = {"sets": {}}
    effects: dict[bool, list[Effect]] = {True: [], False: []}
    before: list[bool] = []
    for set_name, examples in sources(args.device, args.quick).items():
        count = 2 if args.quick else TRIPLES[set_name]
        found = list(islice(triples(examples, tokenizer), count))
        for triple in found:
            looked = look(policy, triple)
            before.append(looked.greedy)
            for corrected in (True, False):
                effects[corrected].append(apply_step(policy, triple, corrected, looked))
                policy.model.load_state_dict(start)
        figures["sets"][set_name] = len(found)
    greedy = {key: fmean(effect.greedy for effect in of) for key, of in effects.items()}
    locality = {key: median(e.inside / max(e.outside, 1e-9) for e in of) for key, of in effects.items()}
    figures |= {
        "triples": len(before),
        "replacement_up_share": fmean(effect.up > 0 for effect in effects[True]),
        "replacement_up_share_without": fmean(effect.up > 0 for effect in effects[False]),
        "mean_up": fmean(effect.up for effect in effects[True]),
        "mean_up_without": fmean(effect.up for effect in effects[False]),
        "greedy_before": fmean(before),
        "greedy_with": greedy[True],
        "greedy_without": greedy[False],
        "greedy_ratio": greedy[True] / max(greedy[False], 1 / len(before)),
        "locality_with": locality[True],
        "locality_without": locality[False],
        "locality_ratio": locality[True] / locality[False],
    }
    rows = [
        [
            "replacement more probable",
            *(f"{figures[k]:.1%}" for k in ("replacement_up_share", "replacement_up_share_without")),
        ],
        ["its log-probability", *(f"{figures[k]:+.2f}" for k in ("mean_up", "mean_up_without"))],
        ["greedy decoding writes it", *(f"{figures[k]:.1%}" for k in ("greedy_with", "greedy_without"))],
        ["inside over outside", *(f"{figures[k]:.2f}" for k in ("locality_with", "locality_without"))],
    ]
    show(f"{len(before)} answers, one step", ["", "with corrections", "without"], rows)
    report("correction_steps", figures, {} if args.quick else BARS, args)


def sources(device: str, quick: bool) -> dict[str, Iterator[Example]]:
    """Return the answers of each set with their corrections in the feedback."""
    folder = data_folder()
    questions = list(xquad.read(folder / "xquad_en" / "xquad.en.json.gz"))[:: 60 if quick else 6]
    answered = untrained_answers(questions, 48, 1, device)
    judged = QACritic().critique(answered)
    return {
        "defacto": (_summary(example) for example in defacto.read(folder / "defacto" / "val.jsonl.gz")),
        "fgrlhf": iter(fgrlhf.read(folder / "fgrlhf_qa_feedback" / "dev_feedback.json.gz")),
        "xquad": (e.model_copy(update={"feedback": f}) for e, f in zip(answered, judged, strict=True)),
    }


def _summary(example: Example) -> Example:
    return example.model_copy(update={"prompt": SUMMARISE.format(article=example.prompt_text)})


def triples(examples: Iterator[Example], tokenizer: Any) -> Iterator[Triple]:
    """Yield the answers that have a replacement which the tokenizer can spell."""
    for example in examples:
        feedback = example.feedback
        if feedback is None or not any(span.replacement for span in feedback.spans):
            continue
        triple = make_triple(example, feedback, tokenizer)
        if triple is not None and len(triple.prompt) <= MAX_PROMPT:
            yield triple


def make_triple(example: Example, feedback: Feedback, tokenizer: Any) -> Triple | None:
    kept = feedback.model_copy(update={"spans": [s for s in feedback.spans if s.replacement], "omissions": []})
    (prompt,) = encode_prompts([example], tokenizer, False, 1 << 30, 1)
    ids = [*encode_texts([example.completion], tokenizer)[0], int(tokenizer.eos_token_id)]
    if decode(ids, tokenizer) != example.completion:
        return None
    ranges = offsets(ids, tokenizer)
    branches, _ = find_corrections(
        kept,
        Completion(ids, example.completion, ranges, ended=True),
        tokenizer,
        encode=lambda text: encode_texts([text], tokenizer)[0],
    )
    rewards = token_rewards(kept, ranges, credit=Credit(mode="uniform")).rewards.tolist()
    return Triple(prompt, ids, rewards, branches) if branches and any(rewards) else None


def apply_step(policy: Policy, triple: Triple, corrected: bool, old: Look) -> Effect:
    """Make one step and measure; the caller restores the weights. old: the look before it."""
    branches = triple.branches if corrected else []
    (before, after), *_ = constrained_step(policy, triple.prompt, triple.answer, triple.rewards, STEP_SIZE, branches)
    moved = [abs(b - a) for a, b in zip(before, after, strict=True)]
    inside = [change for change, reward in zip(moved, triple.rewards, strict=True) if reward]
    outside = [change for change, reward in zip(moved, triple.rewards, strict=True) if not reward]
    new = look(policy, triple)
    return Effect(new.logprob - old.logprob, new.greedy, fmean(inside), fmean(outside) if outside else 0.0)


@torch.no_grad()
def look(policy: Policy, triple: Triple) -> Look:
    """Score each correction after what is before it."""
    policy.eval()
    device = next(policy.parameters()).device
    means, greedy = [], True
    for branch in triple.branches:
        prefix = triple.prompt + triple.answer[: branch.start]
        ids = torch.tensor([prefix + branch.ids], device=device)
        logits = policy.model(input_ids=ids, logits_to_keep=len(branch.ids) + 1).logits[0, :-1]
        best, own = logits.argmax(-1).tolist(), ids[0, len(prefix) :, None]
        logprobs = logits.log_softmax(-1).gather(-1, own).squeeze(-1)
        for correction in branch.corrections:
            inside = slice(correction.first, correction.last)
            means.append(float(logprobs[inside].mean()))
            greedy = greedy and best[inside] == branch.ids[inside]
    return Look(fmean(means), greedy)


if __name__ == "__main__":
    main()
