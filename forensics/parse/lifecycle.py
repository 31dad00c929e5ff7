"""Milestones of servers and training jobs. In: an intake; out: LIFECYCLE events, fields {"phase", "state"} (state: begin, end, or
"done" for a moment). Samples:

    [2026-11-29 20:15:20 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=10.00 GB
    -> LIFECYCLE fields {"phase": "graph_capture", "state": "begin", "component": "target_model"}
    [2026-11-29 20:15:40 TP0] The server is fired up and ready to roll!           -> phase "ready"
    INFO:     Finished server process [4711]                                      -> phase "shutdown", state "end"
    Received signal 15                                                           -> phase "shutdown_requested", type "SIGTERM"

Phases: startup, distributed_init, weight_load, memory_profiling, kv_cache, graph_capture, compile, warmup, ready, prefill, decode,
training, checkpoint_save, checkpoint_load, finished, shutdown_requested, shutdown. Steps are progress.py's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.model.source import LogLine
from forensics.parse.rows import Row, Table
from forensics.parse.signals import signal_name


def _component(groups: Mapping[str, str | None], line: LogLine) -> Mapping[str, Any]:
    """Whose graphs or weights: SGLang says "draft", vLLM names a drafter."""
    words = line.text[:200].lower()
    return {"component": "draft_model" if "draft" in words or "eagle" in words or "nextn" in words else "target_model"}


def _row(
    phase: str, state: str, literal: str, pattern: str = "", unless: tuple[str, ...] = (), owned: bool = False
) -> Row:
    return Row(
        literal,
        EventKind.LIFECYCLE,
        pattern,
        fields={"phase": phase, "state": state},
        unless=unless,
        fill=_component if owned else None,
    )


def _asked(literal: str, pattern: str = "", type: str | None = None, unless: tuple[str, ...] = ()) -> Row:
    fill = (
        (lambda groups, line: {"signal": signal_name(int(groups["number"])) if groups.get("number") else type})
        if "number>" in pattern
        else None
    )
    return Row(
        literal,
        EventKind.LIFECYCLE,
        pattern,
        type=type,
        fields={"phase": "shutdown_requested", "state": "begin"},
        unless=unless,
        fill=fill,
    )


_TABLE = Table(
    "lifecycle",
    (
        _row("startup", "begin", "server_args=ServerArgs(", r"(?P<message>server_args=ServerArgs\(.{0,200})"),
        _row("startup", "begin", "vLLM API server version"),
        _row("startup", "begin", "Initializing a V1 LLM engine", r"(?P<message>Initializing a V1 LLM engine.{0,200})"),
        _row("startup", "begin", "Initializing an LLM engine", r"(?P<message>Initializing an LLM engine.{0,200})"),
        _row("startup", "begin", "Starting vLLM API server"),
        _row("startup", "begin", "llama_model_loader: loaded meta data"),
        _row("startup", "begin", "TensorRT-LLM version:"),
        _row("startup", "begin", "initializing distributed: GLOBAL_RANK"),
        _row(
            "startup",
            "begin",
            "Setting OMP_NUM_THREADS environment variable",
            r"(?P<message>Setting OMP_NUM_THREADS.{0,60})",
        ),
        _row("startup", "begin", "WORLD INFO DICT"),
        _row("distributed_init", "begin", "Init torch distributed begin"),
        _row("distributed_init", "end", "Init torch distributed ends"),
        _row("distributed_init", "end", "init distributed ends"),
        _row("weight_load", "begin", "Load weight begin", owned=True),
        _row("weight_load", "end", "Load weight end", owned=True),
        _row("weight_load", "begin", "Starting to load model", owned=True),
        _row("weight_load", "end", "Loading weights took", owned=True),
        _row("weight_load", "end", "Model loading took", owned=True),
        _row("weight_load", "end", "Loading model weights took", owned=True),
        _row("weight_load", "begin", "load_tensors: loading model tensors"),
        _row("weight_load", "end", "main: model loaded"),
        _row("weight_load", "end", "Shard ready in"),
        _row("weight_load", "begin", "] loading: ", r"model_lifecycle\.cc:\d{1,5}\] (?P<message>loading: .{1,200})"),
        _row("weight_load", "end", "successfully loaded '", r"(?P<message>successfully loaded '[^']{1,200}'.{0,40})"),
        _row("kv_cache", "end", "KV Cache is allocated"),
        _row("kv_cache", "end", "GPU KV cache size: "),
        _row("memory_profiling", "end", "Memory profiling takes"),
        _row("memory_profiling", "end", "Memory pool end."),
        _row("compile", "end", "torch.compile takes"),
        _row("graph_capture", "begin", "raph begin", r"Capture .{0,60}[Gg]raph begin", owned=True),
        _row("graph_capture", "end", "raph end", r"Capture .{0,60}[Gg]raph end", owned=True),
        _row("graph_capture", "begin", "Capturing CUDA graph", unless=("finished",), owned=True),
        _row("graph_capture", "begin", "Capturing the model for CUDA graphs", owned=True),
        _row("graph_capture", "begin", "Capturing cudagraphs for decoding", owned=True),
        _row("graph_capture", "end", "Graph capturing finished", owned=True),
        _row("warmup", "end", "init engine (profile, create kv cache, warmup model) took"),
        _row("warmup", "begin", "warming up the model with an empty run"),
        _row("ready", "done", "The server is fired up and ready to roll"),
        _row("ready", "done", "Application startup complete"),
        _row("ready", "done", "Uvicorn running on "),
        _row("ready", "done", "server is listening on"),
        _row("ready", "done", "HTTP server listening"),
        _row("ready", "done", "Started HTTPService at"),
        _row("ready", "done", "all slots are idle"),
        _row("ready", "done", "Invalid hostname, defaulting to 0.0.0.0"),
        _row("ready", "done", "Starting HTTP server: http"),
        _row("training", "begin", "***** Running training *****"),
        _row("training", "begin", "before the start of training step"),
        _row("finished", "done", "[after training is done]"),
        _row("finished", "done", "Training completed. Do not forget to share"),
        _row("finished", "done", "Trainer.fit` stopped: `max_"),
        _row("finished", "done", "[exiting program "),
        _row("finished", "done", "done with training"),
        _row("finished", "done", "{'train_runtime': "),
        _row("finished", "done", "# Avg bus bandwidth    :"),
        _row("startup", "begin", "NCCL INFO Bootstrap : Using "),
        _row("startup", "begin", "Using internal network plugin"),
        _row("checkpoint_save", "begin", "saving checkpoint at iteration"),
        _row("checkpoint_save", "end", "successfully saved checkpoint"),
        _row("checkpoint_save", "begin", "Saving model checkpoint to"),
        _row("checkpoint_save", "end", "model checkpoint saved"),
        _row("checkpoint_save", "begin", "Saving checkpoint"),
        _row("checkpoint_load", "begin", "loading checkpoint from"),
        _row("checkpoint_load", "begin", "loading distributed checkpoint from"),
        _row("checkpoint_load", "end", "successfully loaded checkpoint"),
        _row("checkpoint_load", "begin", "Loading checkpoint from"),
        _row("shutdown", "begin", "Shutting down", r"(?:^|[\]:\s])Shutting down\s*\.{0,3}\s*$"),
        _row("shutdown", "begin", "Waiting for application shutdown"),
        _row("shutdown", "begin", "Shutdown initiated (timeout="),
        _row("workers_ended", "done", "Executor: workers still running after grace period; sending SIGTERM"),
        _row("shutdown", "end", "Application shutdown complete"),
        _row("shutdown", "end", "Finished server process"),
        _row("shutdown", "end", "API server: shutting down FastAPI HTTP server"),
        _row("shutdown", "begin", "cleaning up before exit"),
        _row("shutdown", "begin", "Gracefully shutting down"),
        _row("shutdown", "begin", "Gracefully exiting"),
        _row("shutdown", "end", "Graceful shutdown complete"),
        _row("shutdown", "begin", "Shutting down server"),
        _asked("Received signal ", r"Received signal (?P<number>\d{1,2})\b"),
        _asked("SIGTERM received", r"SIGTERM received.*", type="SIGTERM", unless=("regarding SIGTERM received",)),
        _asked("Received SIGTERM", r"Received SIGTERM.*", type="SIGTERM", unless=("Received SIGTERM: 15",)),
        _asked("received SIGTERM", r"received SIGTERM.*", type="SIGTERM"),
        _asked("eceived SIGINT", r"[Rr]eceived SIGINT.*", type="SIGINT"),
        _asked(
            "received signal SIG",
            r"received signal (?P<type>SIG(?:TERM|INT|HUP|QUIT))\b.*",
            unless=("Program received", '" received signal'),
        ),
        _asked("Received second interrupt", type="SIGINT"),
        _asked("KeyboardInterrupt: terminat", type="SIGINT"),
        _asked("Keyboard interrupt received", type="SIGINT"),
        _asked("Interrupt received, shutting down", type="SIGINT"),
        _asked("Shutdown requested"),
        _asked("API server: shutdown triggered"),
        _asked("EngineCore: trigger received signal=", r"trigger received signal=(?P<type>SIG(?:TERM|INT))\b.*"),
        _asked("WorkerProc was terminated", type="SIGTERM", unless=('"WorkerProc was',)),
        _asked("Received exit signal", r"Received exit signal (?P<type>SIG\w+)?.*"),
        _asked("Signal (15) received", type="SIGTERM"),
        _asked("Signal (2) received", type="SIGINT"),
        _asked("Detected KeyboardInterrupt, attempting graceful shutdown", type="SIGINT"),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()

#: milestones of one kind and rank that are kept
MOST = 40


def parse(intake: Intake) -> list[Event]:
    """Milestones in the order of the lines; repeated ones of a rank within a few hundred lines are one, and of each kind the
    first and last MOST / 2 are kept (a server may say that it is idle after every request)."""
    by_kind: dict[tuple[object, ...], list[Event]] = {}
    for event in _TABLE.read(intake):
        rank = event.rank.key if event.rank else event.stream
        key = (event.span.source, rank, event.fields["phase"], event.fields["state"])
        by_kind.setdefault(key, []).append(event)
    kept = [
        e
        for events in by_kind.values()
        for e in (events if len(events) <= MOST else events[: MOST // 2] + events[-MOST // 2 :])
    ]
    return sorted(kept, key=lambda e: (e.span.source, e.span.first_line))
