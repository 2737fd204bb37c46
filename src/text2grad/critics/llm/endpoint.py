"""One question to an OpenAI-compatible endpoint: key, dialect, timeout, retries, breaker and costs."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import openai

from text2grad.critics.llm.breaker import Breaker
from text2grad.critics.llm.cost import Ledger
from text2grad.critics.llm.dialect import Dialect
from text2grad.critics.llm.reply import encodable
from text2grad.critics.llm.response import Completion, GarbageError, UnansweredError, read_completion
from text2grad.critics.llm.retry import PassingError, attempts, retry_after
from text2grad.critics.llm.settings import LLMSettings
from text2grad.errors import UserError

OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"  # local servers take any
_SHORTEST_SECRET = 8  # shorter "keys" are placeholders, and words that texts contain
_LONGEST_EXCERPT = 300
_OVERLOADED_OR_BROKEN = (408, 409, 425, 429)
_PARAMETER_REFUSED = (400, 415, 422, 501)


@dataclass(frozen=True)
class _Session:
    """Connections belong to the event loop that opened them."""

    loop: asyncio.AbstractEventLoop
    client: openai.AsyncOpenAI


def _address_in_environment() -> str | None:
    """Held to the same rules as an address that is given: it is shown in errors, and must hold no key."""
    url = os.environ.get("OPENAI_BASE_URL")
    return LLMSettings.parse({"base_url": url, "model": "any"}, where="OPENAI_BASE_URL").base_url if url else None


class Endpoint:
    """Asks questions; how many at a time is up to the caller."""

    def __init__(self, settings: LLMSettings) -> None:
        self.settings = settings
        self.url = settings.base_url or _address_in_environment() or OPENAI
        self.ledger = Ledger(settings.price_in, settings.price_out, settings.max_cost)
        self._key = self._read_key()
        self._breaker = Breaker(self.url, settings.breaker_failures, settings.breaker_seconds)
        self._dialect = Dialect()
        self._schema_works = False
        self._session: _Session | None = None

    async def ask(self, question: str) -> Completion:
        """The model's answer; UnansweredError where this question has none, UserError where none will have one."""
        self._breaker.check()
        with self.ledger.reserve(len(question.encode()), self.settings.max_tokens):
            return await self._ask_until_answered(self._client(), question)

    async def aclose(self) -> None:
        """Close the connections; the next question opens new ones."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.client.close()

    async def _ask_until_answered(self, client: openai.AsyncOpenAI, question: str) -> Completion:
        settings = self.settings
        try:
            async for attempt in attempts(settings.max_attempts, settings.backoff, settings.longest_pause):
                with attempt:
                    self._breaker.check()
                    return self._read(await self._attempt(client, question), question)
        except PassingError as error:
            if not error.connected:
                self._breaker.unreachable(str(error))
                self._breaker.check()
            raise UnansweredError(str(error), error.raw) from None
        raise AssertionError("attempts end with an answer or an error")

    async def _attempt(self, client: openai.AsyncOpenAI, question: str) -> str:
        """The body of a response; PassingError for what may pass."""
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await self._send(client, question, self._dialect)
        except (TimeoutError, openai.APITimeoutError):
            raise self._again(f"timeout: no answer within {self.settings.timeout:g} s") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            # By name: which library's ConnectError this is depends on the client's version.
            connected = type(cause).__name__ not in ("ConnectError", "ConnectTimeout")
            raise self._again(f"connection: {cause or type(cause).__name__}", connected=connected) from None
        except openai.APIStatusError as error:
            raise self._refused(error) from None

    async def _send(self, client: openai.AsyncOpenAI, question: str, dialect: Dialect) -> str:
        """Ask in this dialect; where a parameter is refused, ask again without it, and remember if that helped."""
        try:
            # Not chat.completions.create: it walks through its parameters anew for every question, and parses a body
            # that is read here with suspicion.
            body = await client.post("/chat/completions", cast_to=str, body=self._body(question, dialect))
        except openai.APIStatusError as error:
            refused = error.status_code in _PARAMETER_REFUSED
            simpler = dialect.simpler(error.response.text, self._schema_works) if refused else None
            if simpler is None:
                raise
            return await self._send(client, question, simpler)
        self._schema_works = self._schema_works or dialect.schema
        if dialect.schema or not self._schema_works:
            self._dialect = dialect
        self._breaker.answered()
        return body

    def _body(self, question: str, dialect: Dialect) -> dict[str, Any]:
        settings = self.settings
        asked = {"model": settings.model, "messages": [{"role": "user", "content": question}]}
        return asked | dialect.parameters(settings.max_tokens, settings.temperature) | settings.extra_body

    def _refused(self, error: openai.APIStatusError) -> Exception:
        """What an HTTP error means: for the run, for this question, or for this attempt."""
        code, says = error.status_code, self._excerpt(error.response.text)
        if code in (401, 403):
            return UserError(
                f"{self.url} refuses the key (HTTP {code}); put a valid one into the environment variable "
                f"{self.settings.api_key_env}. It says: {says}"
            )
        if code == 404:
            return UserError(
                f'{self.url} knows no model "{self.settings.model}" or no such address; check --llm-model, and that '
                f"--base-url ends where /chat/completions follows. It says: {says}"
            )
        if error.code == "insufficient_quota":
            return UserError(f"the account at {self.url} has no credit left; top it up. It says: {says}")
        if code in _OVERLOADED_OR_BROKEN or code >= 500:
            if code < 500:
                self._breaker.answered()
            after = retry_after(error.response.headers)
            why = f"http {code}: {says}"
            return PassingError(why, after, says) if code < 500 else self._again(why, after, says)
        self._breaker.answered()
        return UnansweredError(f"http {code}: {says}", says)

    def _again(
        self, why: str, after: float | None = None, raw: str | None = None, connected: bool = True
    ) -> PassingError:
        why = self._excerpt(why)
        self._breaker.failed(why)
        return PassingError(why, after, raw, connected)

    def _read(self, text: str, question: str) -> Completion:
        try:
            completion = read_completion(text, self._clean)
        except GarbageError:
            raise self._again("garbage: the response is no chat completion", raw=self._clean(text)) from None
        self._charge(completion, question)
        completion.require_content()
        return completion

    def _charge(self, completion: Completion, question: str) -> None:
        usage = completion.usage
        if usage is not None:
            self.ledger.add(usage.prompt_tokens, usage.completion_tokens)
        elif self.ledger.max_cost is not None:
            # The server does not say; a token has at least one byte, so the limit still holds.
            self.ledger.add(len(question.encode()), len(completion.content.encode()))

    def _read_key(self) -> str | None:
        key = os.environ.get(self.settings.api_key_env, "").strip()
        if not key.isprintable() or not key.isascii():
            raise UserError(f"the environment variable {self.settings.api_key_env} holds no key: it has odd characters")
        if not key and urlsplit(self.url).hostname == urlsplit(OPENAI).hostname:
            raise UserError(
                f"{self.url} needs a key; put it into the environment variable {self.settings.api_key_env}, or name "
                f"another server with --base-url"
            )
        return key or None

    def _clean(self, text: str) -> str:
        """Fit to be kept: a server that echoes the key does not get it into a file."""
        if self._key and len(self._key) >= _SHORTEST_SECRET:
            text = text.replace(self._key, "[key]")
        return encodable(text)

    def _excerpt(self, text: str) -> str:
        return " ".join(self._clean(text).split())[:_LONGEST_EXCERPT]

    def _client(self) -> openai.AsyncOpenAI:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.loop is not loop:
            # Retries are ours: the client's own would hide them from the breaker and from Retry-After's limits.
            client = openai.AsyncOpenAI(
                api_key=self._key or _NO_KEY, base_url=self.url, max_retries=0, timeout=self.settings.timeout
            )
            self._session = _Session(loop, client)
        return self._session.client
