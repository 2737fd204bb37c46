"""The code critic, where there is a sandbox."""

import pytest

from text2grad.critics.code import CodeCritic
from text2grad.errors import UserError


@pytest.fixture(scope="session")
def critic() -> CodeCritic:
    try:
        return CodeCritic()
    except UserError as error:
        pytest.skip(str(error))
