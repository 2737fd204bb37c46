"""The HTTP client under the OpenAI SDK: responses limited in bytes and in time, redirects not followed."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Any

import openai

_AUTO_DETECT = 32 + zlib.MAX_WBITS  # zlib: a gzip or a zlib header


class ResponseLimitError(Exception):
    """A response is too large, too slow or compressed in a way that cannot be read; the message is the reason."""


class LimitedClient(openai.DefaultAsyncHttpxClient):
    """Reads at most `max_bytes` of a response, counted after decompression, within `max_seconds`.

    The SDK's own timeout is one between two bytes: a server that sends one at a time never reaches it. Redirects are
    returned as they are: the API key goes to the address that the user gave, and to no other.
    """

    def __init__(self, max_bytes: int, max_seconds: float, **options: Any) -> None:
        super().__init__(follow_redirects=False, headers={"Accept-Encoding": "gzip, deflate"}, **options)
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    async def send(self, request: Any, **options: Any) -> Any:
        """Return the response with its body, decompressed."""
        try:
            async with asyncio.timeout(self._max_seconds):
                response = await super().send(request, **(options | {"stream": True}))
                try:
                    encoding = response.headers.get("content-encoding", "identity")
                    body = await read_limited(response.aiter_raw(), encoding, self._max_bytes)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise ResponseLimitError(f"timeout: no whole response within {self._max_seconds:g} s") from None
        described_body = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in described_body]
        return type(response)(response.status_code, headers=headers, content=body, request=request)


async def read_limited(chunks: AsyncIterator[bytes], encoding: str, max_bytes: int) -> bytes:
    """Return a body of the given Content-Encoding, decompressed step by step, so that a bomb is noticed early."""
    if encoding not in ("identity", "gzip", "deflate"):
        raise ResponseLimitError(f'garbage: the response is compressed with "{encoding}", which nobody asked for')
    decompressor = None if encoding == "identity" else zlib.decompressobj(_AUTO_DETECT)
    body = bytearray()
    num_received = 0
    async for chunk in chunks:
        num_received += len(chunk)
        try:
            body += decompressor.decompress(chunk, max_bytes + 1 - len(body)) if decompressor else chunk
        except zlib.error:
            raise ResponseLimitError(f"garbage: the response is not valid {encoding}") from None
        if max(len(body), num_received) > max_bytes:
            raise ResponseLimitError(f"too large: the response has more than {max_bytes} bytes (max_reply_bytes)")
    return bytes(body)
