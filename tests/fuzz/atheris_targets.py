"""Coverage-guided fuzzing of the entry points that take bytes (needs `atheris`). In: a target and libFuzzer's flags; out: a crash or not.

    python -m tests.fuzz.atheris_targets analyze -max_total_time=120 -max_len=4096
    python -m tests.fuzz.atheris_targets all 60          # every target for so many seconds, with a count of runs each
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable

#: what a target may raise: an error in words
_ALLOWED = "ForensicsError"


def _analyze(data: bytes) -> None:
    from forensics.pipeline import analyze

    analyze([data])


def _read(data: bytes) -> None:
    """Ingest alone: encodings, compression, archives, JSON lines, prefixes."""
    from forensics.ingest import Anchor, ReadOptions, read

    read([data], [Anchor(b"Error", 2, 5), Anchor(b"Traceback", 1, 40)], ReadOptions(whole_below=0 if data[:1] > b"\x7f" else 4096))


def _dump(data: bytes) -> None:
    from forensics.model.source import Span
    from forensics.parse.flight_recorder import event_of, read_dump

    try:
        dump = read_dump(data)
    except ValueError:
        return
    event_of("nccl_trace_rank_0", dump, Span(0, 1, 1))


def _report(data: bytes) -> None:
    """A report of ours from a stranger, for a repro."""
    from forensics.repro.case import case_of_report

    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(content, dict):
        case_of_report(content)


def _redact(data: bytes) -> None:
    from forensics.redact import Redactor

    Redactor().text(data.decode("utf-8", "replace"))


def _kernel(data: bytes) -> None:
    from forensics.knowledge import decode_kernel

    decode_kernel(data.decode("latin-1"))


def _binary(data: bytes) -> None:
    from forensics.knowledge.binaries import scan

    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(data)
        file.flush()
        scan([file.name])


def _notes(data: bytes) -> None:
    from forensics.report.triage import load

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "a.log.triage.json"), "wb") as file:
            file.write(data)
        load(os.path.join(folder, "a.log"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "analyze": _analyze, "read": _read, "dump": _dump, "report": _report, "redact": _redact, "kernel": _kernel,
    "binary": _binary, "notes": _notes,
}  # fmt: skip


def _seeds(name: str) -> list[bytes]:
    """What a target starts from, so that it gets behind the first check."""
    import pickle
    from random import Random

    from .build import log, tiny

    row = {"record_id": 1, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 5, "op_id": 5, "profiling_name": "nccl:all_reduce",
           "input_sizes": [[4]], "input_dtypes": ["Float"], "state": "started", "frames": [{"name": "f", "filename": "a.py", "line": 3}]}  # fmt: skip
    dump = {"version": "2.10", "pg_config": {"0": {"desc": "default_pg", "ranks": "[0, 1]"}}, "pg_status": {"0": {"last_enqueued_collective": 5}}, "entries": [row]}
    logs = [made(Random(seed)) for made in (log, tiny) for seed in range(40)]
    primary = {"kind": "python", "type": "RuntimeError", "message": "mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8)", "frames": []}
    return {
        "dump": [pickle.dumps(dump, 4), pickle.dumps(dump, 2), json.dumps(dump).encode()],
        "report": [json.dumps({"schema": "forensics-report/1", "verdict": {"category": "unknown"}, "primary": primary}).encode()],
        "kernel": [b"bmm_MxE4m3_MxE2m1MxE4m3_Fp32_bA32_t128x16x256_s3_sm100f", b"_ZN7cutlass6KernelI4GemmEEvT_", b"triton_poi_fused_add_0"],
        "binary": [b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x03\0\x3e\0\x01\0\0\0" + b"\0" * 40, b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0", b"PK\x03\x04"],
        "notes": [b'{"schema": "forensics-triage/1", "notes": [{"line": 1, "text": "x", "quote": "y"}]}'],
        "redact": [b"HF_TOKEN=hf_abcdefghijklmnopqrstuv /home/alice/x 10.1.2.3 prompt: 'tell me something long'"],
    }.get(name, logs)


def _one(name: str, flags: list[str]) -> None:
    import atheris

    with atheris.instrument_imports(include=["forensics"]):
        import forensics.ingest.read
        import forensics.parse.flight_recorder
        import forensics.pipeline
        import forensics.redact  # noqa: F401
    from forensics.errors import ForensicsError

    target = TARGETS[name]

    def run(data: bytes) -> None:
        try:
            target(data)
        except ForensicsError:
            return

    atheris.Setup([sys.argv[0], *flags], run)
    atheris.Fuzz()


def _all(seconds: int) -> int:
    """Every target in a process of its own; prints its number of runs."""
    total = failed = 0
    for name in TARGETS:
        command = [sys.executable, "-m", "tests.fuzz.atheris_targets", name, f"-max_total_time={seconds}", "-max_len=4096", "-print_final_stats=1"]
        with tempfile.TemporaryDirectory() as folder:
            for number, seed in enumerate(_seeds(name)):
                with open(os.path.join(folder, f"seed{number}"), "wb") as file:
                    file.write(seed)
            done = subprocess.run([*command, folder, f"-artifact_prefix={folder}/"], capture_output=True, text=True, errors="replace", check=False)
        runs = re.search(r"Done (\d+) runs", done.stderr)
        total, failed = total + int(runs[1] if runs else 0), failed + (done.returncode != 0)
        print(f"{name}: {runs[1] if runs else '?'} runs, exit {done.returncode}", flush=True)
        if done.returncode:
            print(done.stderr[-3000:] + done.stdout[-3000:], flush=True)
    print(f"{total:,} runs, {failed} targets failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "all":
        sys.exit(_all(int(sys.argv[2])))
    _one(sys.argv[1], sys.argv[2:])
