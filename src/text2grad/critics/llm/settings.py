"""The settings of an LLM critic."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from text2grad.critics.llm.prompt_templates import PromptTemplate, Task
from text2grad.settings import Settings

OPENAI_URL = "https://api.openai.com/v1"


class LLMSettings(Settings):
    """Settings of an LLM critic. The API key is read from the environment variable `api_key_env`.

    model: its name on the server.
    api_key_env: the name of the environment variable, not the key.
    base_url: the environment variable OPENAI_BASE_URL by default, else OpenAI's.
    task: the prompt template: general, summarise, code or qa.
    prompt: a file with a template of your own, in Jinja, instead of `task`.
    max_tokens, temperature: of a reply; null leaves the temperature to the server.
    extra_body: further parameters of the request, for servers that have them.
    threshold: how similar a quotation must be to the words that it is found in, at least.
    concurrency: requests at the same time.
    timeout, max_retries: of the OpenAI SDK, per request; it waits between retries, or as long as Retry-After says. A
        response that has begun may take twice the timeout in all.
    max_reply_bytes: of a response, after decompression.
    breaker_failures, breaker_seconds: when the run is aborted because the endpoint is down, see CircuitBreaker.
    price_in, price_out: per million tokens.
    max_cost: the run ends before it costs more, in the currency of the prices.
    """

    model: str
    api_key_env: str = "OPENAI_API_KEY"
    base_url: str = Field(
        default_factory=lambda: os.environ.get("OPENAI_BASE_URL") or OPENAI_URL, validate_default=True
    )
    task: Task = "general"
    prompt: Path | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
    extra_body: Annotated[dict[str, Any], Field(default_factory=dict)]
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.75
    concurrency: Annotated[int, Field(ge=1)] = 16
    timeout: Annotated[float, Field(gt=0)] = 120.0
    max_reply_bytes: Annotated[int, Field(ge=1)] = 1 << 22
    max_retries: Annotated[int, Field(ge=0)] = 5
    breaker_failures: Annotated[int, Field(ge=1)] = 10
    breaker_seconds: Annotated[float, Field(ge=0)] = 30.0
    price_in: Annotated[float, Field(ge=0)] = 0.0
    price_out: Annotated[float, Field(ge=0)] = 0.0
    max_cost: Annotated[float, Field(gt=0)] | None = None

    @classmethod
    def _explain(cls, error: ValidationError) -> str:
        first = error.errors(include_url=False)[0]
        if first["type"] == "missing" and first["loc"] == ("model",):
            return (
                "no model is named; give its name on the server, as `annotate --llm-model qwen3`, in other commands "
                "`--option model=qwen3`, or critic.options.model=qwen3 in a run"
            )
        return super()._explain(error)

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, url: str, info: ValidationInfo) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an http or https address, such as http://localhost:8000/v1")
        if parts.username or parts.password or parts.query:
            variable = info.data.get("api_key_env")
            raise ValueError(f"the address must contain no key: put it into the environment variable {variable}")
        return url

    @field_validator("max_cost")
    @classmethod
    def _check_prices(cls, max_cost: float | None, info: ValidationInfo) -> float | None:
        if max_cost is not None and not (info.data.get("price_in") or info.data.get("price_out")):
            raise ValueError("it needs price_in and price_out, the prices per million tokens")
        return max_cost


def fingerprint_settings(critic: str, settings: dict[str, Any], template: PromptTemplate) -> str:
    """Return a digest of the settings and the prompt template."""
    content = json.dumps(settings | {"prompt": template.digest}, sort_keys=True)
    return f"{critic}:" + hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
