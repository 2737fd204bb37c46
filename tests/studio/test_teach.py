"""The real teacher behind the studio's routes, with a tiny model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studio_support import COMPLETIONS

from text2grad.studio.teaching import Teacher

PLAIN = COMPLETIONS["plain"]


def test_a_lesson_changes_probabilities_and_can_be_taken_back(connect: Any, tiny_model: Path) -> None:
    client = connect(teacher=Teacher(str(tiny_model), "cpu"))
    path = f"/api/files/{client.get('/api/session').json()['files'][0]['id']}/records/0"
    start = PLAIN.index("Friday")
    span = {"start": start, "end": start + 6, "quote": "Friday", "label": "poor", "replacement": "Monday"}
    body = {"annotator": "Mia", "version": 0, "status": "done", "spans": [span]}
    assert client.post(f"{path}/teach", json={"annotator": "Mia"}).status_code == 409  # nothing is marked yet
    assert client.put(f"{path}/annotation", json=body).status_code == 200
    lesson = client.post(f"{path}/teach", json={"annotator": "Mia"}).json()
    (answer,) = lesson["answers"]
    assert "".join(token["text"] for token in answer["tokens"]).startswith(PLAIN[:20])
    (correction,) = answer["corrections"]
    assert "".join(token["text"] for token in correction["tokens"]).startswith("Monday")
    assert correction["tokens"][0]["after"] > correction["tokens"][0]["before"]
    assert client.post(f"{path}/teach", json={"annotator": "Mia"}).status_code == 409  # one lesson at a time
    assert client.post(f"/api/lessons/{lesson['id']}/discard").json()["pending"] is None
    again = client.post(f"{path}/teach", json={"annotator": "Mia"}).json()
    assert again["answers"] == lesson["answers"]  # the model was as before
    assert client.post(f"/api/lessons/{again['id']}/keep").json()["kept"] == 1
    folder = Path(client.post("/api/lessons/save").json()["folder"])
    assert (folder / "adapter_config.json").is_file()
