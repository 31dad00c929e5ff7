"""Reads launch commands that stand in a log. In: retained lines; out: `Command`s and their settings. Samples:

    $ NCCL_DEBUG=INFO python -m sglang.launch_server --model-path m --tp 4 \\
        --moe-runner-backend triton
    + srun torchrun --nproc_per_node=8 --nnodes 2 train.py --bf16 --lr 1e-4
    docker run --gpus all -e VLLM_USE_V1=1 vllm/vllm-openai:v0.10.2 --model m --tensor-parallel-size 2
    SGLang server arguments: --model=m --tp=8

A command starts at its program (signatures/facts/launchers.toml) and may go on over lines that end with a backslash. Words in
prose ("run vllm serve again") are no command: what follows must look like arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.ingest.intake import Intake
from forensics.ingest.pattern import Pattern
from forensics.knowledge.linerules import LineRule, Sightings
from forensics.knowledge.settings.names import Name, canonical, plain
from forensics.model import Setting, Span
from forensics.model.record import record

_MAX_COMMAND = 20_000
_MAX_LINES = 60
_MAX_COMMANDS = 30
_FLAG = Pattern(r"-{1,2}[A-Za-z][\w.\-]{0,80}(=|\Z)")
#: "vllm serve <model> [options]": how to call it, not a call
_PLACEHOLDER = Pattern(r"<[a-z_ |-]{2,30}>|\[(?:options|OPTIONS|args|flags|-h)\]")
_VARIABLE = Pattern(r"([A-Z][A-Z0-9_]{2,60})=(.*)", re.DOTALL)
_ASSIGNED = r"[A-Z][A-Z0-9_]{2,60}=(?:\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s\"']{0,300})\s+"
#: what may stand before the program: variables, sudo and the like
_LEADING = Pattern(rf"(?:^|[\s$#>+`\"'|;&(:])((?:(?:export |env |sudo |exec |nohup |time |then )|{_ASSIGNED})*)\Z")
_MAX_LEADING = 1_500


@record
class Command:
    """A launch command. text: on one line, from its variables or program to its last argument; kind: the launcher's row;
    words: as a shell splits it; span: its lines."""

    text: str
    kind: str
    words: tuple[str, ...]
    span: Span

    @property
    def variables(self) -> dict[str, str]:
        """Environment set in front of the program, and by -e or --env of a container."""
        found: dict[str, str] = {}
        for index, word in enumerate(self.words):
            if variable := _VARIABLE.fullmatch(word):
                before = self.words[index - 1] if index else ""
                if before in ("-e", "--env", "-x", "env") or all(
                    _VARIABLE.fullmatch(w) or w in ("env", "export") for w in self.words[:index]
                ):
                    found[variable[1]] = variable[2]
            elif word.startswith("--env=") and (variable := _VARIABLE.fullmatch(word[6:])):
                found[variable[1]] = variable[2]
        return found


@cache
def command_rules() -> tuple[LineRule, ...]:
    """One row a launcher."""
    return tuple(
        LineRule(tuple(row["anchor"]), row["pattern"], fields={"kind": row["kind"], "after": 30, **row})
        for row in table("facts/launchers")["launcher"]
    )


def commands(seen: Sightings) -> list[Command]:
    """Launch commands of the log in its order, the same text once; a command inside another's words (torchrun in srun) is part
    of it."""
    found: list[Command] = []
    texts: set[str] = set()
    for match in seen.matches(command_rules()):
        if len(found) >= _MAX_COMMANDS:
            break
        raw = match.line.raw[:_MAX_COMMAND]
        start = match.found.start(1) if match.found.re.groups else match.found.start()
        if len(match.line.raw) > 4_000:
            start = raw.find(match.found[0])
        if start < 0:
            continue
        if lead := _LEADING.search(raw, max(0, start - _MAX_LEADING), start):
            start = lead.start(1)
        text, last = _whole(seen.intake, match.at, raw[start:])
        words = _words(text)
        if not _is_command(words, match.rule) or text in texts:
            continue
        texts.add(text)
        found.append(
            Command(text, str(match.rule.fields["kind"]), words, Span(match.line.source, match.line.number, last))
        )
    found.sort(key=lambda c: (c.span.source, c.span.first_line, -len(c.text)))
    outer: list[Command] = []
    for command in found:
        if not any(command.text in other.text and other.span.overlaps(command.span) for other in outer):
            outer.append(command)
    return outer


def _whole(intake: Intake, index: int, head: str) -> tuple[str, int]:
    """The command joined over its continuation lines, and its last line's number."""
    line = intake.lines[index]
    parts, number = [head.rstrip()], line.number
    for follower in intake.lines[index + 1 : index + 1 + _MAX_LINES]:
        if not parts[-1].endswith("\\") or follower.source != line.source or follower.number != number + 1:
            break
        parts[-1] = parts[-1][:-1].rstrip()
        parts.append(follower.text.strip()[:_MAX_COMMAND])
        number = follower.number
    parts[-1] = parts[-1].rstrip("\\").rstrip()
    text = " ".join(part for part in parts if part)
    return _without_tail(text), number


