"""Conversations in the formats of chat templates (role, content) and of ShareGPT (from, value)."""

from __future__ import annotations

from typing import Any, TypeGuard

_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
    "observation": "tool",
}
_KNOWN = ("system", "user", "assistant", "tool")


def is_conversation(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    """Whether a value is a list of messages."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def parse_messages(value: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return messages with role and content alone; ValueError for one without text or with an unknown role."""
    return [_message(message, number) for number, message in enumerate(value, 1)]


def text_of(value: list[dict[str, Any]]) -> str:
    """Return the text of a completion in chat format; ValueError where it is more than one message."""
    messages = parse_messages(value)
    if len(messages) != 1:
        raise ValueError(f"the completion has {len(messages)} messages; it must be one: move the others to the prompt")
    return messages[0]["content"]


def _message(message: dict[str, Any], number: int) -> dict[str, str]:
    role = message.get("role", message.get("from"))
    role = _ROLES.get(str(role), role)
    if role not in _KNOWN:
        raise ValueError(f'message {number} has the role "{role}"; it must be one of {", ".join(_KNOWN)}')
    content = message.get("content", message.get("value"))
    if isinstance(content, list):
        parts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in content]
        content = "".join(parts) if all(isinstance(part, str) for part in parts) else None
    if not isinstance(content, str):
        raise ValueError(f"message {number} ({role}) has no text; images and tool calls are not supported")
    return {"role": role, "content": content}
