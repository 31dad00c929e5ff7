"""Weaving: lines of several tracebacks interleaved at random, with prefixes and without. What comes out is never a frame in the
wrong stack; with prefixes everything comes back, without as much as the lines themselves can tell."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.ingest import from_text
from forensics.model import Event, EventKind
from forensics.parse import python
from forensics.parse.python.alike import one_stack
from forensics.parse.python.colors import Line
from forensics.parse.python.shapes import kind_of
from forensics.parse.python.weave import untangle

HEADER = "Traceback (most recent call last):"
RELAXED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

Shown = tuple[str, int, str]


@dataclass(frozen=True)
class Written:
    """One rank's traceback: its lines and the frames they show."""

    lines: tuple[str, ...]
    frames: tuple[Shown, ...]


def written(frames: list[tuple[Shown, str]], end: str, carets: bool = False) -> Written:
    """A traceback of these frames with their source lines, as Python prints it."""
    lines = [HEADER]
    for (file, number, function), code in frames:
        lines += [f'  File "{file}", line {number}, in {function}', f"    {code}"]
        if carets and "(" in code:
            start = code.index(code.split("(")[0].split()[-1])
            lines.append(" " * (4 + start) + "^" * (len(code) - start))
    return Written((*lines, end), tuple(frame for frame, _ in frames))


def woven(texts: list[tuple[str, ...]], seed: int) -> list[tuple[int, str]]:
    """(whose, line) in an order that keeps each writer's own order."""
    rnd = random.Random(seed)
    at = [0] * len(texts)
    result = []
    while open_ := [n for n in range(len(texts)) if at[n] < len(texts[n])]:
        n = rnd.choice(open_)
        result.append((n, texts[n][at[n]]))
        at[n] += 1
    return result


def parsed(lines: list[str]) -> list[Event]:
    return python.parse(from_text("\n".join(lines) + "\n", anchors=python.ANCHORS))


def frames_of(event: Event) -> list[tuple[Shown, ...]]:
    return [tuple((f.file or "", f.line or 0, f.function) for f in stack.frames) for stack in event.stacks]


def inside(part: tuple[Shown, ...], whole: tuple[Shown, ...]) -> bool:
    return any(whole[n : n + len(part)] == part for n in range(len(whole) - len(part) + 1))


# --- tracebacks -----------------------------------------------------------------------------------------------------------


def call_graph(rnd: random.Random, functions: int) -> dict[str, list[tuple[Shown, str, str]]]:
    """Call sites by function: (frame, source line, callee). All ranks run this one program."""
    names = [f"fn_{rnd.randrange(1000)}_{n}" for n in range(functions)]
    files = [f"/srv/app/part{n % 4}.py" for n in range(functions)]
    graph: dict[str, list[tuple[Shown, str, str]]] = {}
    for n, name in enumerate(names):
        sites = []
        for site in range(rnd.randint(1, 3)):
            callee = rnd.choice(names)
            code = rnd.choice([f"return self.{callee}(batch)", f"x = {callee}(x, y)", "return func(*args, **kwargs)"])
            sites.append(((files[n], 100 * n + site, name), code, callee))
        graph[name] = sites
    return graph


def walk(rnd: random.Random, graph: dict[str, list[tuple[Shown, str, str]]], depth: int, carets: bool) -> Written:
    frames = []
    name = rnd.choice(sorted(graph))
    for _ in range(depth):
        shown, code, callee = rnd.choice(graph[name])
        frames.append((shown, code))
        name = callee
    error = rnd.choice(["ValueError", "RuntimeError", "KeyError"])
    end = (graph[name][0][0][0], 9000 + len(error) + 100 * int(name.rsplit("_", 1)[1]), name)
    frames.append((end, f'raise {error}("x")'))
    return written(frames, f"{error}: in {name}", carets)


