"""Corrections from written feedback: how often they are found, and how often they are what the person wrote.

Part "extraction": DeFacto's validation split. The comment is the person's instruction, as written; where the person
found no error and gave no instruction, the explanation. `find_corrections` sees comment, summary and article; the
person's corrected summary is the truth. By the verbs of `instruction_list`:
  deletions     rows with "Remove": how many of them have a correction from such a sentence, and how many of these
                corrections agree with the corrected summary: after the last word before the removal, it goes on with
                the next two words of the answer. "apart from other changes" skips words next to the removal that the
                person changed as well, for another reason; "words gone" asks only whether none of the removed words is
                left.
  replacements  rows with "Replace", or with another verb and "to": the same; the corrected summary has the new words at
                that place (between the nearest words that it keeps), up to case, punctuation and an article.
  neither       rows with none of these: nothing should be found.

The rules were written and the weights of removals trained on the training split (`train_removals.py`), on which
`--quick` reports; the validation split was looked at three times. "rows where a removal can agree" bounds what removing
words can reach by this measure: in the others, the person rewrote the words around the removal too.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from corrections_judge import agrees, agrees_apart_from_other_changes, has_at_place, lacks_words
from harness import Bar, data_folder, options, report, show

from text2grad.align.answer.cuts import cut, still_reads
from text2grad.align.corrections.corrections import Correction, find_corrections
from text2grad.data.reading import read_rows
from text2grad.schema import Range
from text2grad.text.whitespace import split_words

BARS = {
    "deletions/found": Bar(at_least=0.60),
    "deletions/right": Bar(at_least=0.90),
    "replacements/found": Bar(at_least=0.45),
    "replacements/right": Bar(at_least=0.75),
    "neither/nothing found": Bar(at_least=0.97),
}
_VERB = re.compile(r"\w+")
_CHANGE_TO = re.compile(r"\b(?:modify|change|edit)\b.*\bto\b", re.IGNORECASE)


def main() -> None:
    args = options(__doc__ or "")
    split = "train" if args.quick else "val"
    rows = list(read_rows(data_folder() / "defacto" / f"{split}.jsonl.gz", "DeFacto"))
    figures = measure_extraction(rows)
    show(
        f"Corrections found in DeFacto's comments ({split})",
        ["comments that ask for", "rows", "found", "corrections", "right", "apart from other changes", "words gone"],
        [
            [
                kind,
                str(figures[f"{kind}/rows"]),
                f"{figures[f'{kind}/found']:.3f}",
                str(figures[f"{kind}/corrections"]),
                f"{figures[f'{kind}/right']:.3f}",
                *(
                    f"{figures[f'deletions/{name}']:.3f}" if kind == "deletions" else ""
                    for name in ("right apart from other changes", "words gone")
                ),
            ]
            for kind in ("deletions", "replacements")
        ]
        + [["neither", str(figures["neither/rows"]), f"{1 - figures['neither/nothing found']:.3f}", "", "", "", ""]],
    )
    report("corrections", {"split": split, **figures}, BARS, args)


def measure_extraction(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of the part "extraction"."""
    counts: Counter[str] = Counter()
    for row in rows:
        feedback = row["feedback"]
        comment = feedback["instruction"] or feedback["explanation"]
        found = find_corrections(comment, row["candidate"], row["article"])
        sentences = _sentences(comment, feedback["instruction_list"])
        asked = {kind for _, kind in sentences}
        for kind in ("deletions", "replacements"):
            if kind in asked:
                own = [each for each in found if _kind_of(each, sentences) == kind]
                counts[f"{kind}/rows"] += 1
                counts[f"{kind}/found"] += bool(own)
                counts[f"{kind}/can agree"] += kind == "deletions" and _can_agree(row["candidate"], feedback["summary"])
                for each in own:
                    counts[f"{kind}/corrections"] += 1
                    counts.update(_judge(each, kind, row["candidate"], feedback["summary"]))
        if not asked & {"deletions", "replacements"}:
            counts["neither/rows"] += 1
            counts["neither/nothing found"] += not found
    figures: dict[str, Any] = {}
    for kind in ("deletions", "replacements"):
        made = max(1, counts[f"{kind}/corrections"])
        figures |= {
            f"{kind}/rows": counts[f"{kind}/rows"],
            f"{kind}/found": counts[f"{kind}/found"] / max(1, counts[f"{kind}/rows"]),
            f"{kind}/corrections": counts[f"{kind}/corrections"],
            f"{kind}/right": counts[f"{kind}/right"] / made,
        }
    names = ("deletions/right apart from other changes", "deletions/words gone")
    return (
        figures
        | {name: counts[name] / max(1, counts["deletions/corrections"]) for name in names}
        | {
            "deletions/rows where a removal can agree": counts["deletions/can agree"]
            / max(1, counts["deletions/rows"]),
            "neither/rows": counts["neither/rows"],
            "neither/nothing found": counts["neither/nothing found"] / max(1, counts["neither/rows"]),
        }
    )


def _sentences(comment: str, instructions: list[str]) -> list[tuple[Range, str]]:
    """Return the range of each instruction in the comment, and what it asks for by its verb."""
    found = []
    position = 0
    for instruction in instructions:
        start = comment.find(instruction, position)
        position = max(position, start + len(instruction))
        verb = _VERB.search(instruction)
        name = verb[0].lower() if verb else ""
        is_replacement = name == "replace" or _CHANGE_TO.match(instruction) is not None
        kind = "deletions" if name == "remove" else "replacements" if is_replacement else "other"
        found.append(((start, start + len(instruction)), kind))
    return found


def _kind_of(correction: Correction, sentences: list[tuple[Range, str]]) -> str | None:
    at = correction.phrase[0]
    return next((kind for (start, end), kind in sentences if start <= at < end), None)


def _can_agree(answer: str, corrected: str) -> bool:
    """Whether any removal of a run of words, after which the answer still reads, agrees with the corrected summary."""
    words = split_words(answer)
    return any(
        agrees(answer, *cut(answer, words, first, last), corrected)
        for first in range(len(words))
        for last in range(first + 1, len(words) + 1)
        if still_reads(words, first, last)
    )


def _judge(correction: Correction, kind: str, answer: str, corrected: str) -> list[str]:
    """Return the names of the counts that a correction adds to."""
    place = (correction.start, correction.end)
    if kind == "replacements":
        is_right = has_at_place(answer, *place, correction.replacement, corrected)
        return ["replacements/right"] if is_right else []
    is_right = agrees(answer, *place, correction.replacement, corrected)
    judgements = {
        "right": is_right,
        "right apart from other changes": is_right or agrees_apart_from_other_changes(answer, *place, corrected),
        "words gone": is_right or lacks_words(answer, *place, corrected),
    }
    return [f"deletions/{name}" for name, holds in judgements.items() if holds]


if __name__ == "__main__":
    main()