def _without_tail(text: str) -> str:
    """Cut where the log goes on behind the command: a closing quote, a pipe, the end of a Markdown code span."""
    for mark in ("`", " 2>&1", " | tee", " &> ", " >> ", " > ", " && ", " ;"):
        text = text.split(mark, 1)[0]
    return text.strip()[:_MAX_COMMAND]


def _words(text: str) -> tuple[str, ...]:
    import shlex

    text = text.replace("'\\''", "'")  # a quote in a script that is quoted itself: bash -c '… --model '\''m'\'' …'
    try:
        return tuple(shlex.split(text, comments=False))
    except ValueError:  # a quote that never closes
        return tuple(text.replace('"', " ").replace("'", " ").split())


def _is_command(words: Sequence[str], rule: LineRule) -> bool:
    """At least one flag, or the program followed by nothing but its model or script."""
    if any(_PLACEHOLDER.fullmatch(word) for word in words):
        return False
    flags = sum(1 for word in words[1:] if _FLAG.match(word))
    named = any(pattern_of(r"[/.\d_-]").search(word) for word in words[-1:])
    return flags > 0 or (bool(rule.fields.get("bare")) and 2 <= len(words) <= 5 and named)


def asked(command: Command) -> Iterator[Setting]:
    """Settings of a command's flags, canonical where the table knows them; a shell's "${NAME}" that was not filled in is no value."""
    words = command.words
    start = _program_arguments(command)
    if command.kind in _MODEL_FIRST and start < len(words) and not words[start].startswith("-") and not _UNFILLED.search(words[start]):
        yield Setting("model", words[start], "asked", command.span, "target_model", words[start - 1])
    index = start
    while index < len(words):
        word = words[index]
        index += 1
        if not (found := _FLAG.match(word)):
            continue
        if found[1] == "=":
            flag, value = word.split("=", 1)
        elif index < len(words) and not _FLAG.match(words[index]):
            flag, value = word, words[index]
            index += 1
        else:
            flag, value = word, "True"
        name = canonical(flag) or (Name(plain(flag), None) if flag.startswith("--") else None)
        if name and not _UNFILLED.search(value[:2_000]):
            yield Setting(name.name, value[:2_000], "asked", command.span, name.component, flag)


_UNFILLED = pattern_of(r"\$(?:\{\w{1,80}\}|[A-Z_]{2,80}\b)")
_MODEL_FIRST = ("vllm", "trtllm", "sglang-serve")


def _program_arguments(command: Command) -> int:
    """Where the program's own arguments start: behind a container's image, behind "serve"."""
    words = command.words
    if words[0].startswith("-"):
        return 2 if words[0] == "-m" else 0
    for index, word in enumerate(words):
        if word == "-m" and _is_python(words[:index]):
            return index + 2
        if (
            word in ("serve", "bench")
            and index
            and words[index - 1].rsplit("/", 1)[-1] in ("vllm", "trtllm-serve", "sglang")
        ):
            return index + 1
        if word.rsplit("/", 1)[-1] == "trtllm-serve":
            return index + 1
    return 1


def _is_python(words: Sequence[str]) -> bool:
    """An interpreter and nothing behind it but options of its own: python3 -u -X dev."""
    for index in range(len(words) - 1, -1, -1):
        if "python" in words[index]:
            return True
        if not words[index].startswith("-") and words[index - 1] not in ("-X", "-W"):
            return False
    return False
