"""What a JSON log line says beside its message: the traceback that a logger puts into a field of its own. In: the parsed object;
out: text. Samples:

    {"message": "engine died", "exc_info": "Traceback (most recent call last):\\n  File …"}       -> the traceback
    {"msg": "engine died", "error": {"type": "ValueError", "stack": "Traceback (most …"}}          -> the traceback
    {"event": "engine died", "exception": ["Traceback (most recent call last):", "  File …"]}     -> its lines, joined
    {"level": "error", "msg": "engine died", "error": "RuntimeError: boom"}                       -> "RuntimeError: boom"
"""

from __future__ import annotations

from typing import Any

#: fields that hold a stack, whatever it looks like
_STACKS = ("exc_info", "exc_text", "stack_trace", "stacktrace", "exception", "traceback", "stack")
#: what the name of a field that holds a traceback has in it
_WORDS = ("exc", "err", "trace", "stack")
#: fields that name an error in one line
_ERRORS = ("error", "err", "exception", "exc", "exc_info")
#: records that hold the program's own fields
_INNER = (*_STACKS, "error", "err", "jsonPayload", "fields", "extra", "context", "data", "record", "labels")
_HEADER = "Traceback (most recent call last)"
_SEVERE = ("err", "crit", "fatal", "alert", "emerg", "panic")
#: how deep records may lie in one another, and how long an error's own line may be
_DEEPEST, _LONGEST = 3, 4_000


def stack_in(content: dict[str, Any], message: str) -> str:
    """The traceback in a field other than the message, "" where there is none."""
    texts = list(_texts(content, _DEEPEST))
    # by its name, too: a request's prompt can hold a traceback as well
    named = [(name, text) for name, text in texts if any(word in name.lower() for word in _WORDS)]
    whole = next((text for _, text in named if _HEADER in text and "\n" in text), None)
    if whole is None:
        whole = next((text for name, text in texts if name in _STACKS and "\n" in text), "")
    return "" if whole.strip() in message else whole


def error_in(content: dict[str, Any], message: str, level: str) -> str:
    """The error that an error record names in a field of its own, "" where the message says it or nothing does."""
    if not level.lower().startswith(_SEVERE):
        return ""
    found = next((t for n, t in _texts(content, 2) if n in _ERRORS and t.strip() and "\n" not in t.strip()), "").strip()
    return found if found and len(found) < _LONGEST and found not in message and found not in ("null", "None", "{}") else ""


def _texts(content: dict[str, Any], depth: int) -> list[tuple[str, str]]:
    """(name, text) of the string fields, outer ones first; lists of strings are joined."""
    found: list[tuple[str, str]] = []
    inner: list[dict[str, Any]] = []
    for name, value in content.items():
        if isinstance(value, str):
            found.append((name, value))
        elif isinstance(value, list) and value and isinstance(value[0], str) and len(value) < 5_000:
            found.append((name, "\n".join(part.rstrip("\n") for part in value if isinstance(part, str))))
        elif isinstance(value, dict) and depth and name in _INNER:
            inner.append(value)
    for value in inner:
        found += _texts(value, depth - 1)
    return found
