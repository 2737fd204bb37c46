"""The studio's web application: its page, its routes, and who may use them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from importlib.metadata import version

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from text2grad.errors import UserError
from text2grad.studio.access import AccessMiddleware, cookie_name, is_token
from text2grad.studio.messages import SessionResponse, Token
from text2grad.studio.record_routes import record_routes
from text2grad.studio.review_routes import review_routes
from text2grad.studio.studio import Studio
from text2grad.studio.teach_routes import teach_routes
from text2grad.web.problems import describe_errors
from text2grad.web.server import WebSettings, add_guards

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_INDEX = "index.html"
_TOO_LARGE = "an annotation is small; start the studio with the file instead of sending it"


def create_app(studio: Studio, settings: WebSettings) -> FastAPI:
    """Create the application."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        studio.close()

    app = FastAPI(
        title="text2grad studio",
        version=version("text2grad"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_middleware(AccessMiddleware, token=studio.token)
    add_guards(app, settings, _TOO_LARGE)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(UserError, _user_error)
    app.include_router(record_routes(studio))
    app.include_router(review_routes(studio))
    app.include_router(teach_routes(studio))
    assets = load_assets()

    @app.get("/api/session")
    def session(request: Request) -> SessionResponse:
        """What is open; nothing is told without the token."""
        access = AccessMiddleware(app, studio.token)
        if not access.has_token(request):
            return SessionResponse(ok=False)
        return session_response(studio)

    @app.post("/api/session")
    def sign_in(body: Token, request: Request, response: Response) -> SessionResponse:
        """Exchange the token for a cookie that scripts cannot read."""
        if not is_token(body.token, studio.token):
            raise HTTPException(401, "the token is wrong; it is in the address that the studio printed")
        if studio.token is not None:
            response.set_cookie(cookie_name(request), studio.token, httponly=True, samesite="strict", path="/")
        return session_response(studio)

    @app.get("/{name:path}")
    def asset(name: str) -> Response:
        """The page and its parts: exactly the packaged files."""
        name = name or _INDEX
        if name not in assets:
            raise HTTPException(404, "there is no such page")
        kind = _TYPES["." + name.rpartition(".")[2]]
        headers = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "no-cache"}
        return Response(assets[name], media_type=kind, headers=headers)

    return app


def session_response(studio: Studio) -> SessionResponse:
    """Return what the studio offers."""
    return SessionResponse(
        ok=True,
        folder=studio.workspace.root.name,
        files=studio.workspace.sources(),
        critic=studio.assistant.name if studio.assistant else None,
        model=studio.lessons.model if studio.lessons else None,
    )


def load_assets() -> dict[str, bytes]:
    """Return the packaged files of the page by name."""
    folder = resources.files("text2grad.studio") / "assets"
    return {item.name: item.read_bytes() for item in folder.iterdir() if "." + item.name.rpartition(".")[2] in _TYPES}


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"detail": describe_errors(error.errors())}, 422)


async def _user_error(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 404 if str(error).startswith("there is no") else 409)
