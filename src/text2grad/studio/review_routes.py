"""Routes of the review: agreement, differences, and what is decided about them."""

from __future__ import annotations

from fastapi import APIRouter

from text2grad.studio.project import check_index
from text2grad.studio.review import Opinion, Review, opinions, review
from text2grad.studio.studio import Studio


def review_routes(studio: Studio) -> APIRouter:
    """Return the routes of the review."""
    router = APIRouter(prefix="/api/files/{file}")

    @router.get("/review")
    def get_review(file: str) -> Review:
        return review(studio.workspace.open(file))

    @router.get("/records/{index}/opinions")
    def get_opinions(file: str, index: int) -> list[Opinion]:
        project = studio.workspace.open(file)
        check_index(project, index)
        return opinions(project, index)

    return router
