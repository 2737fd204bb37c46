"""Servers differ in the optional parameters that they take; which ones, only a refusal tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from text2grad.critics.llm.reply import SCHEMA

_RESPONSE_FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "feedback", "strict": True, "schema": SCHEMA},
}


@dataclass(frozen=True)
class Dialect:
    """Which optional parameters a server takes."""

    schema: bool = True
    temperature: bool = True
    limit: str = "max_tokens"

    def simpler(self, refusal: str, schema_works: bool) -> Dialect | None:
        """The dialect to try after a refusal; None if no parameter is to blame.

        Servers word the refusal of a schema in many ways, or not at all, so an unexplained one is put to the test
        until a schema has been accepted once.
        """
        if self.limit == "max_tokens" and "max_completion_tokens" in refusal:
            return replace(self, limit="max_completion_tokens")
        if self.temperature and "temperature" in refusal:
            return replace(self, temperature=False)
        if self.schema and (not schema_works or "response_format" in refusal or "json_schema" in refusal):
            return replace(self, schema=False)
        return None

    def parameters(self, max_tokens: int, temperature: float | None) -> dict[str, Any]:
        """The optional part of a request."""
        parameters: dict[str, Any] = {self.limit: max_tokens}
        if self.temperature and temperature is not None:
            parameters["temperature"] = temperature
        if self.schema:
            parameters["response_format"] = _RESPONSE_FORMAT
        return parameters