def own_code(rank: int, depth: int, style: int) -> Written:
    """A traceback of code that no other rank runs, each source line naming the function it calls."""
    word = ["load", "train", "evaluate", "serve", "gather", "save", "tokenize", "profile"][rank]
    frames = []
    for n in range(depth):
        file, function, callee = [
            (f"/srv/{word}/part{n}.py", f"step_{n}_{word}", f"step_{n + 1}_{word}"),
            (f"/srv/rank{rank}_{n}.py", f"fn_{rank}_{n}", f"fn_{rank}_{n + 1}"),
            (f"/srv/{word}.py", f"{word}{n}", f"{word}{n + 1}"),
        ][style]
        code = f"return self.{callee}(batch)" if n < depth - 1 else f"raise {word.title()}Error(batch)"
        frames.append(((file, 10 + n, function), code))
    return written(frames, f"{word.title()}Error: rank {rank}")


ranks = st.integers(2, 8)
seeds = st.integers(0, 10**6)


# --- with prefixes --------------------------------------------------------------------------------------------------------


@RELAXED
@given(
    count=ranks,
    seed=seeds,
    carets=st.booleans(),
    prefix=st.sampled_from(["[rank{}]: ", "(Worker_TP{0} pid=7{0}) ERROR 11-29 20:15:20 [a.py:5] "]),
)
def test_with_prefixes_every_frame_returns_to_its_rank(count: int, seed: int, carets: bool, prefix: str) -> None:
    rnd = random.Random(seed)
    graph = call_graph(rnd, 8)
    tracebacks = [walk(rnd, graph, rnd.randint(1, 12), carets) for _ in range(count)]
    lines = [prefix.format(n) + line for n, line in woven([t.lines for t in tracebacks], seed)]
    events = [e for e in parsed(lines) if e.kind is EventKind.PYTHON]
    assert len(events) == count
    for event in events:
        assert event.rank is not None and event.rank.number is not None
        assert frames_of(event) == [tracebacks[event.rank.number].frames]
        assert event.chain is not None and event.chain.ambiguous == 0


# --- without prefixes -----------------------------------------------------------------------------------------------------


@RELAXED
@given(count=ranks, seed=seeds, depth=st.integers(1, 12), carets=st.booleans(), functions=st.integers(3, 30))
def test_no_frame_in_a_wrong_stack(count: int, seed: int, depth: int, carets: bool, functions: int) -> None:
    rnd = random.Random(seed)
    graph = call_graph(rnd, functions)
    tracebacks = [walk(rnd, graph, depth, carets) for _ in range(count)]
    for event in parsed([line for _, line in woven([t.lines for t in tracebacks], seed)]):
        for frames in frames_of(event):
            assert any(inside(frames, t.frames) for t in tracebacks), frames


@settings(RELAXED, max_examples=25)
@given(count=ranks, seed=seeds, style=st.integers(0, 2))
def test_different_code_paths_are_told_apart(count: int, seed: int, style: int) -> None:
    rnd = random.Random(seed)
    tracebacks = [own_code(n, rnd.randint(8, 14), style) for n in range(count)]
    lines = [line for _, line in woven([t.lines for t in tracebacks], seed)]
    for event in parsed(lines):
        for frames in frames_of(event):
            assert any(inside(frames, t.frames) for t in tracebacks), frames
    result = untangle([Line(n, kind_of(line), line) for n, line in enumerate(lines)])
    placed = sum(len(strand.lines) for strand in result.strands)
    assert placed >= 0.9 * len(lines)
    assert placed + result.ambiguous == len(lines)


@RELAXED
@given(count=ranks, seed=seeds)
def test_the_same_code_path_is_told_to_be_indistinguishable(count: int, seed: int) -> None:
    one = own_code(3, random.Random(seed).randint(8, 14), 0)
    events = parsed([line for _, line in woven([one.lines] * count, seed)])
    # where a first traceback was whole before the second began, nothing was woven
    woven_ones = [e for e in events if "indistinguishable" in e.fields]
    assert {frames for e in events for frames in frames_of(e)} == {one.frames}
    for event in woven_ones:
        assert event.fields["indistinguishable"] == len(woven_ones)
        assert event.chain is not None and event.chain.ambiguous > 0
    assert len(events) == count


