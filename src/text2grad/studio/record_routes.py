"""Routes of the answers: list, open, save, undo, suggestions, export."""

from __future__ import annotations

import threading
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from text2grad.align.answer.document import Document
from text2grad.schema import Example, Feedback, describe
from text2grad.studio import exports
from text2grad.studio.messages import (
    Annotator,
    CommentRequest,
    RecordResponse,
    SaveRequest,
    UndoRequest,
    source_text,
)
from text2grad.studio.project import Filter, Found, Project, check_index
from text2grad.studio.store import Annotation, ConflictError, critic_name
from text2grad.studio.studio import Studio
from text2grad.studio.suggestions import Suggestions, suggest

MAX_ROWS = 500


def record_routes(studio: Studio) -> APIRouter:
    """Return the routes under /api/files/ID."""
    router = APIRouter(prefix="/api/files/{file}")
    reading = threading.Lock()  # one comment at a time: many busy threads would keep those that save waiting

    @router.get("")
    def overview(file: str) -> dict[str, object]:
        project = studio.workspace.open(file)
        return {
            "name": project.name,
            "total": len(project.examples),
            "left_out": project.skipped[:20],
            "annotators": project.store.annotators(),
            "comments": len(exports.feedback_examples(project)),
        }

    @router.get("/records")
    def find(
        file: str,
        annotator: Annotator,
        text: Annotated[str, Query(max_length=200)] = "",
        shown: Filter = "all",
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_ROWS)] = 100,
    ) -> Found:
        return studio.workspace.open(file).find(annotator, text, shown, offset, limit)

    @router.get("/records/{index}")
    def get(file: str, index: int, annotator: Annotator) -> RecordResponse:
        project = studio.workspace.open(file)
        return record_response(project, index, annotator)

    @router.put("/records/{index}/annotation", response_model=None)
    def save(file: str, index: int, body: SaveRequest) -> Annotation | JSONResponse:
        project = studio.workspace.open(file)
        feedback = to_feedback(body, check_index(project, index))
        example, key = project.examples[index], project.keys[index]
        try:
            return project.store.save(key, example, body.annotator, body.version, body.status, feedback)
        except ConflictError as error:
            return conflict(error)

    @router.post("/records/{index}/undo", response_model=None)
    def undo(file: str, index: int, body: UndoRequest) -> Annotation | JSONResponse:
        project = studio.workspace.open(file)
        check_index(project, index)
        try:
            return project.store.undo(project.keys[index], body.annotator, body.version)
        except ConflictError as error:
            return conflict(error)

    @router.post("/records/{index}/suggestions")
    def suggestions(file: str, index: int, body: CommentRequest) -> Suggestions:
        example = check_index(studio.workspace.open(file), index)
        with reading:
            return suggest(body.critique, example, critic_name(body.annotator))

    @router.post("/records/{index}/critique")
    def critique(file: str, index: int) -> Feedback:
        """Ask the critic; a failed critique has an error."""
        project = studio.workspace.open(file)
        check_index(project, index)
        if studio.assistant is None:
            raise HTTPException(409, "the studio was started without --critic")
        return studio.assistant.critique(project, index)

    @router.get("/export")
    def export(file: str, form: exports.Format = "feedback", annotator: Annotator | None = None) -> Response:
        project = studio.workspace.open(file)
        name = f"feedback.{exports.SUFFIXES[form]}" if form == "feedback" else f"{form}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(exports.render(project, form, annotator), media_type="application/json", headers=headers)

    return router


def record_response(project: Project, index: int, annotator: str) -> RecordResponse:
    """Return an answer as an annotator sees it."""
    example, key = check_index(project, index), project.keys[index]
    names = [one.annotator for one in project.store.annotations(key).get(key, [])]
    return RecordResponse(
        index=index,
        id=example.id,
        prompt=example.prompt,
        source=source_text(example),
        completion=example.completion,
        reference=example.reference,
        is_code=Document(example.completion, example.prompt_text).program is not None,
        annotation=project.store.get(key, annotator),
        suggested=list(project.given_feedback(index).values()),
        siblings=project.siblings(index),
        others=[name for name in names if name != annotator],
    )


def to_feedback(body: SaveRequest, example: Example) -> Feedback:
    """Return what is saved; 422 where it does not fit the answer, above all where the words are not those selected."""
    for i, span in enumerate(body.spans):
        words = example.completion[span.start : max(span.start, span.end)]
        if words != span.quote:
            raise HTTPException(422, f"spans[{i}] is {words[:60]!r} in the answer, but {span.quote[:60]!r} was marked")
    fields = {
        "critic": critic_name(body.annotator),
        "critique": body.critique,
        "omissions": body.omissions,
    }
    try:
        fields["spans"] = [span.to_span() for span in body.spans]
        checked = Example.model_validate({**example.model_dump(exclude={"feedback"}), "feedback": fields}).feedback
        assert checked is not None
        checked.model_dump_json().encode()
    except ValidationError as error:
        raise HTTPException(422, describe(error)) from error
    except ValueError as error:
        raise HTTPException(422, "text with an unpaired surrogate") from error
    return checked


def conflict(error: ConflictError) -> JSONResponse:
    """Return 409 with the version that was saved meanwhile."""
    return JSONResponse({"detail": str(error), "current": error.current.model_dump(mode="json")}, 409)
