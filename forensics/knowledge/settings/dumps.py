"""Reads settings that a program prints in one piece. In: retained lines; out: `Setting` rows. Samples:

    server_args=ServerArgs(model_path='m', tp_size=4, moe_runner_backend='triton', speculative_moe_runner_backend='triton', …)
    non-default args: {'model': 'm', 'max_model_len': 1024}
    Initializing a V1 LLM engine (v0.10.2) with config: model='m', speculative_config=None, tensor_parallel_size=2, …
    args: Namespace(host=None, model='m', …)
    SGLang server arguments: --model=m --tp=8                              (read by commands)
      tensor_model_parallel_size ......... 8                               (Megatron: one a line)
      "train_micro_batch_size_per_gpu": 4                                  (DeepSpeed prints its configuration as JSON, not read)

Only names of the settings table are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.knowledge.linerules import LineRule, Sightings
from forensics.knowledge.settings.names import Name, canonical, nested_heads
from forensics.knowledge.settings.reprs import pairs
from forensics.model import LogLine, Setting, Span

#: dumps read in one log: ranks print theirs alike
_MAX_DUMPS = 40
_MAX_VALUE = 2_000


def _rule(how: str, pattern: str, *anchors: str, lines: int = 0, after: int = 0) -> LineRule:
    return LineRule(anchors, pattern, lines=lines, fields={"how": how, "after": after})


_DUMPS = (
    _rule("asked", r"\bServerArgs\(", "ServerArgs("),
    _rule("asked", r"non-default args: \{", "non-default args: {"),
    _rule("asked", r"\bargs: Namespace\(", "args: Namespace("),
    _rule("asked", r"\bNamespace\(", "Namespace("),
    _rule("asked", r"\b(?:EngineArgs|AsyncEngineArgs|LlmArgs|TorchLlmArgs|TrtLlmArgs)\(", "EngineArgs(", "LlmArgs("),
    _rule("asked", r"LLM Args:\s*(?=\w+=)|\bLLM Args:\s*\w+\(", "LLM Args:"),
    _rule("asked", r"\bArgs \{ ", "Args { "),
    _rule("resolved", r"LLM engine \(v[^)]{1,80}\) with config: ", "LLM engine (v"),
)
_LISTED = _rule(
    "asked", r"^.{0,80}?\s{1,4}([A-Za-z_]\w{1,60}) \.{2,60} (\S.{0,300})$", "- arguments -", lines=600, after=600
)
_WORLD = _rule(
    "resolved",
    r"using world size: (?P<world_size>\d+), data-parallel.size: (?P<data_parallel_size>\d+),"
    r"(?: context-parallel.size: (?P<context_parallel_size>\d+),?)? tensor-model-parallel.size: (?P<tensor_parallel_size>\d+),"
    r".{0,120}?pipeline-model-parallel.size: (?P<pipeline_parallel_size>\d+)",
    "using world size: ",
)


def dump_rules() -> tuple[LineRule, ...]:
    """What this module looks for."""
    return (*_DUMPS, _LISTED, _WORLD)


def dumped(seen: Sightings) -> Iterator[Setting]:
    """Settings of every dump, in the log's order within one kind of dump."""
    for rule in _DUMPS:
        once: set[str] = set()
        for match in seen.matches([rule]):
            body = match.line.raw
            start = rule.pattern.search(body)
            if start is None or body[start.end() :] in once or len(once) >= _MAX_DUMPS:
                continue
            once.add(body[start.end() :])
            yield from _members(body, start.end(), match.line, str(rule.fields["how"]))
    yield from _listing(seen)
    for match in seen.matches([_WORLD]):
        for name, value in match.found.groupdict().items():
            if value:
                yield Setting(name, value, "resolved", match.span, None, name)


def _members(body: str, start: int, line: LogLine, how: str) -> Iterator[Setting]:
    span = Span(line.source, line.number, line.number)
    for key, value in pairs(body, start):
        if name := canonical(key):
            yield _setting(name, value, how, span, key)
        if key in nested_heads() and ("=" in value or ":" in value):
            at = min((i for i in (value.find("("), value.find("{")) if i >= 0), default=-1)
            for inner, member in pairs(value, at + 1) if at >= 0 else ():
                if name := canonical(f"{key}.{inner}"):
                    yield _setting(name, member, how, span, f"{key}.{inner}")


def _setting(name: Name, value: str, how: str, span: Span, spelled: str) -> Setting:
    text = None if value in ("None", "null") else value[:_MAX_VALUE]
    return Setting(name.name, text, how, span, name.component, spelled)


def _listing(seen: Sightings) -> Iterator[Setting]:
    """Megatron's argument list."""
    for match in seen.matches([_LISTED]):
        if name := canonical(match.found[1]):
            yield _setting(name, match.found[2].strip(), "asked", match.span, match.found[1])
