import os
import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from reward_support import tiny_reward_model, unlabelled

from text2grad.critics.registry import CRITICS, ENTRY_POINTS, available_critics, look_beside, make_critic
from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.errors import UserError
from text2grad.reward_model.model import SpanRewardModel

CRITIC_MODULE = """
class LengthCritic:
    def __init__(self, max_words=3): self.max_words = max_words
    def critique(self, examples): return []
"""


@pytest.fixture
def separate_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Additions to `sys.path` end with the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])


def test_critics_of_the_package_go_by_name() -> None:
    critic = make_critic("grounding", {"max_words": 20})
    assert isinstance(critic, GroundingCritic)
    assert critic.max_words == 20


def test_every_name_leads_to_a_critic() -> None:
    assert all(callable(resolve_name(path.partition(".from_pretrained")[0]).critique) for path in CRITICS.values())
    assert all(callable(resolve_name(path)) for path in CRITICS.values())


def test_the_users_own_go_by_import_string() -> None:
    assert type(make_critic("support:VowelCritic", {})).__name__ == "VowelCritic"


@pytest.mark.usefixtures("separate_path")
def test_a_module_of_the_current_folder_can_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "critics_of_this_folder.py").write_text(CRITIC_MODULE)
    with pytest.raises(UserError, match=f"must be installed, in {os.getcwd()}, or beside"):
        make_critic("critics_of_this_folder:LengthCritic", {})
    monkeypatch.chdir(tmp_path)
    assert vars(make_critic("critics_of_this_folder:LengthCritic", {"max_words": 5})) == {"max_words": 5}
    monkeypatch.delitem(sys.modules, "critics_of_this_folder")


@pytest.mark.usefixtures("separate_path")
def test_a_module_beside_the_configuration_comes_before_one_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here", "mine"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "critics_in_two_places.py").write_text(f"{CRITIC_MODULE}\n    place = '{folder}'\n")
    monkeypatch.chdir(tmp_path / "here")
    look_beside(tmp_path / "mine" / "config.yaml")  # no such file
    assert str(tmp_path / "mine") not in sys.path
    (tmp_path / "mine" / "config.yaml").touch()
    for path in (sys.path, ["", *sys.path]):  # as of the command, and of python -m
        monkeypatch.setattr(sys, "path", [*path])
        look_beside(tmp_path / "mine" / "config.yaml")
        made: Any = make_critic("critics_in_two_places:LengthCritic", {"max_words": 5})
        assert made.place == "mine"
        monkeypatch.delitem(sys.modules, "critics_in_two_places")


@pytest.mark.usefixtures("separate_path")
def test_a_file_of_the_current_folder_hides_no_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "support.py").write_text("raise RuntimeError")
    monkeypatch.delitem(sys.modules, "support")
    monkeypatch.chdir(tmp_path)
    assert type(make_critic("support:VowelCritic", {})).__name__ == "VowelCritic"


def test_built_in_names_leave_the_import_path_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_critic("grounding", {})
    assert str(tmp_path) not in sys.path


@pytest.mark.usefixtures("separate_path")
def test_installed_packages_register_critics_as_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "length_critics.py").write_text(CRITIC_MODULE)
    metadata = tmp_path / "length_critics-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: length-critics\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\nlength = length_critics:LengthCritic\ngrounding = length_critics:LengthCritic\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert vars(make_critic("length", {"max_words": 5})) == {"max_words": 5}
    assert available_critics()["grounding"] == CRITICS["grounding"]  # a package replaces no built-in critic
    with pytest.raises(UserError, match='did you mean "length"'):
        make_critic("lenght", {})
    monkeypatch.delitem(sys.modules, "length_critics")


def test_a_function_is_rejected_before_it_is_called(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a class with a method critique"):
        make_critic("os:system", {"command": f"touch {tmp_path / 'called'}"})
    assert not (tmp_path / "called").exists()


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
        ("grounding", {"max_wrds": 3}, 'critic "grounding" has no option "max_wrds"; did you mean "max_words"'),
        ("support:VowelCritic", {"x": 3}, 'critic "support:VowelCritic" has no option "x"; known: failing.'),
        ("support:SlowVowelCritic.from_file", {}, "SlowVowelCritic has no class method from_file"),
        ("support:VowelCritic.critique", {}, "VowelCritic has no class method critique"),
        ("support:VowelCritic.critique.__globals__", {}, "VowelCritic has no class method critique.__globals__"),
        ("human", {}, 'critic "human" needs the option "path": give critic.options.path=..., or --option path=...'),
        ("combined", {}, 'critic "combined" needs the option "critics"'),
        ("llm", {}, "critic llm: no model is named"),
        (
            "support:VowelCritic",
            {"failing": 3},
            "cannot be created: TypeError: 'int' object is not iterable (support.py",
        ),
        (".support:VowelCritic", {}, "cannot be imported: TypeError"),
        ("support:", {}, "cannot be imported"),
        (":VowelCritic", {}, "cannot be imported"),
        ("pathlib:Path", {}, "is not a class with a method critique"),
    ],
)
def test_errors_name_the_critic(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(UserError) as error:
        make_critic(name, options)
    assert says in str(error.value)


@pytest.mark.usefixtures("separate_path")
def test_a_module_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_critic.py").write_text("import os\n1 / 0\n")
    with pytest.raises(UserError, match=r"cannot be imported: ZeroDivisionError: .* \(broken_critic.py, line 2\)"):
        make_critic("broken_critic:Mine", {})
    (tmp_path / "half_critic.py").write_text("class Mine:\n")
    with pytest.raises(UserError, match="cannot be imported: IndentationError"):
        make_critic("half_critic:Mine", {})


@pytest.mark.usefixtures("separate_path")
def test_what_a_class_method_returns_must_be_a_critic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd_critic.py").write_text(
        "class Odd:\n    def critique(self, examples): return []\n"
        "    @classmethod\n    def load(cls, folder='.'): return folder\n"
    )
    with pytest.raises(UserError, match=r'critic "odd_critic:Odd\.load": str is not a class with a method critique'):
        make_critic("odd_critic:Odd.load", {})
    monkeypatch.delitem(sys.modules, "odd_critic")
