"""Chat completions from an OpenAI-compatible endpoint: API key, parameter fallback, circuit breaker and cost."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from text2grad.critics.llm.reply import SCHEMA, replace_surrogates
from text2grad.critics.llm.safeguards import CircuitBreaker, CostLedger
from text2grad.critics.llm.settings import OPENAI_URL, LLMSettings
from text2grad.errors import UserError

if TYPE_CHECKING:
    import openai

_MIN_KEY_LENGTH = 8  # shorter "keys" are placeholders, and words that texts contain
_MAX_EXCERPT = 300
_PARAMETER_REJECTED = (400, 415, 422, 501)
_CONNECT_ERRORS = ("ConnectError", "ConnectTimeout")  # by name: the HTTP library depends on openai's version


class CompletionError(Exception):
    """There is no completion for this prompt; the message starts with a cause that can be counted."""

    def __init__(self, reason: str, raw: str | None = None) -> None:
        super().__init__(reason)
        self.raw = raw


@dataclass(frozen=True)
class ChatReply:
    """The text of a completion, and whether it was truncated at the token limit."""

    content: str
    truncated: bool


@dataclass(frozen=True)
class RequestParameters:
    """The optional parameters that a server accepts; which ones is known only from its errors."""

    response_format: bool = True
    temperature: bool = True
    token_limit: str = "max_tokens"

    def without_rejected(self, message: str, schema_accepted: bool) -> RequestParameters | None:
        """Return the parameters to try after this error message, or None if no parameter is the cause.

        Servers word the rejection of a schema in many ways, so until a schema has been accepted once, any unexplained
        error is attributed to it.
        """
        if self.token_limit == "max_tokens" and "max_completion_tokens" in message:
            return replace(self, token_limit="max_completion_tokens")
        if self.temperature and "temperature" in message:
            return replace(self, temperature=False)
        if self.response_format and (not schema_accepted or "response_format" in message or "json_schema" in message):
            return replace(self, response_format=False)
        return None

    def body(self, prompt: str, settings: LLMSettings, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a request. schema: of the reply, which is JSON."""
        body: dict[str, Any] = {"model": settings.model, "messages": [{"role": "user", "content": prompt}]}
        body[self.token_limit] = settings.max_tokens
        if self.temperature and settings.temperature is not None:
            body["temperature"] = settings.temperature
        if self.response_format:
            form = {"name": "feedback", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body | settings.extra_body


class Endpoint:
    """Client of one endpoint. Timeouts, retries and Retry-After are those of the OpenAI SDK.

    schema: of the replies, for servers that can hold to one.
    """

    def __init__(self, settings: LLMSettings, schema: dict[str, Any] = SCHEMA) -> None:
        try:
            import openai  # noqa: F401
        except ImportError as error:
            raise UserError('the llm critic needs the package openai: pip install "text2grad[llm]"') from error
        self.settings, self._schema = settings, schema
        self.url = settings.base_url
        self.ledger = CostLedger(settings.price_in, settings.price_out, settings.max_cost)
        self._key = self._read_key()
        self._breaker = CircuitBreaker(self.url, settings.breaker_failures, settings.breaker_seconds)
        self._parameters = RequestParameters()
        self._schema_accepted = False
        self._client: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI] | None = None

    async def complete(self, prompt: str) -> ChatReply:
        """Return a completion; raise CompletionError if this prompt has none, UserError if none will have one."""
        with self.ledger.reserve(len(prompt.encode()), self.settings.max_tokens):
            for _ in range(self.settings.max_retries + 1):
                self._breaker.check()
                body = await self._request(prompt)
                try:
                    return self._read(json.loads(body), prompt)
                except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                    error = self._failure("garbage: the response is not a chat completion", self._redact(body))
            raise error

    async def aclose(self) -> None:
        """Close the connections; the next request opens new ones."""
        if self._client is not None:
            (_, client), self._client = self._client, None
            await client.close()

    async def _request(self, prompt: str) -> str:
        """Return the body of a response; leave out parameters that the server rejects, and remember what it accepts."""
        import openai

        from text2grad.critics.llm.limited_client import ResponseLimitError

        client, parameters = self._open_client(), self._parameters
        while True:
            try:
                # Not chat.completions.create: it transforms all parameters anew per request, and drops the body of a
                # response that it cannot parse.
                request = parameters.body(prompt, self.settings, self._schema)
                body = await client.post("/chat/completions", cast_to=str, body=request)
                break
            except ResponseLimitError as error:
                raise self._failure(str(error)) from None
            except openai.APIConnectionError as error:
                raise self._connection_error(error) from None
            except openai.APIStatusError as error:
                rejected = error.status_code in _PARAMETER_REJECTED
                fallback = parameters.without_rejected(error.response.text, self._schema_accepted) if rejected else None
                if fallback is None:
                    raise self._status_error(error) from None
                parameters = fallback
        self._schema_accepted = self._schema_accepted or parameters.response_format
        if parameters.response_format or not self._schema_accepted:
            self._parameters = parameters
        self._breaker.record_response()
        return body

    def _connection_error(self, error: openai.APIConnectionError) -> CompletionError:
        import openai

        cause = error.__cause__ or error
        reason = f"connection: {cause}"
        if isinstance(error, openai.APITimeoutError):
            reason = f"timeout: no response within {self.settings.timeout:g} s"
        return self._failure(reason, unreachable=type(cause).__name__ in _CONNECT_ERRORS)

    def _status_error(self, error: openai.APIStatusError) -> Exception:
        """Return UserError for an HTTP error that concerns every prompt, else CompletionError."""
        status, excerpt = error.status_code, self._excerpt(error.response.text)
        if 300 <= status < 400:
            target = self._excerpt(error.response.headers.get("location", "nowhere"))
            return UserError(
                f"{self.url} redirects to {target} (HTTP {status}), which is not followed: your key would go there; "
                f"give the final address as --base-url if you trust it"
            )
        if status in (401, 403):
            return UserError(
                f"{self.url} rejects the key (HTTP {status}); put a valid one into the environment variable "
                f"{self.settings.api_key_env}. Response: {excerpt}"
            )
        if status == 404:
            return UserError(
                f'{self.url} has no model "{self.settings.model}" or no such address; check --llm-model, and that '
                f"--base-url ends where /chat/completions follows. Response: {excerpt}"
            )
        if error.code == "insufficient_quota":
            return UserError(f"the account at {self.url} has no credit left; top it up. Response: {excerpt}")
        if status >= 500:
            return self._failure(f"http {status}: {excerpt}", excerpt)
        self._breaker.record_response()
        return CompletionError(f"http {status}: {excerpt}", excerpt)

    def _failure(self, reason: str, raw: str | None = None, unreachable: bool = False) -> CompletionError:
        """Count a failure of the server or the network; raise UserError if the endpoint is down."""
        reason = self._excerpt(reason)
        self._breaker.record_failure(reason, unreachable)
        self._breaker.check()
        return CompletionError(reason, raw)

    def _read(self, response: Any, prompt: str) -> ChatReply:
        """Return the first choice and count its tokens; raise CompletionError if the model wrote nothing."""
        choice = response["choices"][0]
        finish_reason = choice.get("finish_reason")
        content, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        text = self._redact(content) if isinstance(content, str) else ""
        self._count_tokens(response.get("usage"), prompt, text)
        if refusal and isinstance(refusal, str):
            raise CompletionError("refused: the model declined to answer", self._redact(refusal))
        if finish_reason == "content_filter":
            raise CompletionError("refused: the server's content filter", text)
        if not text.strip():
            raise CompletionError("empty: the model wrote nothing", text)
        return ChatReply(text, truncated=finish_reason == "length")

    def _count_tokens(self, usage: Any, prompt: str, completion: str) -> None:
        counts = usage if isinstance(usage, dict) else {}
        tokens_in, tokens_out = counts.get("prompt_tokens"), counts.get("completion_tokens")
        if isinstance(tokens_in, int) and isinstance(tokens_out, int) and min(tokens_in, tokens_out) >= 0:
            self.ledger.add(tokens_in, tokens_out)
        elif self.ledger.max_cost is not None:
            # Without valid counts bytes are counted: a token has at least one, so the maximum cost still holds.
            self.ledger.add(len(prompt.encode()), len(completion.encode()))

    def _read_key(self) -> str | None:
        key = os.environ.get(self.settings.api_key_env, "").strip()
        if not key.isprintable() or not key.isascii():
            raise UserError(
                f"the environment variable {self.settings.api_key_env} is not a key: it has unprintable or non-ASCII "
                f"characters"
            )
        if not key and urlsplit(self.url).hostname == urlsplit(OPENAI_URL).hostname:
            raise UserError(
                f"{self.url} needs a key; put it into the environment variable {self.settings.api_key_env}, or name "
                f"another server with --base-url"
            )
        return key or None

    def _redact(self, text: str) -> str:
        """Return text that is safe to store: a server may echo the key."""
        if self._key and len(self._key) >= _MIN_KEY_LENGTH:
            text = text.replace(self._key, "[key]")
        return replace_surrogates(text)

    def _excerpt(self, text: str) -> str:
        return " ".join(self._redact(text).split())[:_MAX_EXCERPT]

    def _open_client(self) -> openai.AsyncOpenAI:
        """Return a client whose connections belong to the running event loop."""
        import openai

        from text2grad.critics.llm.limited_client import LimitedClient

        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            retries, timeout = self.settings.max_retries, self.settings.timeout
            key = self._key or "none"  # local servers accept any
            limited = LimitedClient(self.settings.max_reply_bytes, max_seconds=2 * timeout)
            client = openai.AsyncOpenAI(
                api_key=key, base_url=self.url, max_retries=retries, timeout=timeout, http_client=limited
            )
            self._client = loop, client
        return self._client[1]
