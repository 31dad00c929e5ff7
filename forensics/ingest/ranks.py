"""Who a line's writer is. In: what prefixes or file names say; out: `Rank` records and stream names. Sample:

rank_of({"rank": "3"}, "")            -> Rank("rank 3", 3)
rank_of({"pid": "71"}, "DP0 TP1")     -> Rank("DP0 TP1", None, (("dp", 0), ("tp", 1)), pid=71)
rank_of_name("logs/attempt_0/3/stderr.log") -> Rank("local rank 3", None, (("local", 3),))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from forensics.ingest.pattern import Pattern
from forensics.ingest.shape import zeroed
from forensics.model.source import LogLine, Rank

#: as people order them; an axis not named here follows by name
_ORDER = ("dp", "pp", "tp", "ep", "cp", "dcp", "pcp", "attn_cp", "moe_dp")
#: processes that serve the ranks but are none
_NO_RANK = Pattern(
    r"(?:Engine_?Core|API_?Server|DPCoordinator|StageEngineCore|TaskRunner|raylet|autoscaler|gcs_server)", re.I
)
_AXIS = Pattern(r"([A-Z][A-Z_]{0,10}?)_?([\dO]{1,5})(?![A-Z\d])")
#: where one axis of "_TP0_DCP0_EP0" ends and the next begins
_JOINT = re.compile(r"_(?=[DPTEC][CP]?P\d)")


@lru_cache(maxsize=4096)
def _parse_axes(text: str) -> tuple[tuple[str, int], ...]:
    found = {}
    for token in _JOINT.sub(" ", text).split():
        token = token.replace("MOE DP", "MOE_DP").strip("_")
        match = _AXIS.fullmatch(token)
        if match:
            found[match[1].strip("_").lower()] = int(match[2].replace("O", "0"))
    return tuple(sorted(found.items()))


def axes_of(text: str) -> tuple[tuple[str, int], ...]:
    """Parallel axes of a prefix ("DP0 PP1 TP1 ATTN_CP0", "_PP0_TP1"), sorted by name."""
    return (
        _parse_axes(text.replace("MOE_DP", "MOEDP").replace("ATTN_CP", "ATTNCP").replace("ATTN_DP", "ATTNDP"))
        if text
        else ()
    )


_SPELLED = {"moedp": "moe_dp", "attncp": "attn_cp", "attndp": "attn_dp"}


def label_of(axes: Iterable[tuple[str, int]]) -> str:
    """ "DP0 PP1 TP1": the axes as people say them."""
    known = dict(axes)
    names = [n for n in _ORDER if n in known] + sorted(n for n in known if n not in _ORDER)
    return " ".join(f"{n.upper()}{known[n]}" for n in names)


@lru_cache(maxsize=8192)
def _rank(label: str, number: int | None, axes: tuple[tuple[str, int], ...], node: str | None, pid: int | None) -> Rank:
    return Rank(label, number, axes, node, pid)


def rank_of(captures: Mapping[str, str], axes_text: str) -> Rank | None:
    """The rank that the prefixes name; None where they name a process that is no rank, or nothing."""
    get = captures.get
    return _named(
        axes_text, get("role", ""), get("rank"), get("task"), get("local_rank"), get("pid"), get("node") or get("ip")
    )


@lru_cache(maxsize=4096)
def _named(
    axes_text: str,
    role: str,
    rank: str | None,
    task: str | None,
    local_rank: str | None,
    pid_text: str | None,
    node: str | None,
) -> Rank | None:
    pid, number = _int(pid_text), _int(rank)
    is_no_rank = bool(role) and _NO_RANK.match(role) is not None
    if is_no_rank and number is None:
        return None
    axes = () if is_no_rank else tuple(sorted((_SPELLED.get(n, n), i) for n, i in axes_of(axes_text)))
    if axes:
        return Rank(label_of(axes), number, axes, node, pid)
    if number is not None:
        # "3: [default0]:[rank12]:": one process under all of them, and the task is the one that started its node's ranks
        index, home = _int(task), _int(local_rank)
        places = (("local", home), ("task", index)) if index is not None else (("local", home),)
        return Rank(f"rank {number}", number, tuple((n, i) for n, i in places if i is not None) if home is not None else (), node, pid)
    index, home = _int(task), _int(local_rank)
    if index is not None and home is not None:  # "3: [default1]:": a task that starts the ranks of its node
        return Rank(f"task {index} local rank {home}", None, (("local", home), ("task", index)), node, pid)
    if index is not None:
        return Rank(f"rank {index}", index, (("task", index),), node, pid)
    if (index := home) is not None:
        return Rank(f"local rank {index}", None, (("local", index),), node, pid)
    return None


def stream_of(captures: Mapping[str, str], rank: Rank | None) -> str:
    """One string a writer: "place/rank", "place/role pid=7"; "" where the line does not say."""
    get = captures.get
    place, node, ip = get("place"), get("node"), get("ip")
    if rank is not None and not (place or node or ip):
        return rank.label
    parts = [part for part in (place, node, ip) if part]
    if rank is not None:
        parts.append(rank.label)
    else:
        role, pid = captures.get("role"), captures.get("pid")
        who = " ".join(x for x in (role, f"pid={pid}" if pid else None) if x)
        if who:
            parts.append(who)
    return "/".join(parts)


def _int(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


#: the whole name must be made like this: a rank number somewhere in a long name is more often a count or a size
_WORD = r"(?:[a-z]{1,20}[_.-]){0,2}"
_TAIL = r"(?:[_.-](?:log|txt|out|err|stdout|stderr)){0,3}$"
#: (words one of which the name must hold, the form, what its number is)
_NAMES: tuple[tuple[tuple[str, ...], Pattern[str], str], ...] = (
    (("attempt_",), Pattern(r"(?:^|[/\\!])attempt_\d{1,3}[/\\](\d{1,4})[/\\](?:std(?:out|err)|error)"), "local"),
    (("rank",), Pattern(rf"(?:^|[/\\!]){_WORD}local[_-]?rank[_-]?(\d{{1,6}}){_TAIL}"), "local"),
    (("rank",), Pattern(rf"(?:^|[/\\!]){_WORD}(?:global[_-]?)?rank[_.-]?(\d{{1,6}}){_TAIL}"), "rank"),
    (("rank",), Pattern(r"(?:^|[/\\!])rank[_-]?(\d{1,6})[/\\][^/\\]{1,80}$"), "rank"),
    # slurm-991.out is job 991, by Slurm's own naming (slurm-%j.out)
    (("slurm",), Pattern(r"(?:^|[/\\!])slurm[-_.]\d{1,12}[-_.](\d{1,4})\.(?:out|err|log|txt)$"), "task"),
    (
        ("srun", "log-", "log_", "task", "out-", "out_", "output"),
        Pattern(r"(?:^|[/\\!])(?:srun|log|task|out(?:put)?)(?:[-_.]\d{4,12})?[-_.](\d{1,4})\.(?:out|err|log|txt)$"),
        "task",
    ),
    (("std",), Pattern(r"(?:^|[/\\!])(\d{1,4})[/\\](?:rank_)?std(?:out|err)(?:\.\w{1,4})?$"), "local"),
    (("std",), Pattern(r"(?:^|[/\\!])(?:std(?:out|err)[_.-])(\d{1,4})(?:\.\w{1,4})?$"), "local"),
    (("pods",), Pattern(r"(?:^|[/\\!])pods[/\\][\w.-]{1,60}_([\w-]{1,80}-\d{1,4})_[0-9a-f-]{8,40}[/\\]"), "pod"),
)
_NAME_AXES = Pattern(rf"(?:^|[/\\!]){_WORD}((?:(?:dp|pp|tp|ep|cp)[_-]?\d{{1,4}}[_.-]?){{1,5}}){_TAIL}")
_SIBLING = Pattern(r"(?:^|[/\\!])([a-zA-Z][\w-]{0,120}?-(\d{1,4}))(?:_[a-z0-9-]{1,60}){0,2}(?:\.(?:log|txt|out))?$")


class Siblings:
    """The names of all inputs: llm-0.log beside llm-1.log is a pod, alone it is just a name."""

    __slots__ = ("_names", "_numbers")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = list(names)
        self._numbers: dict[str, set[str]] | None = None

    def pod_of(self, name: str) -> str | None:
        """The pod's name, where at least two inputs differ in its number only."""
        if len(self._names) < 2 or (found := _numbered(name)) is None:
            return None
        if self._numbers is None:
            self._numbers = self._told()
        stem, number = found
        return stem + number if len(self._numbers.get(stem, ())) > 1 else None

    def _told(self) -> dict[str, set[str]]:
        """What stands before the numbers -> the numbers; most folders never need it."""
        numbers: dict[str, set[str]] = {}
        for name in self._names:
            if found := _numbered(name):
                numbers.setdefault(found[0], set()).add(found[1])
        return numbers