@pytest.mark.parametrize("count", [2, 3, 5])
def test_recursion_in_the_same_code_path(count: int) -> None:
    loop = [((f"/srv/m{n % 3}.py", 10 + n % 3, f"fn_{n % 3}"), f"return fn_{(n + 1) % 3}(x)") for n in range(6)]
    before = [((f"/srv/a{n}.py", n, f"step_{n}"), f"return step_{n + 1}(x)" if n < 5 else "fn_0(x)") for n in range(6)]
    one = written([*before, *loop, (("/srv/m0.py", 99, "fn_0"), 'raise ValueError("x")')], "ValueError: x")
    for seed in range(4):
        events = parsed([line for _, line in woven([one.lines] * count, seed)])
        assert any(e.fields.get("indistinguishable") == count for e in events)
        assert all(inside(shown, one.frames) for e in events for shown in frames_of(e))


def test_headers_with_ranks_are_not_guessed() -> None:
    first, second = own_code(0, 8, 0), own_code(1, 8, 0)
    head = "[2026-11-29 20:15:20 TP{}] Scheduler hit an exception: " + HEADER
    lines = [head.format(0), head.format(1)]
    for a, b in zip(first.lines[1:], second.lines[1:], strict=True):
        lines += [b, a]
    events = [e for e in parsed(lines) if e.chain]
    assert len(events) == 2
    assert all(e.rank is None for e in events)
    assert {frames for e in events for frames in frames_of(e)} == {first.frames, second.frames}


def test_alike_tracebacks_through_a_decorator_are_told_by_the_order_of_their_lines() -> None:
    """What a decorator calls has another name than the source line above it shows."""
    stack = [
        '  File "/srv/run.py", line 7, in main',
        "    serve(batch)",
        '  File "/srv/loop.py", line 12, in overlap',
        "    result = self.run_batch(batch)",
        '  File "/srv/worker.py", line 164, in forward_batch_generation',
        "    logits = self.model.forward(batch)",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ]
    lines = ["Traceback (most recent call last):"] * 4
    for shift in range(len(stack) * 4):  # each copy is two lines behind the one before it
        lines += [stack[shift - 2 * copy] for copy in range(4) if 0 <= shift - 2 * copy < len(stack)]
    result = untangle([Line(n, kind_of(line), line) for n, line in enumerate(lines)])
    assert result.alike == 4
    assert [[lines[at] for at in strand.lines[1:]] for strand in result.strands] == [stack] * 4
    # two copies that cannot have gone the same way
    crossed = [*lines[:2], *stack[:4], *stack[2:4], *stack[:2], stack[6], stack[6]]
    assert one_stack([Line(n, kind_of(line), line) for n, line in enumerate(crossed)]) is None


def test_hundreds_of_ranks_that_fail_alike_are_told_apart_by_their_headers() -> None:
    """Their headers stand one below the other, farther from the first frame than any other header does."""
    ranks = 600
    stack = [
        '  File "/srv/run.py", line 7, in main',
        "    serve(batch)",
        '  File "/srv/loop.py", line 12, in serve',
        "    step(batch)",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ]
    lines = [f"[2026-11-29 20:15:20 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):" for rank in range(ranks)]
    lines += [text for _, text in woven([list(stack) for _ in range(ranks)], 7)]
    events = [event for event in parsed(lines) if event.kind is EventKind.PYTHON]
    assert len(events) == ranks
    assert {event.rank.label for event in events if event.rank} == {f"TP{rank}" for rank in range(ranks)}
    assert {tuple(function for *_, function in frames) for event in events for frames in frames_of(event)} == {("main", "serve")}


WHOLE = """\
[2026-11-29 20:15:20 TP2] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/engine/runner.py", line 30, in capture
    run_once()
  File "/srv/engine/runner.py", line 44, in run_once
    return compiled(x)
  File "/srv/torch/_dynamo/output_graph.py", line 90, in call
    raise BackendFailed(self.fn, e).with_traceback(
  File "/srv/triton/compiler.py", line 12, in _init_handles
    raise OutOfResources(self.shared, most)
torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:
OutOfResources: out of resource: shared memory
"""


