"""The user's own launch command with a fix in it. In: a command line, a fix's action; out: the command, or None. Sample:

    with_action("python -m sglang.launch_server --model-path m --moe-runner-backend triton", "--moe-runner-backend marlin")
    -> "python -m sglang.launch_server --model-path m --moe-runner-backend marlin"

Only actions made of flags, variables and `drop --flag` (or `drop --prefix-*`) are put in; anything else is a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable

from forensics.ingest.pattern import Pattern

_VARIABLE = Pattern(r"[A-Z][A-Z0-9_]{2,}=\S*\Z")
_FLAG = Pattern(r"--[A-Za-z][\w.-]*(?:=\S+)?\Z")
_FLAGS = Pattern(r"--[A-Za-z][\w.-]*-\*\Z")
_TOKEN = Pattern(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""")


def steps_of(action: str) -> list[tuple[str, str, str | None]] | None:
    """What an action does, as (set, flag, value), (drop, flag, None) and (env, NAME, value); None where it is a sentence."""
    words = _TOKEN.findall(action)
    found: list[tuple[str, str, str | None]] = []
    position = 0
    while position < len(words):
        word = words[position]
        after = words[position + 1] if position + 1 < len(words) else None
        if word == "drop" and after is not None and (_FLAG.match(after) or _FLAGS.match(after)):
            found.append(("drop", after, None))
            position += 2
        elif _VARIABLE.match(word):
            name, _, value = word.partition("=")
            found.append(("env", name, value))
            position += 1
        elif _FLAG.match(word):
            flag, equals, value = word.partition("=")
            takes = not equals and after is not None and after != "drop" and not after.startswith("--")
            takes = takes and not _VARIABLE.match(after or "")
            found.append(("set", flag, value if equals else after if takes else None))
            position += 2 if takes else 1
        else:
            return None
    return found or None


def with_action(command: str, action: str) -> str | None:
    """The command with an action in it; None where the action is a sentence or changes nothing."""
    steps = steps_of(action)
    if steps is None or not command.strip() or len(command) > 20_000:
        return None
    words = _TOKEN.findall(command)
    before = list(words)
    for what, name, value in steps:
        if what == "env":
            words = [w for w in words if not w.startswith(name + "=")]
            words.insert(0, f"{name}={value}")
        else:
            at = _place(words, name)
            if what == "set" and at is not None and (value or "") == values_of(" ".join(words), [name])[name]:
                continue
            while (found := _place(words, name)) is not None:
                del words[found : found + _length(words, found)]
            if what == "set":
                place = len(words) if at is None else at
                words[place:place] = [name] if value is None else [name, value]
    return " ".join(words) if words != before else None


def _place(words: list[str], flag: str) -> int | None:
    """Where a flag (or one beginning like "--speculative-*") stands, in either spelling of its dashes and underscores."""
    wanted, start = _spelling(flag), _spelling(flag[:-1]) if flag.endswith("*") else None
    for index, word in enumerate(words):
        spelled = _spelling(word.split("=", 1)[0])
        if word.startswith("--") and (spelled == wanted or (start is not None and spelled.startswith(start))):
            return index
    return None


def _spelling(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-")


def _length(words: list[str], at: int) -> int:
    """How many words a flag and its values take."""
    if "=" in words[at]:
        return 1
    end = at + 1
    while end < len(words) and not words[end].startswith("-") and end - at < 2:
        end += 1
    return end - at


def values_of(command: str, flags: Iterable[str]) -> dict[str, str]:
    """The values that flags have in a command, by the flag as asked for."""
    words = _TOKEN.findall(command[:20_000])
    found = {}
    for flag in flags:
        at = _place(words, flag)
        if at is not None:
            inline = words[at].partition("=")[2]
            found[flag] = inline or (words[at + 1] if _length(words, at) > 1 else "")
    return found