def _numbered(name: str) -> tuple[str, str] | None:
    """("llm-", "0") of "logs/llm-0.log"; None where the name ends in no number."""
    start, middle, end = _numbered_shape(zeroed(name))
    return (name[start:middle], name[middle:end]) if end else None


@lru_cache(maxsize=1024)
def _numbered_shape(shape: str) -> tuple[int, int, int]:
    """Where in a name of this shape its stem begins, and its number begins and ends; zeros where it has none."""
    found = _SIBLING.search(shape)
    return (found.start(1), *found.span(2)) if found else (0, 0, 0)


_PACKED = (".gz", ".zst", ".xz", ".bz2")


def rank_of_name(name: str, siblings: Siblings | None = None) -> Rank | None:
    """The rank that a file's name gives to lines without one; None where it gives none."""
    while name.endswith(_PACKED):
        name = name[: name.rindex(".")]
    small = name.lower()
    kind, start, end = _form_of(zeroed(small))
    if kind:
        said = small[start:end]
        if kind == "axes":
            axes = tuple(sorted((axis, int(n)) for axis, n in re.findall(r"([a-z]{2})[_-]?(\d{1,4})", said)))
            return _rank(label_of(axes), None, axes, None, None)
        if kind == "pod":
            # where a small letter is longer than its capital, the name itself has another length
            return _pod(name[start:end] if len(name) == len(small) else said)
        index = int(said)
        if kind == "local":
            return _rank(f"local rank {index}", None, (("local", index),), None, None)
        return _rank(f"rank {index}", index, (("task", index),) if kind == "task" else (), None, None)
    pod = siblings.pod_of(name) if siblings is not None else None
    return _pod(pod) if pod else None


