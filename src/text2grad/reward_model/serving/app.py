"""`text2grad reward serve`: a critic behind HTTP, one model for many clients."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from types import FrameType
from typing import Annotated, Any, Self

import uvicorn
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator
from starlette.exceptions import HTTPException as AnyHTTPException

from text2grad.critics.base import Critic
from text2grad.errors import UserError
from text2grad.reward_model.serving.batcher import Batcher, BusyError
from text2grad.reward_model.serving.body import BodyLimit, JsonRoute, until_disconnect
from text2grad.reward_model.serving.schema import Health, Problem, ScoreRequest, ScoreResponse, sentence
from text2grad.schema import Feedback
from text2grad.settings import Settings

_BACKLOG = 2048
_SHOWN = 60  # characters of what somebody sent that an error repeats
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body is not JSON."},
    408: {"model": Problem, "description": "The body took too long to arrive."},
    413: {"model": Problem, "description": "The body is too large."},
    415: {"model": Problem, "description": "The body is not announced as JSON."},
    422: {"model": Problem, "description": "A field is missing, unknown, of the wrong type or too long."},
    503: {"model": Problem, "description": "Too many examples wait; Retry-After says when to try again."},
}


class ServeSettings(Settings):
    """Where the server listens, how it batches, and what it refuses."""

    name: str = Field("reward", description="what /health calls the model")
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = Field(8008, description="0: any free one")
    max_batch_size: PositiveInt = Field(32, description="examples of one call of the model")
    max_wait_ms: NonNegativeFloat = Field(5.0, description="how long an idle model waits for a batch to fill")
    max_waiting: PositiveInt = Field(1024, description="examples that may wait; more get 503")
    max_examples: PositiveInt = Field(64, description="examples a request")
    max_answer_chars: PositiveInt = Field(20_000, description="characters of an answer")
    max_body_bytes: PositiveInt = Field(1 << 20, description="bytes of a request's body")
    max_body_seconds: PositiveFloat = Field(30.0, description="how long a body may take to arrive")
    max_shutdown_seconds: PositiveInt = Field(30, description="how long a stopping server waits for its clients")

    @model_validator(mode="after")
    def _a_request_fits(self) -> Self:
        if self.max_waiting < self.max_examples:
            raise ValueError(
                f"max_waiting is {self.max_waiting} but a request may have {self.max_examples} examples "
                f"(max_examples): it would never be taken"
            )
        return self


def create_app(critic: Critic, settings: ServeSettings) -> FastAPI:
    """POST /v1/score and GET /health. The critic is only ever called from one thread, and not before the app starts."""
    batcher = Batcher(critic, settings.name, settings.max_batch_size, settings.max_wait_ms / 1000, settings.max_waiting)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with batcher:
            yield

    app = FastAPI(title="text2grad reward model", version=version("text2grad"), lifespan=lifespan)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes, max_seconds=settings.max_body_seconds)
    app.add_exception_handler(AnyHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(BusyError, _busy)
    router = APIRouter(route_class=JsonRoute)

    @router.post("/v1/score", response_model=ScoreResponse, responses=_PROBLEMS)
    async def score(body: ScoreRequest, request: Request) -> ScoreResponse | Response:
        """Judge answers: one feedback each, in order, the same as without a server."""
        _check(body, settings)
        try:
            feedback = await _unless_gone(request, batcher.critique(body.as_examples()))
        except asyncio.CancelledError:  # only a server that has waited long enough for its clients does that
            raise BusyError("the server is stopping", retry_after=60) from None
        if feedback is None:
            return Response(status_code=503)  # nobody is left to read it
        return ScoreResponse(feedback=feedback)

    @app.get("/health")
    async def health() -> Health:
        """Answered at once, however busy the model is."""
        return Health(model=settings.name, ready=batcher.ready, waiting=batcher.waiting)

    app.include_router(router)
    return app


def serve(critic: Critic, settings: ServeSettings) -> None:
    """Serve until Ctrl-C or SIGTERM; what is under way then is finished. Prints the address."""
    listening = listen(settings.host, settings.port)
    host, port = listening.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    print(f"Serving {settings.name} at {address}/v1/score; {address}/docs describes it; Ctrl-C stops it.", flush=True)
    with suppress(KeyboardInterrupt):  # uvicorn raises it again once it has shut down
        create_server(critic, settings).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Says that it stops, and stops at once when it is told twice: the model's thread cannot be interrupted."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)
        super().handle_exit(sig, frame)
        if self.server_state.tasks:
            patience = self.config.timeout_graceful_shutdown
            print(f"Stopping when requests are answered, or in {patience} s; once more stops at once.", file=sys.stderr)


def create_server(critic: Critic, settings: ServeSettings) -> uvicorn.Server:
    """The app in the server that runs it."""
    config = uvicorn.Config(
        create_app(critic, settings),
        http="httptools",  # written in C: in Python, a body of one-byte chunks holds the event loop up for seconds
        ws="none",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=settings.max_shutdown_seconds,
    )
    return _Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises UserError where there can be none."""
    try:
        # asyncio sends small packets at once only on sockets that name their protocol; others cost clients 40 ms
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        return _bound(*found[0])
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "this is no host name"
        raise UserError(f"cannot listen on {host}:{port}: {reason}; choose another --host or --port") from error


def _bound(family: int, kind: int, protocol: int, _: str, address: Any) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # do not wait for old connections to fade
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _check(body: ScoreRequest, settings: ServeSettings) -> None:
    if len(body.examples) > settings.max_examples:
        raise HTTPException(
            422,
            f"examples has {len(body.examples)} entries; at most {settings.max_examples} are taken: send several "
            f"requests",
        )
    for i, example in enumerate(body.examples):
        if len(example.completion) > settings.max_answer_chars:
            raise HTTPException(
                422,
                f"examples[{i}].completion has {len(example.completion)} characters; at most "
                f"{settings.max_answer_chars} are judged: shorten it, or judge it in parts",
            )


async def _unless_gone(request: Request, critique: Coroutine[Any, Any, list[Feedback]]) -> list[Feedback] | None:
    """The feedback; None where the client went away first, and then nothing more is done for it."""
    answer = asyncio.create_task(critique)
    gone = asyncio.create_task(until_disconnect(request.receive))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else None
    finally:
        gone.cancel()
        answer.cancel()


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AnyHTTPException)
    path = request.url.path[:_SHOWN]
    detail = {
        404: f"there is no {path}; /docs lists what there is",
        405: f"{path} does not take {request.method}; /docs lists what it takes",
    }.get(error.status_code, error.detail)
    return JSONResponse({"detail": detail}, error.status_code, headers=error.headers)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"detail": sentence(error.errors())}, 422)


async def _busy(_: Request, error: Exception) -> Response:
    assert isinstance(error, BusyError)
    detail = f"{error}: try again in {error.retry_after} s"
    return JSONResponse({"detail": detail}, 503, headers={"Retry-After": str(error.retry_after)})
