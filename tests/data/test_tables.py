"""CSV as people and spreadsheets write it."""

from __future__ import annotations

import time

import pytest

from text2grad.data.tables import read_table
from text2grad.errors import UserError


def read(tmp_path, content, encoding="utf-8"):
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode(encoding))
    return list(read_table(path))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks(tmp_path, encoding):
    assert read(tmp_path, "Frage;Antwort\r\nWann?;Caf\u00e9\r\n", encoding) == [
        (2, {"Frage": "Wann?", "Antwort": "Caf\u00e9"})
    ]


@pytest.mark.parametrize("line", ["sep=;\r\n", '"sep=;"\r\n', "SEP=;\n"])
def test_a_line_that_names_the_separator(tmp_path, line):
    assert read(tmp_path, f"{line}p,x;q\n1;2\n") == [(3, {"p,x": "1", "q": "2"})]


def test_commas_in_quoted_names_are_no_separators(tmp_path):
    assert read(tmp_path, '"a, b, c";q\n1;2\n') == [(2, {"a, b, c": "1", "q": "2"})]


def test_rows_and_columns_that_a_spreadsheet_left_empty(tmp_path):
    rows = read(tmp_path, "\n p ,q,,\n1,,,\n,,,\n , ,,\n\n2,3,,note\n")
    assert rows == [(3, {"p": "1", "q": None}), (7, {"p": "2", "q": "3", "": "note"})]


def test_a_broken_row_costs_no_other(tmp_path):
    table = 'p,q\n1,"a\nb"\n2,"open\n3,"x" y\n4\n5,6\n7,"open too\n8,9\n'
    first, *rest = read(tmp_path, table)
    assert first == (3, {"p": "1", "q": "a\nb"})
    doubled = 'double those within it: """Friday"" is wrong")'
    assert [(line, row.endswith(doubled) or row if isinstance(row, str) else row) for line, row in rest] == [
        (4, True),
        (5, True),
        (6, "the row has 1 cells and the header 2"),
        (7, {"p": "5", "q": "6"}),
        (8, "not valid CSV (a quotation mark is never closed)"),
        (9, {"p": "8", "q": "9"}),
    ]


def test_a_cell_may_hold_a_long_document(tmp_path):
    document = "a line of it\n" * 20_000
    assert read(tmp_path, f'p,q\n"{document}",1\nx,2\n') == [
        (20_002, {"p": document, "q": "1"}),
        (20_003, {"p": "x", "q": "2"}),
    ]


def test_many_broken_rows_take_no_longer_than_others(tmp_path):
    start = time.process_time()
    rows = read(tmp_path, "p,q\n" + '"a"b,c\n' * 30_000)
    assert len(rows) == 30_000
    assert time.process_time() - start < 1.0  # every row once more for each one before it would take several seconds


def test_two_columns_of_one_name(tmp_path):
    with pytest.raises(UserError, match=r"a\.csv: more than one column is named Comment; rename or delete the others"):
        read(tmp_path, "Comment,Answer,Comment \n1,2,3\n")


def test_an_empty_file_has_no_rows(tmp_path):
    assert read(tmp_path, "") == read(tmp_path, "p,q\n") == []
