"""The settings of an LLM critic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from text2grad.critics.prompts import Task
from text2grad.settings import Settings


class LLMSettings(Settings):
    """How an LLM critic is asked. The key is no setting: it comes from the environment variable `api_key_env`."""

    model: str
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    task: Task = "general"
    prompt: Path | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
    extra_body: Annotated[dict[str, Any], Field(default_factory=dict)]
    threshold: Annotated[float, Field(gt=0, le=1)] = 0.75
    concurrency: Annotated[int, Field(ge=1)] = 16
    timeout: Annotated[float, Field(gt=0)] = 120.0
    max_attempts: Annotated[int, Field(ge=1)] = 6
    backoff: Annotated[float, Field(ge=0)] = 0.5
    longest_pause: Annotated[float, Field(ge=0)] = 60.0
    breaker_failures: Annotated[int, Field(ge=1)] = 20
    breaker_seconds: Annotated[float, Field(ge=0)] = 30.0
    price_in: Annotated[float, Field(ge=0)] = 0.0
    price_out: Annotated[float, Field(ge=0)] = 0.0
    max_cost: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.max_cost is not None and self.price_in == self.price_out == 0:
            raise ValueError("max_cost needs price_in and price_out, the prices of a million tokens")
        if self.base_url is not None:
            parts = urlsplit(self.base_url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("base_url must be an http or https address, such as http://localhost:8000/v1")
            if parts.username or parts.password or parts.query:
                raise ValueError(f"base_url must hold no key: put it into the environment variable {self.api_key_env}")
        return self

    def what_counts(self) -> dict[str, Any]:
        """The settings that an answer depends on; how fast and at what price it is asked for is not among them."""
        return self.model_dump(
            mode="json", include={"model", "base_url", "max_tokens", "temperature", "extra_body", "threshold"}
        )
