"""A chat-completions server that misbehaves on purpose, for tests and benchmarks. Standard library only.

    python benchmarks/misbehaving_server.py [--trouble 0.4] [--latency 0.02] [--seed 0] [--port 0]

Prints `http://127.0.0.1:PORT/v1` when it listens. A share of `trouble` of the requests gets, at random, 429 with
Retry-After, 500, no response, a connection closed in the middle of the body, a body that is not JSON, a truncated
reply, or quotes of another text; the others get feedback that quotes the completion. GET /counts counts them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter

TROUBLES = ["429", "500", "hang", "cut", "garbage", "half", "elsewhere"]
COMPLETION = re.compile(r"<answer-(\w+)>\n(.*?)\n</answer-\1>", re.DOTALL)


class Server:
    """Responses in a random order that depends on the seed."""

    def __init__(self, trouble: float, latency: float, seed: int) -> None:
        self.trouble = trouble
        self.latency = latency
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle the requests of one connection until either side closes it."""
        try:
            while await self._handle(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client closed the connection
        finally:
            writer.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(length[1]) if length else 0)
        if head.startswith("GET"):
            writer.write(response(200, json.dumps(self.counts)))
            return True
        await asyncio.sleep(self.latency)
        kind = self.random.choice(TROUBLES) if self.random.random() < self.trouble else "ok"
        self.counts[kind] += 1
        if kind == "hang":
            await reader.read()  # until the client times out
            return False
        whole = self._response(kind, json.loads(body)["messages"][-1]["content"])
        writer.write(whole[: len(whole) // 2] if kind == "cut" else whole)
        await writer.drain()
        return kind != "cut"

    def _response(self, kind: str, prompt: str) -> bytes:
        if kind == "429":
            return response(429, "slow down", "Retry-After: 0.2\r\n")
        if kind == "500":
            return response(500, "boom")
        if kind == "garbage":
            return response(200, "<html>a proxy's page</html>")
        found = COMPLETION.search(prompt)
        quote = "submarines in the library" if kind == "elsewhere" or not found else " ".join(found[2].split()[:3])
        reply = json.dumps(
            {
                "reasoning": "These are the first words.",
                "critique": "The opening is weak.",
                "spans": [{"quote": quote, "phrase": "The opening", "label": "poor", "severity": "major"}],
                "omissions": [],
            }
        )
        message = {"role": "assistant", "content": reply[: len(reply) // 3] if kind == "half" else reply}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(reply) // 4}
        return response(200, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}))


def response(status: int, body: str, headers: str = "") -> bytes:
    content = body.encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n{headers}\r\n"
    return head.encode() + content


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trouble", type=float, default=0.4, help="share of requests with a faulty response")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds before each response")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    args = parser.parse_args()
    served = Server(args.trouble, args.latency, args.seed)
    listening = await asyncio.start_server(served.serve, "127.0.0.1", args.port, limit=1 << 24, backlog=1024)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1", flush=True)
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