@lru_cache(maxsize=1024)
def _form_of(shape: str) -> tuple[str, int, int]:
    """What the number in a name of this shape is ("" where it is none), and where it stands. shape: in small letters, zeros for its digits,
    which no form tells from others."""
    base = shape.replace("\\", "/").rsplit("/", 1)[-1]
    if any(axis in base for axis in ("tp", "dp", "pp", "ep", "cp")) and (found := _NAME_AXES.search(shape)):
        return "axes", *found.span(1)
    for words, form, kind in _NAMES:
        if any(word in shape for word in words) and (found := form.search(shape)):
            return kind, *found.span(1)
    return "", 0, 0


def _pod(pod: str) -> Rank:
    return _rank(f"pod {pod}", None, (("pod", int(pod.rsplit("-", 1)[1])),), pod, None)


_TP_SIZE = Pattern(r"(?:tp_size|tensor[-_](?:model[-_])?parallel[-_]size|--tp-size|--tp|-tp)[=: '\"]{1,3}(\d{1,4})\b")
_NODES = Pattern(r"(?:--nnodes?|nnodes|min_nodes)[=: ]{1,3}(\d{1,5})\b|--standalone\b")


def global_numbers(lines: Iterable[LogLine]) -> dict[Rank, Rank]:
    """For ranks without a number: the same rank with its global number, where the log determines it.

    TP only: the TP index. With pipeline stages: pp * tp_size + tp, tp_size as printed or the number of indices seen. With
    DP beside TP: the TP index where each TP index belongs to one DP group only (attention DP), else unknown.
    """
    kept = list(lines)
    # lines share their `Rank` objects: each is hashed once
    once = {id(line.rank): line.rank for line in kept if line.rank is not None}
    if len(once) == 1 or not any(name == "dp" for rank in once.values() for name, _ in rank.axes):
        # nothing but another axis makes one rank's number depend on the others
        alone = [(rank, numbered_alone(rank)) for rank in once.values()]
        if all(final is not None for _, final in alone):
            return {rank: final for rank, final in alone if final is not None and final is not rank}
    ranks = {rank for rank in once.values() if rank.number is None}
    if not ranks:
        return {}
    sizes: set[int] = set()
    nodes: set[str] = set()
    names = {name for rank in ranks for name, _ in rank.axes}
    pipeline, local = "pp" in names, "local" in names
    if pipeline or local:
        for line in kept:
            if pipeline and ("tp" in line.raw or "parallel" in line.raw):
                sizes.update(int(n) for n in _TP_SIZE.findall(line.raw[:20_000]))
            if local and ("node" in line.raw or "--standalone" in line.raw):
                nodes.update(n or "1" for n in _NODES.findall(line.raw[:20_000]))
    tensor = [dict(rank.axes) for rank in ranks if "tp" in dict(rank.axes)]
    seen = {axes["tp"] for axes in tensor}
    groups: dict[int, set[int]] = {}
    for axes in tensor:
        if "dp" in axes:
            groups.setdefault(axes["tp"], set()).add(axes["dp"])
    replicas = any(len(dps) > 1 for dps in groups.values())
    tp_size = sizes.pop() if len(sizes) == 1 else len(seen) if seen == set(range(len(seen))) and len(seen) > 1 else None
    numbered = {}
    for rank in ranks:
        number = _number(dict(rank.axes), tp_size, replicas, nodes == {"1"})
        if number is not None:
            label = f"rank {number}" if rank.axis("task") is not None else rank.label
            numbered[rank] = _rank(label, number, rank.axes, rank.node, rank.pid)
    return numbered


