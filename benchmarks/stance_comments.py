"""The comments that the stance model is trained and tuned on: hand-written clauses with slots, and public critiques."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from text2grad.schema import Range

FOLDER = Path(__file__).parent / "stance_data"
STANCES = ("good", "poor", "unsure")

_SLOTS = {
    "part": """
        the intro|the introduction|the ending|the second paragraph|the last line|the last sentence|the title
        |the headline|the first bullet|the conclusion|the opening|the middle section|paragraph two|step 3
        |the third step|the closing|the example|the explanation|the first half|the summary|the answer|the recipe
        |the letter|the greeting|the tone|the list|the part about the trip|the sentence on taxes|the comparison
        |the quote|the last bullet point|it|this|the bit about the dog|the paragraph on costs|"a long way to go"
        |"the best of all"|the description|this sentence|this part|the reference|the analogy|the choice of words
        |the wording|your first point|the final remark|the metaphor|the loop|the code|the function
        |the section on safety|the sign-off|the dressing|the method|the timeline|the way it ends
        |the advice on sleep|the whole thing|the rest|everything else|that joke|that claim|the table
        """,
    "cpart": """
        the loop|the while loop|the condition|the if statement|the return value|the return statement
        |the base case|the function|line 4|line 12|the last line|the variable name|`count`|`result = []`
        |the index|the range|the recursion|the regex|the import|the comparison|the helper function
        |the exception handling|the sort|the initial value|the dictionary|the code|x += 1|the call to sorted()
        |the slice|`i < n`|word_count()|the else branch|the test|the list comprehension|the operator
        |the signature
        """,
    "thing": """
        the strike|photosynthesis|inflation|the budget|the war|how engines work|the election|black holes|gravity
        |the law|the new bridge|interest rates|the disease|the trial|the storm|the flood|the policy|the weather
        |bread making|the history of the town|the accident|the rescue|his childhood|her career|their marriage
        |the vaccine|the concept|the topic|the process|the main idea|the theory|compound interest|the fine print
        |the background|the market|the team|the match|the injury|the murder|the crash|the poor harvest|the attack
        |the prison|the good old days|the charity|the prize|what happened next|the reason|the risks|the dosage
        |the side effects|chemistry|the moon|tax|a salad|butter
        """,
    "topic": """
        the price|the deadline|the opening hours|the side effects|the author|the mayor's name
        |the oven temperature|the cooking time|the date|the location|the phone number|the cause of the fire
        |the number of victims|the address|the second question|the result|the final score|the costs|the risks
        |the warranty|the salt|the baking powder|a greeting|a sign-off|an apology|an example|a conclusion
        |a source|a date|a title|the names of the suspects|the reaction of the union|the reason for the strike
        |the exceptions|the limitations|the ages|the weather|the return policy|my second point
        |the vegetarian option|the serving size|the reason why she resigned|the trial|the units|the year
        |the other side|the contact details|the children|the delivery date|allergies|parking|a closing line
        |a subject line|the resting time|the fee|the refund|the sister|any figures|some numbers
        """,
    "topics": """
        the prices|the names|the sources|the examples|the numbers|the steps|the ingredients|the victims|the eggs
        """,
    "bare": """
        price|deadline|date|conclusion|example|source|greeting|title|mention of the price
        |explanation of the terms|information about the cost|docstring|introduction|evidence|reason given
        |word about the victims|names|figures|apology|contact details|sign-off|warning about nuts
        |oven temperature|address|year
        """,
    "ctopic": """
        empty lists|empty strings|negative numbers|negative inputs|the value 0|an empty input|None|duplicates
        |large inputs|strings|the empty case|unsorted lists|ties|a single element|floats|missing keys|odd numbers
        |leap years|whitespace|uppercase letters|invalid input|the last element|edge cases|unicode|nested lists
        |the case n = 0|overflow
        """,
    "clause": """
        how much it costs|when it starts|who won|why he resigned|where it happened|how long it takes
        |what caused the fire|when to add the milk|how many people died|who wrote it|why the road was closed
        |what to do next|how to store it|whether children are allowed|how hot the oven must be
        |that it was raining|that the offer ends on Friday|what the function returns|which version is needed
        |where to buy tickets|how old she was|who she is
        """,
    "fact": """
        the date|the year|the number of victims|the name of the town|the score|the temperature|the price|her age
        |the amount of sugar|the spelling of the name|his job title|the location|the time|the name|the number
        |the percentage|the result|the capital|the quote|the order of events|the first name|the cause of death
        |the figure|the distance
        """,
    "fact2": """
        Friday|1998|12%|Leeds|44|200 grams|the mayor|seven|10 May|Berlin|two million|a nurse|180 degrees|"nine"
        |x + 1
        """,
    "fact3": """
        Monday|2001|15%|York|46|250 grams|the minister|nine|12 May|Paris|three million|a teacher|160 degrees
        |"ten"|x - 1
        """,
    "name": """
        Anna|Mr Brown|the minister|the mayor|Kane|Smith|the company|Apple|the police|the manager|Dr Lee
        |the author|Obama
        """,
    "name2": """
        Maria|Mrs Green|the judge|the sheriff|Rooney|Jones|the union|Google|the court|the owner|Dr Ray|the editor
        |Bush
        """,
    "noun": """
        summary|recipe|letter|sentence|paragraph|story|poem|word|list|title|program|test|reply|answer|essay
        |review
        """,
    "src": """
        the article|the source|the source text|the text|the report|the passage|the original|the document
        |the story|the interview|my notes|the original article|the source article|the study|the paper
        |the transcript|the minutes
        """,
    "ans": """
        the summary|the answer|it|this|the response|your text|the reply|the original summary|your answer
        |the letter|the recipe|this answer|the draft|the email|your summary
        """,
}
_CHOICES = {name: [choice.strip() for choice in text.split("|")] for name, text in _SLOTS.items()}
_LINE = re.compile(r"(good|poor|unsure): (.*)")


@dataclass(frozen=True)
class Labelled:
    """A clause with its stance, and the range of what it says is missing. skeleton: what it was made from."""

    text: str
    stance: str
    missing: Range | None
    skeleton: str


def read_labelled(name: str) -> list[Labelled]:
    """Return the clauses of a file that are labelled one by one, to tune on (dev.txt) or to check with (check.txt)."""
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    return [_labelled(match[2], match[1], match[2]) for match in found]


def read_skeletons() -> list[tuple[str, str]]:
    """Return the clauses with slots, and their stances."""
    found = []
    for name in ("good", "poor", "unsure", "missing"):
        lines = (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
        stance = "poor" if name == "missing" else name
        found += [(line, stance) for line in dict.fromkeys(lines) if line and not line.startswith("#")]
    return found


def fill(skeleton: str, stance: str, rng: random.Random) -> Labelled:
    """Return the skeleton with its slots filled; a slot with a capital starts a sentence."""

    def choose(slot: re.Match[str]) -> str:
        words = rng.choice(_CHOICES[slot[1].lower()])
        return words[:1].upper() + words[1:] if slot[1][0].isupper() else words

    text = re.sub(r"\{(\w+)\}", choose, skeleton)
    return _labelled(text, stance, skeleton)


def _labelled(text: str, stance: str, skeleton: str) -> Labelled:
    start, end = text.find("["), text.find("]")
    if start < 0 or '"' in text[:start] or "`" in text[: start + 1] or "= [" in text:
        return Labelled(text, stance, None, skeleton)
    return Labelled(text[:start] + text[start + 1 : end] + text[end + 1 :], stance, (start, end - 1), skeleton)


class Critique(NamedTuple):
    """A public critique, the stance that its row suggests, and the number of a row of DeFacto."""

    source: str
    stance: str
    text: str
    row: str = ""


def public_critiques(data: Path) -> Iterator[Critique]:
    """Yield public critiques."""
    for row in _rows(data / "defacto" / "train.jsonl.gz"):
        stance, number = "poor" if row["has_error"] else "good", str(row["doc_id"])
        yield Critique("defacto", stance, row["feedback"]["explanation"], number)
        for instruction in row["feedback"]["instruction_list"]:
            yield Critique("defacto instructions", "poor", instruction, number)
    for row in _rows(data / "ilf_code" / "surge_annotations.jsonl.gz"):
        yield Critique("ilf", "poor", row["Feedback"])
    for row in _rows(data / "debugbench_python" / "debugbench_python.jsonl.gz"):
        if isinstance(row.get("explanations"), str):
            yield Critique("debugbench", "poor", row["explanations"])


def _rows(path: Path) -> Iterator[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
