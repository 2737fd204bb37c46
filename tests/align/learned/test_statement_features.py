import pytest

from text2grad.align.answer.program import Program, find_statements
from text2grad.align.learned.statement_features import compute_statement_features

CODE = """def factorial(n):
    result = 1
    for i in range(1, n):
        result *= i
    return result
"""


def column(name, comment):
    program = Program(CODE, 0)
    names, matrix = compute_statement_features(comment, list(find_statements(program).values()), program)
    assert matrix.shape == (5, len(names))
    return matrix[:, names.index(name)].tolist()


@pytest.mark.parametrize(
    ("concept", "comment", "lines"),
    [
        ("loop", "The loop stops early.", [3]),
        ("range", "Off by one.", [3]),
        ("return", "It returns nothing.", [5]),
        ("start", "It is initialised wrongly.", [2]),
        ("update", "It does not accumulate.", [4]),
        ("loop", "Wrong.", []),
    ],
)
def test_a_concept_is_a_word_and_what_it_looks_like_in_code(concept, comment, lines):
    found = column(f"concept_{concept}", comment)
    assert [number for number, value in enumerate(found, 1) if value] == lines


def test_names_are_counted_in_each_statement():
    assert column("named", "The variable result is wrong.") == [0, 1, 0, 1, 1]
    assert column("share_named", "The variable result is wrong.") == pytest.approx([0, 1 / 3, 0, 1 / 3, 1 / 3])


def test_inputs_are_where_parameters_are_used():
    assert column("uses_input", "It fails on large inputs.") == [0, 0, 1, 0, 0]


def test_code_that_the_comment_has_word_for_word():
    assert column("verbatim", "It should be range(1, n + 1), not range(1, n).") == [0, 0, len("range(1"), 0, 0]
