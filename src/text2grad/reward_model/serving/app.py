"""`text2grad reward serve`: a critic over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, Self

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from text2grad.critics.base import Critic
from text2grad.reward_model.serving.batcher import Batcher, QueueFullError
from text2grad.reward_model.serving.docs_page import docs_policy, render_docs
from text2grad.reward_model.serving.messages import Health, ScoreRequest, ScoreResponse
from text2grad.web import server as web
from text2grad.web.problems import Problem, describe_errors

_TOO_LARGE = "send fewer examples per request, or start the server with a larger --max-body-bytes"
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body cannot be decoded."},
    403: {"model": Problem, "description": "A web page of another origin sent the request."},
    408: {"model": Problem, "description": "The body took too long to arrive."},
    413: {"model": Problem, "description": "The body is too large."},
    421: {"model": Problem, "description": "The Host header does not name this server."},
    422: {"model": Problem, "description": "The body is not JSON, or a field is missing, unknown, wrong or too long."},
    431: {"model": Problem, "description": "The headers are too many or too large."},
    503: {"model": Problem, "description": "The queue is full; Retry-After says when to retry."},
}


class ServeSettings(web.WebSettings):
    """Address, batching and limits of the server."""

    name: str = Field("reward", description="the model's name in /health")
    max_batch_size: PositiveInt = Field(32, description="examples per call of the model")
    max_wait_ms: NonNegativeFloat = Field(5.0, description="how long an idle model waits to fill a batch")
    max_queue_size: PositiveInt = Field(1024, description="examples waiting for the model; more get 503")
    max_examples: PositiveInt = Field(64, description="examples per request")
    max_completion_chars: PositiveInt = Field(20_000, description="characters per completion")

    @model_validator(mode="after")
    def _check_queue_size(self) -> Self:
        if self.max_queue_size < self.max_examples:
            raise ValueError(
                f"max_queue_size is {self.max_queue_size} but a request may have {self.max_examples} examples "
                f"(max_examples): it would never be accepted"
            )
        return self


def create_app(critic: Critic, settings: ServeSettings) -> FastAPI:
    """Create the application: POST /v1/score, GET /health and /docs. The critic is called from a single thread."""
    max_wait = settings.max_wait_ms / 1000
    batcher = Batcher(critic, settings.name, settings.max_batch_size, max_wait, settings.max_queue_size)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with batcher:
            yield

    # FastAPI's own pages load scripts from another server.
    app = FastAPI(
        title="text2grad reward model",
        version=version("text2grad"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    web.add_guards(app, settings, _TOO_LARGE)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"detail": describe_errors(error.errors())}, 422)

    @app.post("/v1/score", responses=_PROBLEMS)
    async def score(body: ScoreRequest) -> ScoreResponse:
        """Score completions: one feedback each, in order, as `SpanRewardModel.critique` returns."""
        _check_limits(body, settings)
        try:
            return ScoreResponse(feedback=await batcher.critique(body.to_examples()))
        except QueueFullError as error:
            raise HTTPException(503, f"{error}: retry later", headers={"Retry-After": "1"}) from error
        except asyncio.CancelledError:  # uvicorn cancels what is still running after shutdown_timeout
            raise HTTPException(503, "the server is shutting down", headers={"Retry-After": "60"}) from None

    @app.get("/health")
    async def health() -> Health:
        """Respond at once, also while the model is busy."""
        return Health(model=settings.name, queue_size=batcher.queue_size)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(render_docs(app.openapi()), headers={"Content-Security-Policy": docs_policy()})

    return app


def serve(critic: Critic, settings: ServeSettings) -> None:
    """Serve until SIGINT or SIGTERM, then finish running requests. Prints the address."""
    listener = web.bind(settings.host, settings.port)
    address = web.address_of(listener)
    print(f"Serving {settings.name} at {address}/v1/score; API: {address}/docs; Ctrl-C stops the server.", flush=True)
    with suppress(KeyboardInterrupt):  # uvicorn raises it again once it has shut down
        create_server(critic, settings).run(sockets=[listener])


def create_server(critic: Critic, settings: ServeSettings) -> uvicorn.Server:
    """Create the uvicorn server that runs the application."""
    return web.create_server(create_app(critic, settings), settings)


def _check_limits(body: ScoreRequest, settings: ServeSettings) -> None:
    if len(body.examples) > settings.max_examples:
        raise HTTPException(
            422, f"examples: {len(body.examples)} entries are more than {settings.max_examples}; split the request"
        )
    for i, example in enumerate(body.examples):
        if len(example.completion) > settings.max_completion_chars:
            raise HTTPException(
                422,
                f"examples[{i}].completion: {len(example.completion)} characters are more than "
                f"{settings.max_completion_chars}; shorten it",
            )
