import pytest

from text2grad.critics.grounding import GroundingCritic
from text2grad.critics.named import CRITICS, _imported, make_critic
from text2grad.errors import UserError


def test_critics_of_the_package_go_by_name() -> None:
    critic = make_critic("grounding", {"max_words": 20})
    assert isinstance(critic, GroundingCritic)
    assert critic.max_words == 20


def test_every_name_leads_to_a_class() -> None:
    assert all(callable(_imported(path).critique) for path in CRITICS.values())


def test_the_users_own_go_by_dotted_path() -> None:
    assert type(make_critic("support:VowelCritic", {})).__name__ == "VowelCritic"


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("groundin", {}, 'unknown critic "groundin"; did you mean "grounding"'),
        ("nowhere:Critic", {}, 'critic "nowhere:Critic" cannot be imported'),
        ("support:Nobody", {}, "cannot be imported"),
        ("grounding", {"max_wrds": 3}, "does not take these options"),
        ("pathlib:Path", {}, "has no method critique"),
    ],
)
def test_what_is_no_critic_is_named(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(UserError) as error:
        make_critic(name, options)
    assert says in str(error.value)
