"""Flight recorder dumps: the recorded hang, seven faults made with Gloo, hand-made dumps of other shapes, hostile ones."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogSource
from forensics.parse import flight_recorder
from forensics.parse.flight_recorder import DumpEntry

FOLDER = Path(__file__).parents[2] / "fixtures" / "flight_recorder"


def _read(*blobs: tuple[str, bytes]) -> tuple[list[Event], Intake]:
    intake = Intake(sources=tuple(LogSource(name) for name, _ in blobs), blobs=blobs)
    return flight_recorder.parse(intake), intake


def _fault(name: str) -> dict[int, Event]:
    """The events of a fault's dumps by rank."""
    events, intake = _read(*((path.name, path.read_bytes()) for path in sorted((FOLDER / name).iterdir())))
    assert not intake.notes
    return {event.rank.number: event for event in events if event.rank and event.rank.number is not None}


def _last(event: Event, group: str = "0") -> DumpEntry:
    return [entry for entry in event.fields["entries"] if entry.group == group][-1]


def test_skipped_collective() -> None:
    dumps = _fault("skipped")
    assert {rank: _last(event).sequence for rank, event in dumps.items()} == {0: 6, 1: 5, 2: 6, 3: 6}
    assert {rank: _last(event).done for rank, event in dumps.items()} == {0: False, 1: True, 2: False, 3: False}
    assert dumps[0].fields["status"]["0"] == {"enqueued": 6, "started": None, "completed": 5}
    assert dumps[0].fields["groups"][""]["ranks"] == (0, 1, 2, 3)


def test_other_collective() -> None:
    assert {r: _last(e).op for r, e in _fault("other_collective").items()} == {
        0: "all_reduce",
        1: "broadcast",
        2: "all_reduce",
        3: "all_reduce",
    }


def test_other_size() -> None:
    assert {r: _last(e).numel_in for r, e in _fault("other_size").items()} == {0: 64, 1: 96, 2: 64, 3: 64}


def test_other_dtype() -> None:
    assert {r: _last(e).dtypes_in for r, e in _fault("other_dtype").items()} == {
        0: ("Float",),
        1: ("Double",),
        2: ("Float",),
        3: ("Float",),
    }


def test_dead_rank_left_no_dump() -> None:
    dumps = _fault("dead_rank")
    assert sorted(dumps) == [0, 1, 3]
    assert not _last(dumps[0]).done


def test_stuck_outside_of_a_collective() -> None:
    dumps = _fault("stuck_outside")
    assert {rank: _last(event).sequence for rank, event in dumps.items()} == {0: 6, 1: 6, 2: 6, 3: 5}
    assert [frame.function for frame in _last(dumps[0]).frames][-3:] == ["step", "wrapper", "all_reduce"]


def test_two_groups_as_json() -> None:
    dumps = _fault("two_groups")
    assert {rank: sorted({e.group for e in event.fields["entries"]}) for rank, event in dumps.items()} == {
        0: ["0", "1"],
        1: ["0", "1"],
        2: ["0", "2"],
        3: ["0", "2"],
    }
    assert (_last(dumps[2], "2").sequence, _last(dumps[2], "2").done) == (4, False)
    assert _last(dumps[3], "2").sequence == 3
    assert dumps[2].fields["status"]["2"]["completed"] == 3, (
        "status is keyed by the group's name, not the recorder's number"
    )
    assert _last(dumps[2], "2").desc == "tp_group"


def _entry(**given: Any) -> dict[str, Any]:
    row = {
        "record_id": 0,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": 1,
        "p2p_seq_id": 0,
        "op_id": 1,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": 1_795_983_330_214_867_213,
        "input_sizes": [[4, 8]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[4, 8]],
        "output_dtypes": ["BFloat16"],
        "state": "completed",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": 1_795_983_330_226_553_347,
        "retired": True,
        "timeout_ms": 600_000,
        "is_p2p": False,
        "frames": [
            {"name": "all_reduce", "filename": "distributed_c10d.py", "line": 3068},
            {"name": "train", "filename": "train.py", "line": 7},
        ],
    }
    return {**row, **given}


