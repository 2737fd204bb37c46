"""The routes: what they say, save, refuse and export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from studio_support import COMPLETIONS, ScriptedTeacher

from text2grad.critics.rules.grounding import GroundingCritic
from text2grad.schema import Example
from text2grad.studio.assistant import Assistant

PLAIN = COMPLETIONS["plain"]


def files(client: Any) -> str:
    return f"/api/files/{client.get('/api/session').json()['files'][0]['id']}"


def span(text: str, words: str, label: str = "poor", **more: Any) -> dict[str, Any]:
    start = text.index(words)
    return {"start": start, "end": start + len(words), "quote": words, "label": label, **more}


def annotation(annotator: str = "Mia", version: int = 0, **more: Any) -> dict[str, Any]:
    return {"annotator": annotator, "version": version, "status": "done", **more}


def test_an_annotation_is_saved_and_exported(connect: Any) -> None:
    client = connect()
    path = files(client)
    body = annotation(critique="Not Friday.", spans=[span(PLAIN, "Friday", replacement="Monday", phrase=[4, 10])])
    saved = client.put(f"{path}/records/0/annotation", json=body)
    assert saved.status_code == 200
    assert saved.json()["version"] == 1
    lines = client.get(f"{path}/export").text.splitlines()
    (example,) = [Example.model_validate_json(line) for line in lines]
    assert example.feedback is not None
    assert example.feedback.critic == "human:Mia"
    (found,) = example.feedback.spans
    assert (example.completion[found.start : found.end], found.replacement) == ("Friday", "Monday")
    assert example.feedback.critique[slice(*found.phrase or ())] == "Friday"


def test_the_list_is_searched_and_filtered(connect: Any) -> None:
    client = connect()
    path = files(client)
    client.put(f"{path}/records/0/annotation", json=annotation(spans=[span(PLAIN, "Friday")]))
    client.put(f"{path}/records/1/annotation", json=annotation() | {"status": "skipped"})

    def indices(**query: str) -> list[int]:
        return list(client.get(f"{path}/records", params={"annotator": "Mia", **query}).json()["indices"])

    assert indices() == [0, 1, 2, 3, 4, 5]
    assert indices(text="RETURN x") == [3]
    assert indices(shown="done") == [0]
    assert indices(shown="skipped") == [1]
    assert indices(shown="marked") == [0]
    assert indices(shown="open") == [2, 3, 4, 5]
    found = client.get(f"{path}/records", params={"annotator": "Mia", "limit": 2, "offset": 1}).json()
    assert ([row["id"] for row in found["rows"]], found["done"], found["skipped"]) == (["emoji", "combining"], 1, 1)
    assert indices(shown="open", annotator="Tom") == [0, 1, 2, 3, 4, 5]


def test_an_answer_comes_with_its_siblings_and_kind(connect: Any) -> None:
    client = connect()
    record = client.get(f"{files(client)}/records/3?annotator=Mia").json()
    assert record["is_code"]
    assert record["siblings"] == [0, 1, 2, 4, 5]
    assert record["annotation"]["version"] == 0


def test_a_newer_version_is_not_overwritten(connect: Any) -> None:
    client = connect()
    path = f"{files(client)}/records/0/annotation"
    first = client.put(path, json=annotation(critique="One."))
    assert client.put(path, json=annotation(critique="One.")).json() == first.json()  # sent twice: the same
    refused = client.put(path, json=annotation(critique="Two."))
    assert refused.status_code == 409
    assert refused.json()["current"]["feedback"]["critique"] == "One."
    assert client.put(path, json=annotation(version=1, critique="Two.")).json()["version"] == 2


def test_undo_goes_back_step_by_step(connect: Any) -> None:
    client = connect()
    path = f"{files(client)}/records/0"
    for version, text in enumerate(("One.", "Two.", "Three.")):
        client.put(f"{path}/annotation", json=annotation(version=version, critique=text))
    said = []
    for version in (3, 4, 5):
        undone = client.post(f"{path}/undo", json={"annotator": "Mia", "version": version}).json()
        said.append((undone["feedback"]["critique"], undone["can_undo"]))
    assert said == [("Two.", True), ("One.", True), ("", False)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"quote": "Monday"}, "was marked"),
        ({"start": 5, "end": 5, "quote": ""}, "at least one character"),
        ({"end": 10_000}, "was marked"),
        ({"severity": 0}, "greater than 0"),
        ({"label": "bad"}, "pattern"),
        ({"label": "good", "replacement": "x"}, "only blamed words"),
        ({"phrase": [0, 99]}, "critique has 0"),
        ({"match": "guess"}, "match"),
        ({"extra": 1}, "extra"),
        ({"reason": "x" * 20_001}, "at most 20000"),
    ],
)
def test_what_does_not_fit_the_answer_is_refused(connect: Any, change: dict[str, Any], reason: str) -> None:
    client = connect()
    refused = client.put(
        f"{files(client)}/records/0/annotation", json=annotation(spans=[span(PLAIN, "Friday") | change])
    )
    assert refused.status_code == 422
    assert reason in refused.json()["detail"]
    assert client.get(f"{files(client)}/export").text == ""


@pytest.mark.parametrize("name", ["", "   ", "x" * 41, "a\nb", "a\u202eb"])
def test_names_are_short_and_printable(connect: Any, name: str) -> None:
    client = connect()
    assert client.put(f"{files(client)}/records/0/annotation", json=annotation(name)).status_code == 422


def test_answers_and_files_that_do_not_exist(connect: Any) -> None:
    client = connect()
    path = files(client)
    for bad in (f"{path}/records/99?annotator=Mia", f"{path}/records/-1?annotator=Mia", "/api/files/nowhere/export"):
        response = client.get(bad)
        assert (response.status_code, "there is no" in response.json()["detail"]) == (404, True)


def test_a_comment_becomes_suggestions(connect: Any) -> None:
    client = connect()
    body = {"annotator": "Mia", "critique": 'The bridge was not closed on "Friday". Hello there.'}
    said = client.post(f"{files(client)}/records/0/suggestions", json=body).json()
    (one,) = said["suggestions"]
    assert PLAIN[one["span"]["start"] : one["span"]["end"]] == "Friday"
    assert (one["span"]["label"], 0 < one["confidence"] <= 1) == ("poor", True)


def test_a_critic_comments_first_and_is_asked_once(connect: Any) -> None:
    class Counting(GroundingCritic):
        calls = 0

        def critique(self, examples: Any) -> Any:
            Counting.calls += 1
            return super().critique(examples)

    client = connect(assistant=Assistant(Counting(), "grounding"))
    path = f"{files(client)}/records/0"
    first = client.post(f"{path}/critique").json()
    assert first["spans"]
    assert client.post(f"{path}/critique").json() == first
    assert Counting.calls == 1
    (suggested,) = client.get(f"{path}?annotator=Mia").json()["suggested"]
    assert suggested["spans"] == first["spans"]


def test_without_a_critic_or_a_model_it_says_so(connect: Any) -> None:
    client = connect()
    for path, option in ((f"{files(client)}/records/0/critique", "--critic"), ("/api/lessons/undo", "--model")):
        refused = client.post(path)
        assert (refused.status_code, option in refused.json()["detail"]) == (409, True)


def test_lessons_are_taught_kept_discarded_and_undone(connect: Any) -> None:
    teacher = ScriptedTeacher()
    client = connect(teacher=teacher)
    path = files(client)
    client.put(f"{path}/records/0/annotation", json=annotation(spans=[span(PLAIN, "Friday")]))
    lesson = client.post(f"{path}/records/0/teach", json={"annotator": "Mia"}).json()
    assert client.get("/api/lessons").json()["pending"] == lesson
    assert client.post(f"/api/lessons/{lesson['id']}/discard").json()["pending"] is None
    again = client.post(f"{path}/records/0/teach", json={"annotator": "Mia"}).json()
    assert client.post(f"/api/lessons/{again['id']}/keep").json()["kept"] == 1
    assert client.post("/api/lessons/undo").json()["kept"] == 0
    assert client.post("/api/lessons/save").json()["folder"].endswith("taught")
    assert teacher.calls == ["teach", "discard lesson-1", "teach", "keep lesson-3", "undo", "save taught"]
    (_, feedback), _ = teacher.taught
    assert [(s.start, s.label) for s in feedback.spans] == [(PLAIN.index("Friday"), "poor")]


def test_the_opened_folder_is_listed_and_nothing_outside_of_it(connect: Any, answers: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.jsonl"
    outside.write_bytes(answers.read_bytes())
    (tmp_path / "link.jsonl").symlink_to(outside)
    (tmp_path / "notes.txt").write_text("no answers")
    (tmp_path / ".hidden.jsonl").write_bytes(answers.read_bytes())
    client = connect(tmp_path)
    assert [file["name"] for file in client.get("/api/session").json()["files"]] == ["answers.jsonl"]
    assert client.get(f"{files(client)}/records/0?annotator=Mia").status_code == 200
