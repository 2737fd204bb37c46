"""The parts of a written answer: sentences, lines, paragraphs, list items, and the parts of letters and recipes."""

# ruff: noqa: E501  one pattern per line

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from text2grad.align.answer.program import Program, extract_program
from text2grad.schema import Range
from text2grad.text.lexicon import ABBREVIATIONS, FUNCTION_WORDS

_LINE = re.compile(r"[^\r\n]+")
_FENCE = re.compile(r"^(```+|~~~+).*?(?:^\1[ \t]*$|\Z)", re.M | re.S)
_BULLET = re.compile(r"[ \t]*(?:[-*•‣◦–]|\(?\d{1,3}[.):]|\(?[a-z][.)]|step\s+\d+\s*[:.)-])\s+(?=\S)", re.IGNORECASE)
_NUMBERED = re.compile(r"[ \t]*(?:\(?(\d{1,3})[.):]|step\s+(\d+)\s*[:.)-]?)\s+(?=\S)", re.IGNORECASE)
_HEADING = re.compile(r"[ \t]*(?:#{1,6}\s+\S.*|\*\*[^*\n]+\*\*:?|[^.!?,;]{1,60}:)[ \t]*")
_SUBJECT = re.compile(r"[ \t]*(?:subject|subject line|re|betreff)[ \t]*:[ \t]*(?=\S)", re.IGNORECASE)
_GREETING = re.compile(
    r"[ \t]*(?:dear|hi|hello|hey|good (?:morning|afternoon|evening)|greetings|to whom it may concern)\b.{0,60}$", re.I
)
_SIGN_OFF = re.compile(
    r"[ \t]*(?:yours(?: \w+)?|(?:\w+ )?sincerely(?: yours)?|(?:kind|best|warm|warmest|many|with (?:kind|best|warm)) "
    r"(?:regards|wishes|thanks)|regards|best|cheers|love|thanks(?: again)?|thank you|many thanks|respectfully"
    r"|all the best|take care|see you(?: \w+)?|xoxo|warmly|cordially|hugs|faithfully)\b[\w ,]{0,30}[,!.]?\s*$",
    re.IGNORECASE,
)
_POSTSCRIPT = re.compile(r"[ \t]*p\.?\s?s\.?[ \t:,.]", re.IGNORECASE)
_INGREDIENTS = re.compile(r"ingredients?|you(?:['’]ll| will)? need|what you need|materials", re.IGNORECASE)
_STEPS = re.compile(r"steps?|method|instructions?|directions?|preparation|procedure|how to", re.IGNORECASE)
_QUANTITY = re.compile(r"[ \t]*(?:[-*•]\s*)?(?:\d|½|¼|¾|a |an |one |two |three |some |half )", re.IGNORECASE)
_STOP = re.compile(r"[.!?…]+[\"'”’)\]*]*(?=\s|$)|[。！？]|\n")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_HALF_DAYS = ("a.m", "p.m")
_STARTERS = FUNCTION_WORDS - {"may", "will"}
_CAPITALIZED = re.compile(r"\s+[\"'“‘(]*(?P<word>[A-Z][\w’']*)")
_MIN_QUANTITY_SHARE = 0.5