def _dump(*entries: dict[str, Any], **given: Any) -> bytes:
    content = {
        "version": "2.10",
        "entries": list(entries),
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    }
    return pickle.dumps({**content, **given}, protocol=2)


def test_point_to_point_counts_by_its_own_sequence() -> None:
    send = _entry(profiling_name="nccl:send 1->2", is_p2p=True, p2p_seq_id=7, collective_seq_id=1, state="started")
    (event,), _ = _read(("nccl_trace_rank_1", _dump(_entry(), send)))
    last = event.fields["entries"][-1]
    assert (last.op, last.peer, last.sequence, last.is_p2p, last.done) == ("send", "1->2", 7, True, False)


def test_coalesced_operations() -> None:
    row = _entry(profiling_name="nccl:ALLGATHER_coalesced", input_sizes=[[4], [2, 2]], output_sizes=[[8], [4, 2]])
    (event,), _ = _read(("nccl_trace_rank_0", _dump(row)))
    entry = event.fields["entries"][0]
    assert (entry.coalesced, entry.numel_in, entry.numel_out) == (True, 8, 16)


def test_frames_are_outermost_first() -> None:
    (event,), _ = _read(("nccl_trace_rank_0", _dump(_entry())))
    assert [f.function for f in event.fields["entries"][0].frames] == ["train", "all_reduce"]


def test_an_older_schema_without_frames_and_p2p() -> None:
    row = {
        "seq_id": 3,
        "pg_id": 0,
        "profiling_name": "nccl:broadcast",
        "input_sizes": [[2]],
        "output_sizes": [[2]],
        "state": "scheduled",
        "retired": False,
    }
    (event,), _ = _read(("rank_5.pickle", pickle.dumps({"version": "1.0", "entries": [row]}, protocol=2)))
    entry = event.fields["entries"][0]
    assert event.rank is not None and event.rank.number == 5
    assert (entry.sequence, entry.op, entry.frames, entry.done) == (3, "broadcast", (), False)


def test_a_dump_that_is_a_line_of_the_log() -> None:
    from forensics.ingest.read import from_text

    text = json.dumps(
        {"version": "2.10", "rank": 2, "entries": [_entry(state="started")], "pg_config": {"0": {"ranks": [0, 1, 2]}}}
    )
    (event,) = flight_recorder.parse(from_text("a line\n" + text + "\n", anchors=flight_recorder.ANCHORS))
    assert event.kind is EventKind.COLLECTIVE_STATE and event.span.first_line == 2
    assert event.rank is not None and event.rank.number == 2


class _Evil:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("/tmp/forensics-was-here"),))


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"entries": [_Evil()]}, protocol=4),
        pickle.dumps({"entries": [_Evil()]}, protocol=0),
        pickle.dumps(_Evil, protocol=4),
        b"\x80\x04",
        b"",
        b"{",
        b'{"entries": 3}',
        pickle.dumps([1, 2]),
        _dump(_entry())[:-40],
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02P0\n.",
        b'{"entries": ' + b"[" * 100_000,
    ],
)
def test_hostile_dumps_leave_a_note_and_run_nothing(content: bytes) -> None:
    events, intake = _read(("nccl_trace_rank_0", content))
    assert not events
    assert len(intake.notes) == 1 and "nccl_trace_rank_0" in intake.notes[0].text
    assert not Path("/tmp/forensics-was-here").exists()


def test_rows_of_wrong_types_are_read_as_far_as_they_go() -> None:
    rows: list[Any] = [
        _entry(process_group=None, input_sizes="x", frames=5, collective_seq_id="4", timeout_ms=True),
        7,
        None,
        _entry(),
    ]
    (event,), _ = _read(
        ("nccl_trace_rank_0", pickle.dumps({"entries": rows, "pg_config": [], "pg_status": {"0": 3}}, protocol=2))
    )
    first = event.fields["entries"][0]
    assert (first.sequence, first.sizes_in, first.frames, first.timeout_ms) == (4, (), (), None)
