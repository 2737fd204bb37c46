"""Routes of the review: agreement, differences, and what is decided about them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from text2grad.studio.project import check_index
from text2grad.studio.review import Opinion, differences, opinions
from text2grad.studio.studio import Studio


def review_routes(studio: Studio) -> APIRouter:
    """Return the routes of the review."""
    router = APIRouter(prefix="/api/files/{file}")

    @router.get("/review")
    def review(file: str) -> dict[str, Any]:
        project = studio.workspace.open(file)
        return {"differences": differences(project), "annotators": project.store.annotators()}

    @router.get("/records/{index}/opinions")
    def get_opinions(file: str, index: int) -> list[Opinion]:
        project = studio.workspace.open(file)
        check_index(project, index)
        return opinions(project, index)

    return router