class Document:
    """A completion and the ranges of its parts. Ranges have no white space at their ends."""

    def __init__(self, text: str, prompt: str = "") -> None:
        self.text = text
        self._prompt = prompt

    @cached_property
    def program(self) -> Program | None:
        """The program, if the completion is or contains one that parses or is fenced."""
        program = extract_program(self.text, self._prompt)
        return program if program and (program.nodes() or _FENCE.search(self.text)) else None

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables and functions of the program."""
        nodes = self.program.own_nodes() if self.program else []
        variables = {node.id for node in nodes if isinstance(node, ast.Name)}
        return frozenset(variables | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)})

    @cached_property
    def code(self) -> list[Range]:
        """The fenced blocks."""
        return [match.span() for match in _FENCE.finditer(self.text)]

    @cached_property
    def lines(self) -> list[Range]:
        """The lines that are not empty."""
        return [place for match in _LINE.finditer(self.text) if (place := self._trim(*match.span()))]

    @cached_property
    def paragraphs(self) -> list[Range]:
        """The blocks between empty lines; headings alone, subject, greeting and sign-off are no paragraphs."""
        blocks = [self._trim(*span) for span in _blocks(self.text)]
        special = [*self.title, *self.subject_lines, *self.greeting, *self.sign_off]
        rest = [block for block in blocks if block and not _inside_any(block, special)]
        return [block for block in rest if not self._is_heading(block)] or rest

    @cached_property
    def sentences(self) -> list[Range]:
        """The sentences of the prose; a line break ends one where the lines are items, headings or parts of a letter."""
        found = []
        special = {*self.subject_lines, *self.greeting, *self.sign_off, *self.headings, *self.title}
        for line in self._sentence_lines():
            if line in special or _inside_any(line, self.code) or _inside_any(line, self.sign_off):
                continue
            found += list(self._split(*line))
        return found or list(self.lines)

    @cached_property
    def items(self) -> list[Range]:
        """The items of lists, without their marks."""
        return [(start, end) for start, end, _ in self._marked_items]

    @cached_property
    def bullets(self) -> list[Range]:
        """The items that are not numbered; all items if all are."""
        plain = [(start, end) for start, end, number in self._marked_items if number is None]
        return plain or self.items

    @cached_property
    def steps(self) -> list[Range]:
        """The steps of instructions: numbered items, else the items under "Method", else the sentences there."""
        numbered = [(start, end) for start, end, number in self._marked_items if number is not None]
        if len(numbered) > 1:
            return numbered
        section = self._section(_STEPS)
        inside = [item for item in self.items if section and _inside_any(item, [section])]
        if inside:
            return inside
        if section:
            return [place for place in self.sentences if _inside_any(place, [section])]
        return [item for item in self.items if item not in self.ingredients] or self.sentences

    @cached_property
    def ingredients(self) -> list[Range]:
        """The list under "Ingredients", else the first list whose items begin with quantities."""
        section = self._section(_INGREDIENTS)
        if section:
            inside = [item for item in self.items if _inside_any(item, [section])]
            if inside:
                return inside
            own = [line for line in self.lines if _inside_any(line, [section])]
            if len(own) == 1:  # "Ingredients: 2 eggs, 100 g flour, milk"
                return list(self._comma_parts(*own[0]))
            return own
        numbered = {(start, end) for start, end, number in self._marked_items if number is not None}
        plain = [item for item in self.items if item not in numbered]
        quantities = [item for item in plain if _QUANTITY.match(self.text, *item)]
        return plain if plain and len(quantities) >= _MIN_QUANTITY_SHARE * len(plain) else []

    @cached_property
    def headings(self) -> list[Range]:
        """The lines that are headings."""
        return [line for line in self.lines if self._is_heading(line)]

    @cached_property
    def title(self) -> list[Range]:
        """The first line, if it is a heading or stands alone above the rest without ending in a full stop."""
        if len(self.lines) < 2 or self.subject_lines[:1] == self.lines[:1] or self.greeting[:1] == self.lines[:1]:
            return []
        start, end = self.lines[0]
        text = self.text[start:end]
        label = re.match(r"(?:#{1,6}\s+|\*\*|title[ \t]*:[ \t]*)", text, re.IGNORECASE)
        alone = text[-1] not in ".!?,;" and len(text.split()) <= 12 and not _BULLET.match(text)
        below = self.text[end : self.lines[1][0]].count("\n") > 1 or len(self.lines) > 3
        starts_program = self.program is not None and start >= self.program.start
        if starts_program or not (label or (alone and below and not text.endswith(":"))):
            return []
        return [(start + (label.end() if label else 0), end - (len(text) - len(text.rstrip("*# "))))]

    @cached_property
    def subject_lines(self) -> list[Range]:
        """The subject line of an e-mail, without the word "Subject"."""
        matches = ((line, _SUBJECT.match(self.text, *line)) for line in self.lines[:3])
        return [(match.end(), line[1]) for line, match in matches if match]

    @cached_property
    def greeting(self) -> list[Range]:
        """The greeting of a letter."""
        return [line for line in self.lines[:5] if _GREETING.match(self.text[slice(*line)])][:1]

    @cached_property
    def sign_off(self) -> list[Range]:
        """The closing words of a letter, with the name below them."""
        if not self.greeting and not self.subject_lines:
            return []
        for i in range(len(self.lines) - 1, max(0, len(self.lines) - 6), -1):
            if _SIGN_OFF.match(self.text[slice(*self.lines[i])]):
                name = [line for line in self.lines[i + 1 : i + 3] if not _POSTSCRIPT.match(self.text[slice(*line)])]
                return [(self.lines[i][0], name[-1][1] if name else self.lines[i][1])]
        return []

    @cached_property
    def signature(self) -> list[Range]:
        """The name at the end of a letter."""
        below = [line for line in self.lines if self.sign_off and self.sign_off[0][0] < line[0] < self.sign_off[0][1]]
        return below[-1:] or self.sign_off

    @cached_property
    def postscript(self) -> list[Range]:
        """The lines that begin with "P.S."."""
        return [line for line in self.lines if _POSTSCRIPT.match(self.text[slice(*line)])]

    @cached_property
    def questions(self) -> list[Range]:
        """The sentences that are questions."""
        return [place for place in self.sentences if self.text[slice(*place)].rstrip("\"'”’)").endswith("?")]

    @cached_property
    def lists(self) -> list[Range]:
        """All items together, as one range."""
        return [(self.items[0][0], self.items[-1][1])] if self.items else []

    def sentence_at(self, position: int) -> Range:
        """Return the sentence, item or line around a character; the whole text if there is none."""
        for places in (self.sentences, self.lines):
            for start, end in places:
                if start <= position < end:
                    return start, end
        return self.whole

    @cached_property
    def whole(self) -> Range:
        """The text without white space around it."""
        return self._trim(0, len(self.text)) or (0, len(self.text))

    @cached_property
    def _marked_items(self) -> list[tuple[int, int, int | None]]:
        found = []
        for start, end in self.lines:
            if _inside_any((start, end), self.code):
                continue
            match = _BULLET.match(self.text, start, end)
            if match and match.end() < end and not (self.program and self.program.start <= start):
                number = _NUMBERED.match(self.text, start, end)
                found.append((match.end(), end, int(number[1] or number[2]) if number else None))
        return found

    def _section(self, heading: re.Pattern[str]) -> Range | None:
        """Return the text from a heading with these words to the next heading."""
        for i, line in enumerate(self.headings):
            if heading.search(self.text, *line):
                following = self.headings[i + 1][0] if i + 1 < len(self.headings) else len(self.text)
                return self._trim(line[1], following)
        inline = re.search(rf"^[ \t]*(?:{heading.pattern})[ \t]*:[ \t]*(?=\S)", self.text, re.M | re.I)
        if inline:
            stop = self.text.find("\n", inline.end())
            return self._trim(inline.end(), stop if stop >= 0 else len(self.text))
        return None

    def _is_heading(self, line: Range) -> bool:
        text = self.text[slice(*line)]
        if "\n" in text or _GREETING.match(text) or self._in_program(line):
            return False
        return _HEADING.fullmatch(text) is not None and len(text.split()) <= 10

    def _in_program(self, place: Range) -> bool:
        return self.program is not None and self.program.start <= place[0] < self.program.start + len(self.program.code)

    def _sentence_lines(self) -> Iterator[Range]:
        """Yield the lines, wrapped lines of one paragraph joined."""
        joined: Range | None = None
        items = {place[1] for place in self.items}
        special = {*self.subject_lines, *self.greeting, *self.sign_off, *self.headings, *self.title}
        for line in self.lines:
            start = next((item[0] for item in self.items if item[1] == line[1]), line[0])
            if joined is not None:
                gap = self.text[joined[1] : line[0]]
                wraps = gap.count("\n") == 1 and self.text[joined[1] - 1] not in ".!?:;" and line[1] not in items
                if wraps and line not in special and joined not in special:
                    joined = (joined[0], line[1])
                    continue
                yield joined
            joined = (start, line[1])
        if joined is not None:
            yield joined

    def _split(self, start: int, end: int) -> Iterator[Range]:
        """Yield the sentences of a line or wrapped paragraph."""
        begin = start
        for match in _STOP.finditer(self.text, start, end):
            if match[0] == "\n":
                continue
            before = re.search(r"[\w.]*$", self.text[begin : match.start()])
            word = before[0].lower() if before else ""
            following = self.text[match.end() : end].lstrip()[:1]
            abbreviated = match[0] == "." and (word in ABBREVIATIONS or _INITIALS.fullmatch(word))
            abbreviated = abbreviated and not self._starts_after_time(word, match.end(), end)
            if (abbreviated or following.islower()) and match.end() < end:
                continue
            if place := self._trim(begin, match.end()):
                yield place
            begin = match.end()
        if place := self._trim(begin, end):
            yield place

    def _starts_after_time(self, word: str, position: int, end: int) -> bool:
        """Whether a sentence starts after "a.m." or "p.m.": with a capital that no name has ("We", "The")."""
        following = _CAPITALIZED.match(self.text, position, end)
        return word in _HALF_DAYS and following is not None and following["word"].lower() in _STARTERS

    def _comma_parts(self, start: int, end: int) -> Iterator[Range]:
        for match in re.finditer(r"[^,;]+", self.text[start:end]):
            if place := self._trim(start + match.start(), start + match.end()):
                yield place

    def _trim(self, start: int, end: int) -> Range | None:
        piece = self.text[start:end]
        start, end = start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))
        return (start, end) if start < end else None


def _blocks(text: str) -> Iterator[Range]:
    start = 0
    for match in re.finditer(r"\n[ \t]*(?:\r?\n[ \t]*)+", text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _inside_any(place: Range, others: list[Range]) -> bool:
    return any(start <= place[0] and place[1] <= end for start, end in others)