def test_a_traceback_cut_off_above_a_whole_one_weaves_nothing() -> None:
    torn = WHOLE.replace("TP2", "TP0").splitlines()[:5]
    events = [e for e in python.parse(from_text("\n".join(torn) + "\n\n" + WHOLE)) if e.kind is EventKind.PYTHON]
    whole = next(e for e in events if e.type)
    assert whole.rank is not None and whole.rank.label == "TP2"
    assert whole.type == "torch._dynamo.exc.BackendCompilerFailed" and "OutOfResources: out of resource" in whole.message
    assert len(whole.stacks[0].frames) == 4
    # two exception lines that stand below one another otherwise may be of two tracebacks: no whole stack is claimed
    other = WHOLE.replace("raised:\n", "raised\n")
    assert all(len(e.stacks[0].frames) < 4 for e in python.parse(from_text("\n".join(torn) + "\n\n" + other)) if e.stacks)


@pytest.mark.parametrize(("before", "after", "found"), [("**", "**", True), ("**", "", True), ("- ", "", False)])
def test_an_exception_line_in_bold_ends_its_traceback(before: str, after: str, found: bool) -> None:
    head = '[2026-11-29 20:15:20 TP1] it failed: Traceback (most recent call last):\n  File "/srv/a.py", line 3, in f\n    g()\n'
    events = python.parse(from_text(head + f"{before}RuntimeError: shapes (4x8 and 9x2){after}\n\nstep 3\n"))
    assert [(e.type, e.message) for e in events if e.type] == ([("RuntimeError", "shapes (4x8 and 9x2)")] if found else [])


def test_an_exception_line_in_bold_behind_a_prefix_ends_its_traceback() -> None:
    prefix = "(RayWorkerWrapper pid=12, ip=10.0.0.2) ERROR 11-29 20:15:20 worker_base.py:464] "
    text = [
        "Traceback (most recent call last):",
        '  File "/srv/vllm/model.py", line 3, in forward',
        "    merge(a, b)",
        "**RuntimeError: shapes (4x8 and 9x2)**",
    ]
    events = [e for e in python.parse(from_text("".join(f"{prefix}{line}\n" for line in text))) if e.type]
    assert [(e.type, e.message, len(e.stacks[0].frames)) for e in events] == [("RuntimeError", "shapes (4x8 and 9x2)", 1)]


def _notebook(frames: int, mark: str = "22 frames") -> str:
    """A traceback as Colab copies it: files are links, each frame with lines of its source, the stack folded in the middle."""
    link = "(https://localhost:8080/#)"
    rule = "-" * 75
    text = f"{rule}\nRuntimeError                              Traceback (most recent call last)\n"
    text += f"[<ipython-input-3-0a1b2c3d4e5f>]{link} in <cell line: 1>()\n----> 1 llm = engine.LLM(\n      2     model=path,\n\n{mark}\n"
    for n in range(frames):
        text += f"[/usr/lib/python3/site-packages/vllm/layer{n}.py]{link} in forward(self, x, **kwargs)\n"
        text += f"    140             x = x + {n}\n    141         )\n--> 142         return self.next(x)\n    143 \n    144     def other(self):\n\n"
    return text + "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"


def test_frames_of_a_notebook_that_are_links() -> None:
    events = [e for e in python.parse(from_text(_notebook(40))) if e.kind is EventKind.PYTHON]
    assert [(e.type, len(e.stacks[0].frames)) for e in events] == [("RuntimeError", 41)]
    first, *_, last = events[0].stacks[0].frames
    assert (first.file, first.function, first.line) == ("<ipython-input-3-0a1b2c3d4e5f>", "<cell line: 1>", 1)
    assert (last.file, last.function, last.line) == ("/usr/lib/python3/site-packages/vllm/layer39.py", "forward", 142)
    # a link in prose is no frame
    prose = _notebook(1).replace(") in forward(self, x, **kwargs)", ") says how")
    events = [e for e in python.parse(from_text(prose)) if e.kind is EventKind.PYTHON]
    assert [len(e.stacks[0].frames) for e in events] == [1]
