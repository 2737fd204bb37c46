from collections.abc import Iterator

import pytest

from text2grad.critics.code.runner import check_judge
from text2grad.errors import UserError
from text2grad.sandbox import ExecutionResult, Sandbox


def test_a_sandbox_in_which_nothing_passes_is_an_error_and_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> Iterator[ExecutionResult]:
        yield ExecutionResult("exit", 1, "", "", 0.1, 0.1, 0)

    sandbox = Sandbox()
    monkeypatch.setattr(sandbox, "run_all", crash)
    with pytest.raises(UserError, match=r"a correct program does not pass its test in the sandbox of this .*: crash"):
        check_judge(sandbox)
