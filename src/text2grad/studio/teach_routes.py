"""Routes of the model: lessons, and training runs."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse

from text2grad.errors import UserError
from text2grad.files import unused_path
from text2grad.studio import exports
from text2grad.studio.lessons import Lessons, control_prompts
from text2grad.studio.messages import AnnotatorRequest
from text2grad.studio.project import check_index
from text2grad.studio.studio import Studio
from text2grad.studio.training_runs import RunState

# The report brings its own script, and its own policy by hashes. In a sandbox it cannot reach the studio.
_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def teach_routes(studio: Studio) -> APIRouter:
    """Return the routes of lessons and runs."""
    router = APIRouter()

    def lessons() -> Lessons:
        if studio.lessons is None:
            raise HTTPException(409, "the studio was started without --model")
        return studio.lessons

    @router.get("/api/lessons")
    def state() -> dict[str, Any]:
        return lessons().state()

    @router.post("/api/files/{file}/records/{index}/teach")
    def teach(file: str, index: int, body: AnnotatorRequest) -> dict[str, Any]:
        """Teach the model what the annotator says about one answer."""
        project = studio.workspace.open(file)
        example = check_index(project, index)
        feedback = project.store.get(project.keys[index], body.annotator).feedback
        return lessons().teach([(example, feedback)], control_prompts(project, index))

    @router.post("/api/lessons/{lesson}/keep")
    def keep(lesson: str) -> dict[str, Any]:
        lessons().decide(lesson, keep=True)
        return lessons().state()

    @router.post("/api/lessons/{lesson}/discard")
    def discard(lesson: str) -> dict[str, Any]:
        lessons().decide(lesson, keep=False)
        return lessons().state()

    @router.post("/api/lessons/undo")
    def undo() -> dict[str, Any]:
        lessons().undo()
        return lessons().state()

    @router.post("/api/lessons/save")
    def save() -> dict[str, str]:
        folder = lessons().save(unused_path(studio.workspace.folder / "runs" / "taught"))
        return {"folder": str(folder)}

    @router.get("/api/runs")
    def runs() -> list[RunState]:
        return studio.runs.states()

    @router.post("/api/files/{file}/train")
    def train(file: str) -> RunState:
        """Train on all comments on this file, of all annotators."""
        return studio.runs.start(exports.feedback_examples(studio.workspace.open(file)))

    @router.post("/api/runs/{name}/stop")
    def stop(name: str) -> RunState:
        run = studio.runs.get(name)
        run.stop()
        return run.state()

    @router.get("/reports/{name}")
    def report(name: str) -> HTMLResponse:
        page = studio.runs.get(name).folder / "report.html"
        if not page.is_file():
            raise UserError(f"{name} has no report yet")
        return HTMLResponse(page.read_bytes(), headers={"Content-Security-Policy": _REPORT_POLICY})

    return router