#: by identity, as a hash costs more than what is saved: (a rank, which thereby lives on, and what `numbered_alone` says of it)
_ALONE: dict[int, tuple[Rank, Rank | None]] = {}
_MOST_ALONE = 4096


def numbered_alone(rank: Rank) -> Rank | None:
    """A rank that no other one stands beside, with its global number where that is sure; None where the lines may tell."""
    known = _ALONE.get(id(rank))
    if known is not None:
        return known[1]
    final: Rank | None = rank
    if rank.number is None:
        if any(name in ("pp", "local") for name, _ in rank.axes):
            final = None
        elif (number := _number(dict(rank.axes), None, False, False)) is not None:
            final = _rank(rank.label, number, rank.axes, rank.node, rank.pid)
    if len(_ALONE) < _MOST_ALONE:
        _ALONE[id(rank)] = (rank, final)
    return final


def _number(axes: dict[str, int], tp_size: int | None, replicas: bool, one_node: bool) -> int | None:
    if "local" in axes:
        return axes["local"] if one_node else None
    if set(axes) == {"dp", "ep"} and axes["dp"] == axes["ep"]:
        return axes["ep"]  # without tensor parallelism the experts' group is all processes
    if replicas or not set(axes) & {"tp", "pp"}:
        return None
    tp = axes.get("tp", 0)
    stage = axes.get("pp", 0)
    if "pp" in axes and "tp" not in axes:
        return stage if tp_size in (None, 1) else None
    if stage == 0:
        return tp
    return stage * tp_size + tp if tp_size is not None and tp < tp_size else None
