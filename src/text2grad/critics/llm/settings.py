"""The settings of an LLM critic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator

from text2grad.critics.llm.prompts import Task
from text2grad.settings import Settings


class LLMSettings(Settings):
    """How an LLM critic is asked. The key is no setting: it comes from the environment variable `api_key_env`."""

    model: str
    api_key_env: str = "OPENAI_API_KEY"
    base_url: str | None = None
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

    @field_validator("base_url")
    @classmethod
    def _address_without_key(cls, url: str | None, earlier: ValidationInfo) -> str | None:
        parts = urlsplit(url or "")
        if url is not None and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("not an http or https address, such as http://localhost:8000/v1")
        if parts.username or parts.password or parts.query:
            variable = earlier.data.get("api_key_env")
            raise ValueError(f"the address must hold no key: put it into the environment variable {variable}")
        return url

    @field_validator("max_cost")
    @classmethod
    def _with_prices(cls, limit: float | None, earlier: ValidationInfo) -> float | None:
        if limit is not None and not (earlier.data.get("price_in") or earlier.data.get("price_out")):
            raise ValueError("it needs price_in and price_out, the prices of a million tokens")
        return limit

    def what_counts(self) -> dict[str, Any]:
        """The settings that an answer depends on; how fast and at what price it is asked for is not among them."""
        return self.model_dump(
            mode="json", include={"model", "base_url", "max_tokens", "temperature", "extra_body", "threshold"}
        )
