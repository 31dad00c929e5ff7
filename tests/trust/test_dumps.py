"""Flight recorder dumps from strangers: pickles run nothing, and neither pickles nor JSON fill the memory."""

from __future__ import annotations

import json
import pickle
import resource
from pathlib import Path
from typing import Any

import pytest

from forensics import analyze


class _Runs:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (exec, (f"open({str(self.marker)!r}, 'w').close()",))


@pytest.mark.parametrize("place", ["whole", "entry", "key"])
def test_a_pickle_runs_nothing(place: str, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    runs = _Runs(marker)
    dump: Any = {"whole": runs, "entry": {"version": "2.10", "entries": [{"state": runs}]}, "key": {"entries": [], "x": [runs]}}[place]
    for protocol in (2, 3, 4, 5):
        path = tmp_path / "nccl_trace_rank_0"
        path.write_bytes(pickle.dumps(dump, protocol))
        incident = analyze([path])
        assert not marker.exists()
        assert any("names" in note.text and "exec" in note.text for note in incident.coverage.notes)


def _text(word: str) -> bytes:
    return b"X" + len(word).to_bytes(4, "little") + word.encode()


@pytest.mark.parametrize("key", ["state", "profiling_name", "process_group", "input_sizes", "input_dtypes", "frames", "version"])
def test_a_few_bytes_do_not_become_gigabytes(key: str) -> None:
    """Forty lists, each twice in the next: as text more than the memory holds."""
    lists = b"\x80\x02]q\x000" + b"".join(b"(h%ch%clq%c0" % (k, k, k + 1) for k in range(40))
    row = b"}(" + _text(key) + b"h\x28" + _text("record_id") + b"K\x01u"
    version = b"h\x28" if key == "version" else _text("2.10")
    dump = lists + b"}(" + _text("version") + version + _text("entries") + b"](" + row + b"e" + _text("pg_config") + b"}u."
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, limit[1]))
    try:
        incident = analyze([dump])
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    assert not [note for note in incident.coverage.notes if "gave up" in note.text]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_without_bottom(opening: str) -> None:
    deep = opening * 100_000
    dump = '{"version":"2.5","pg_config":' + deep
    line = '{"log":' + deep + "]" * 100_000 + "}"
    for text in (dump, line, f"2026-11-29T20:15:20Z {line}"):
        incident = analyze([text.encode()])
        assert incident.coverage.lines == 1 or incident.coverage.notes


def test_numbers_too_large_to_print() -> None:
    row = {"state": "completed", "collective_seq_id": 10**4000, "input_sizes": [[10**4000] * 64], "time_created_ns": 10**300}
    for content in (pickle.dumps({"version": "2.10", "entries": [row], "pg_config": {}}, 4), json.dumps(
        {"version": "2.10", "pg_config": {}, "entries": [row]}).encode()):  # fmt: skip
        incident = analyze([content])
        assert not [note for note in incident.coverage.notes if "gave up" in note.text or "of its own" in note.text]
    from forensics.model.source import Span
    from forensics.parse.flight_recorder import event_of

    entry = event_of("", {"entries": [{"collective_seq_id": 2**100, "record_id": 2**40}]}, Span(0, 1, 1)).fields["entries"][0]
    assert (entry.sequence, entry.record_id) == (None, 2**40)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04Nr\xff\xff\xff\x1f.", b"\x80\x05\x96\xff\xff\xff\x7f\0\0\0\0.", b"\x80\x04X\xff\xff\xff\x7f", b"\x80\x04\x8b\xff\xff\xff\x7f.",
        b"\x80\x04B\xff\xff\xff\xff", b"\x80\x04\x8d" + b"\xff" * 8, b"\x80\x04\x95" + b"\xff" * 8,
    ],
    ids=["memo", "bytearray", "text", "long", "bytes", "text8", "frame"],
)  # fmt: skip
def test_a_dump_reserves_no_memory_for_what_is_not_there(content: bytes) -> None:
    import tracemalloc

    from forensics.parse import restricted_pickle

    tracemalloc.start()
    try:
        restricted_pickle.loads(content)
    except restricted_pickle.UnsafePickle:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_is_read_as_python_reads_it(protocol: int) -> None:
    from forensics.parse import restricted_pickle

    data: Any = {
        "a": [1, -5, 70_000, 2**40, -(2**40), 3.5, None, True, False, "é" * 300, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "many": [{"name": f"f{n % 7}", "line": n} for n in range(2_000)], ("0", "pg"): {}, 7: "\ud800",
    }  # fmt: skip
    assert restricted_pickle.loads(pickle.dumps(data, protocol)) == data


def test_a_report_of_ours_that_was_tampered_with_is_refused_in_words() -> None:
    from forensics.errors import UsageError
    from forensics.repro.case import case_of_report

    good: Any = {"schema": "forensics-report/1", "verdict": {"category": "unknown"}, "primary": {"frames": [], "chain": []}}
    case_of_report(good)
    for key, wrong in (("frames", [0]), ("frames", 5), ("chain", ["x"]), ("kernel", [1]), ("evidence", [None])):
        with pytest.raises(UsageError, match="cannot be used"):
            case_of_report({**good, "primary": {**good["primary"], key: wrong}})
