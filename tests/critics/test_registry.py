from pathlib import Path

import pytest
from reward_support import tiny_reward_model, unlabelled

from text2grad.critics.registry import CRITICS, _imported, make_critic
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.errors import UserError
from text2grad.reward_model.model import SpanRewardModel


def test_critics_of_the_package_go_by_name() -> None:
    critic = make_critic("grounding", {"max_words": 20})
    assert isinstance(critic, GroundingCritic)
    assert critic.max_words == 20


def test_every_name_leads_to_a_class() -> None:
    assert all(callable(_imported(path).critique) for path in CRITICS.values())


def test_the_users_own_go_by_dotted_path() -> None:
    assert type(make_critic("support:VowelCritic", {})).__name__ == "VowelCritic"


def test_a_reward_model_goes_by_its_folder(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs: mine" / "rm"  # what comes after the first colon is the path
    tiny_reward_model(tiny_model).save_pretrained(folder)
    critic = make_critic(f"reward:{folder}", {})
    assert isinstance(critic, SpanRewardModel)
    assert critic.critique(unlabelled(["The fox."]))[0].status == "ok"
    chosen = make_critic(f"reward:{folder}", {"rewards": "spans", "device": "cpu"})
    assert isinstance(chosen, SpanRewardModel)
    assert chosen.settings.feedback.rewards == "spans"
    with pytest.raises(UserError, match='unknown key "reward"; did you mean "rewards"'):
        make_critic(f"reward:{folder}", {"reward": "spans"})
    with pytest.raises(UserError, match="is not a reward model"):
        make_critic(f"reward:{tmp_path}", {})


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
