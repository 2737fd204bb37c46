"""CSV as people and spreadsheets write it: semicolons, byte order marks, empty rows, quotation marks left open."""

from __future__ import annotations

import codecs
import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from text2grad.errors import UserError
from text2grad.files import open_maybe_gzip

SAVE_AS_CSV = "save it as CSV (UTF-8) and give that file"
_MAX_CELL = 1 << 30  # characters; Python's own limit is less than a long document
_ZIPPED = b"PK\x03\x04"  # how the file of a spreadsheet program starts
_SEPARATOR = re.compile(r"\"?sep=(?P<separator>.)\"?\s*", re.IGNORECASE)


def read_table(path: Path, delimiter: str | None = None) -> Iterator[tuple[int, dict[str, str | None] | str]]:
    """Yield the line and the cells of each row, or why it cannot be read; empty cells are None, empty rows left out.

    delimiter: None for that of a first line "sep=;", which Excel writes, or else the header's most frequent.
    Raises UserError for a file that is no table.
    """
    csv.field_size_limit(_MAX_CELL)
    try:
        with open_maybe_gzip(path, "rt", encoding=_encoding(path), newline="") as file:
            first = file.readline()
            stated = _SEPARATOR.fullmatch(first)
            if stated:
                delimiter, first = stated["separator"], file.readline()
            records = _records(chain([first], file), delimiter or _guess_delimiter(first), 1 if stated else 0)
            number, header = next((record for record in records if record[1]), (1, []))
            if isinstance(header, str):
                raise UserError(f"{path}:{number}: not valid CSV ({header})")
            columns = _check_header(path, header)
            for number, cells in records:
                if isinstance(cells, str):
                    yield number, f"not valid CSV ({cells})"
                elif any(cell.strip() for cell in cells):
                    yield number, _name_cells(columns, cells)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error}); save it as CSV UTF-8") from error


def _records(lines: Iterable[str], delimiter: str, number: int) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the last line and the cells of each record, or the first line and the fault of a broken one.

    Reading goes on with the second line of a broken record: a quotation mark that is never closed costs a row, not the
    rest of the file. number: the line before the first.
    """
    left, again = iter(lines), deque[str]()  # again: lines of a broken record, to be read before those that are left
    while True:
        read: list[str] = []
        try:
            for cells in csv.reader(_noted(left, again, read), delimiter=delimiter, strict=True):
                number += len(read)
                read.clear()
                yield number, cells
            return
        except csv.Error as error:
            number += 1
            yield number, _explain(error)
            again.extendleft(reversed(read[1:]))


def _explain(error: csv.Error) -> str:
    """Return the fault in words for the two that people make."""
    fault = str(error)
    if "expected after" in fault:
        return 'in a cell that starts with a quotation mark, double those within it: """Friday"" is wrong"'
    return "a quotation mark is never closed" if "unexpected end" in fault else fault


def _noted(lines: Iterator[str], again: deque[str], read: list[str]) -> Iterator[str]:
    """Yield the lines `again`, then the others, and note each in `read`."""
    while (line := again.popleft() if again else next(lines, None)) is not None:
        read.append(line)
        yield line


def _encoding(path: Path) -> str:
    """Return what the byte order mark says: UTF-8, or UTF-16, which Excel calls Unicode text."""
    with open_maybe_gzip(path, "rb") as file:
        start = file.read(len(_ZIPPED))
    if start == _ZIPPED:
        raise UserError(f"{path}: a spreadsheet, whatever its name says; {SAVE_AS_CSV}")
    return "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def _guess_delimiter(header: str) -> str:
    unquoted = re.sub(r"\"[^\"]*\"", "", header)
    return max(",;\t", key=unquoted.count)


def _check_header(path: Path, header: list[str]) -> list[str]:
    """Return the names of the columns; several may have none, as spreadsheets write columns that were cleared."""
    names = [name.strip() for name in header]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise UserError(f"{path}: more than one column is named {', '.join(twice)}; rename or delete the others")
    return names


def _name_cells(columns: list[str], cells: list[str]) -> dict[str, str | None] | str:
    if len(cells) != len(columns):
        advice = "; quote cells with commas in them" if len(cells) > len(columns) else ""
        return f"the row has {len(cells)} cells and the header {len(columns)}{advice}"
    return {column: cell or None for column, cell in zip(columns, cells, strict=True) if column or cell}
