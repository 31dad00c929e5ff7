"""Runs one op in a child of its own and says what came of it. In: a template's globals; out: one JSON line and an exit code. Sample:

    {"result": "forensics-repro/1", "outcome": "reproduced", "why": "RuntimeError: out of resource…", "recipe": "triton-shared-memory", …}

This file is copied into every script that `forensics repro` writes, so it uses the standard library only. A template gives
`RECIPE`, `PARAMETERS`, `EXPECTED`, `PROVENANCE` (data) and `prepare(p, variant)`, which returns the call to make, or
(call, check) where the result is checked afterwards;
`compile_for(p, variant, target)` where the op can be compiled without its GPU.
"""

import argparse
import contextlib
import ctypes
import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import statistics
import sys
import time
import traceback

from supervision import run_child

#: what `git bisect run` expects: 0 good, 1 bad, 125 skip
EXIT_CODES = {"works": 0, "reproduced": 1, "different_failure": 125, "cannot_try": 125}


class CannotTry(Exception):
    """The op cannot be tried here: no GPU, wrong GPU, a library or a file is missing."""


class Refused(Exception):
    """A compile-only target refuses the op. kind: instruction, shared memory, target or compiler; details: sizes in bytes, where known."""

    def __init__(self, kind, message, details=None):
        super().__init__(message)
        self.kind, self.details = kind, details


def need(module, why=""):
    """Imports a module, or says that the op cannot be tried without it."""
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:  # OSError: its shared library does not fit this torch
        raise CannotTry(f"cannot import {module}{': ' + why if why else ''} ({error})") from error


def seeded(p):
    """torch, seeded with the recipe's seed."""
    torch = need("torch")
    torch.manual_seed(int(p.get("seed", 0)))
    return torch


def masked(text):
    """A message without what differs between runs: numbers, addresses, quotes, white space."""
    text = re.sub(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?", "#", text[:20000])
    return " ".join(text.split())


def same_failure(expected, error, output):
    """Whether a failure is the one that the log showed, and why. error: {"kind", "type", "message", "root_type", "root_message"}."""
    kind = error.get("kind")
    said = (
        "\n".join(str(error.get(key) or "") for key in ("type", "message", "root_type", "root_message")) + "\n" + output
    )
    names = {str(error.get(key) or "").rsplit(".", 1)[-1] for key in ("type", "root_type")} - {""}
    if kind == "timeout":
        if expected.get("hang"):
            return True, "it hung, as the log says"
        return False, "it ran into the time limit, which the log does not show"
    if expected.get("signal") and kind == "signal":
        ok = error.get("type") == expected["signal"]
        return ok, f"the child died of {error.get('type')}" + ("" if ok else f", the log shows {expected['signal']}")
    pattern = next((p for p in expected.get("patterns", ()) if re.search(p, said)), None)
    message = expected.get("message")
    seen = pattern is not None or bool(message and message in masked(said))
    if not seen:
        return False, "the error says something else than the log"
    types = set(expected.get("types", ()))
    if types and kind == "python" and names and not types & names:
        return (
            False,
            f"the words are the same, the exception is not: {', '.join(sorted(names))} for {', '.join(sorted(types))}",
        )
    return True, "the same error as in the log"


def versions_found(names):
    """Installed versions of the libraries that the recipe names, None where absent."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def write_state(state):
    """Called in the child: says what came of the op, for its parent."""
    path = f"{os.environ['REPRO_RESULT']}.{os.environ.get('RANK', '0')}"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(state, file)


def on_gpu(recipe, parameters):
    """Whether the op needs a GPU: collectives over gloo do not."""
    return recipe["device"] == "cuda" and parameters.get("backend") != "gloo"


def check_gpu(recipe, parameters, any_gpu):
    """The GPU that the op would run on, as data. Raises CannotTry where it is not the one that the recipe needs."""
    if not on_gpu(recipe, parameters):
        return None
    torch = need("torch")
    if not torch.cuda.is_available():
        raise CannotTry("no CUDA GPU is visible to torch")
    major, minor = torch.cuda.get_device_capability(0)
    gpu = {"name": torch.cuda.get_device_name(0), "sm": f"sm_{major}{minor}", "count": torch.cuda.device_count()}
    print(
        f"device={gpu['name']} capability=({major}, {minor}) torch={torch.__version__} cuda={torch.version.cuda}",
        flush=True,
    )
    if gpu["count"] < recipe["gpus"]:
        raise CannotTry(f"{recipe['gpus']} GPUs are needed, {gpu['count']} are visible")
    wanted = recipe.get("sm")
    if wanted and wanted != gpu["sm"] and not any_gpu:
        raise CannotTry(f"wrong GPU: the log is from {wanted}, this is {gpu['sm']} (--any-gpu tries it all the same)")
    return gpu


def time_call(call, gpu):
    """Median milliseconds of one call, after three to warm up."""
    synchronize = need("torch").cuda.synchronize if gpu else lambda: None
    times, began = [], time.monotonic()
    for index in range(103):
        start = time.perf_counter()
        call()
        synchronize()
        if index >= 3:
            times.append((time.perf_counter() - start) * 1000)
        if time.monotonic() - began > 2 and len(times) >= 3:
            break
    return round(statistics.median(times), 4)


def describe(error):
    """An exception and its innermost cause, as data."""
    root, seen = error, set()
    while (inner := root.__cause__ or (None if root.__suppress_context__ else root.__context__)) is not None and id(
        inner
    ) not in seen:
        seen.add(id(inner))
        root = inner
    names = [f"{type(e).__module__}.{type(e).__qualname__}".removeprefix("builtins.") for e in (error, root)]
    return {
        "kind": "python",
        "type": names[0],
        "message": str(error)[:8000],
        "root_type": names[1],
        "root_message": str(root)[:8000],
    }


def child(script, variant, options):
    """The op itself; runs in the child (in every rank, where torchrun started it)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: do not outlive the parent
    recipe, parameters = script["RECIPE"], options["parameters"]
    gpu = None
    try:
        if options["target"]:
            details = script["compile_for"](parameters, variant, options["target"])
            write_state({"state": "worked", "details": details})
            return 0
        gpu = check_gpu(recipe, parameters, options["any_gpu"])
        prepared = script["prepare"](parameters, variant)
        call, check = prepared if isinstance(prepared, tuple) else (prepared, None)
        call()
        if on_gpu(recipe, parameters):
            need("torch").cuda.synchronize()
        if check is not None:
            check()
        ms = time_call(call, on_gpu(recipe, parameters)) if options["time"] and not recipe["processes"] else None
        write_state({"state": "worked", "gpu": gpu, "ms_per_call": ms})
        return 0
    except CannotTry as error:
        write_state({"state": "cannot", "why": str(error), "gpu": gpu})
        print(f"cannot be tried: {error}", flush=True)
        return 0
    except Refused as error:
        refusal = {"kind": error.kind, "type": "Refused", "message": str(error)[:8000]}
        write_state({"state": "refused", "error": refusal, "details": error.details})
        print(f"refused ({error.kind}): {error}", flush=True)
        return 0
    except BaseException as error:
        write_state({"state": "raised", "error": describe(error), "gpu": gpu})
        traceback.print_exc()
        sys.stderr.flush()
        sys.stdout.flush()
        os._exit(1)  # a broken CUDA context can hang or crash an ordinary exit


def decide(script, options, states, error, output):
    """(outcome, why) of a finished child."""
    cannot = next((state["why"] for state in states if state["state"] == "cannot"), None)
    refused = next((state["error"] for state in states if state["state"] == "refused"), None)
    if cannot:
        return "cannot_try", cannot
    if options["target"]:
        if refused:
            return "reproduced", f"{options['target']} refuses it ({refused['kind']}): {refused['message'][:500]}"
        if error:
            return "different_failure", f"{error.get('type') or error['kind']}: {error['message'][:500]}"
        details = next((state["details"] for state in states if state.get("details")), {})
        said = details.get("says") or f"it compiles for {details.get('target', options['target'])}"
        return "works", f"{said}; that says nothing about running it"
    if error is None:
        if not any(state["state"] == "worked" for state in states):
            return "different_failure", "the child ended without a word"
        return "works", "the op ran and the device finished it"
    if error["kind"] == "memory":
        return "cannot_try", f"memory cap: the op {error['message']}"
    same, why = same_failure(script["EXPECTED"], error, output)
    text = f"{error.get('root_type') or error.get('type') or error['kind']}: {str(error.get('root_message') or error['message'])[:500]}"
    return ("reproduced" if same else "different_failure"), f"{why}: {text}"


def parsed_value(text, old, name):
    """A value for a parameter, of the type that it has. Raises ValueError where it does not fit."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if old is not None and type(value) is not type(old):
        raise ValueError(f"--set {name}: {text!r} is not of type {type(old).__name__}")
    return value


def main(script):
    """Command line of the script. script: the template's globals()."""
    recipe = script["RECIPE"]
    names = [variant["name"] for variant in recipe["variants"]]
    parser = argparse.ArgumentParser(
        description=recipe["title"], epilog="exit codes: 0 works, 1 reproduced, 125 anything else"
    )
    parser.add_argument("--variant", default=names[0], choices=names, help="backend or form of the op")
    parser.add_argument("--timeout", type=float, default=float(recipe["timeout_s"]), help="seconds")
    parser.add_argument("--memory-mib", type=int, default=32768, help="resident memory of the child and what it starts")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="override a parameter")
    parser.add_argument("--time", action="store_true", help="time the op where it works")
    parser.add_argument("--any-gpu", action="store_true", help="try it on another GPU than the log's")
    parser.add_argument("--compile-only", metavar="SM", help="compile for this target (sm_120) instead of running")
    parser.add_argument("--yes-run-unsafe", action="store_true", help="run although it can wedge the node")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    parameters = dict(script["PARAMETERS"])
    for item in arguments.set:
        name, _, text = item.partition("=")
        if name not in parameters:
            parser.error(f"--set: there is no parameter {name!r}; there are {', '.join(parameters)}")
        try:
            parameters[name] = parsed_value(text, parameters[name], name)
        except ValueError as error:
            parser.error(str(error))
    options = {
        "parameters": parameters,
        "time": arguments.time,
        "any_gpu": arguments.any_gpu,
        "target": arguments.compile_only,
    }
    if arguments.child:
        raise SystemExit(child(script, arguments.child, options))
    extra = [flag for flag, on in (("--time", arguments.time), ("--any-gpu", arguments.any_gpu)) if on]
    extra += ["--compile-only", arguments.compile_only] if arguments.compile_only else []
    error, output, seconds, states = None, "", 0.0, []
    found = versions_found(recipe["libraries"])
    missing = [name for name in recipe["required"] if importlib.util.find_spec(name) is None]
    if missing and not arguments.compile_only:
        outcome, why = "cannot_try", f"not installed: {', '.join(missing)}"
    elif arguments.compile_only and "compile_for" not in script:
        outcome, why = "cannot_try", "this op has no form that compiles without its GPU"
    elif recipe["unsafe"] and not (arguments.yes_run_unsafe or arguments.compile_only):
        outcome, why = "cannot_try", f"unsafe to run: {recipe['unsafe']} (--yes-run-unsafe runs it)"
    else:
        one = dict(recipe, processes=None) if arguments.compile_only else recipe
        states, error, output, seconds = run_child(
            os.path.abspath(sys.argv[0]),
            one,
            parameters,
            arguments.variant,
            arguments.timeout,
            arguments.memory_mib << 20,
            extra,
        )
        outcome, why = decide(script, options, states, error, output)
        error = error or next((state["error"] for state in states if state["state"] == "refused"), None)
    wanted = script["PROVENANCE"].get("versions", {})
    result = {
        "result": "forensics-repro/1",
        "outcome": outcome,
        "why": why,
        "recipe": recipe["id"],
        "variant": arguments.variant,
        "mode": "compile_only" if arguments.compile_only else "run",
        "target": arguments.compile_only,
        "error": error,
        "seconds": round(seconds, 2),
        "ms_per_call": next((s["ms_per_call"] for s in states if s.get("ms_per_call")), None),
        "details": next((s["details"] for s in states if s.get("details")), None),
        "parameters": parameters,
        "versions": {name: {"wanted": wanted.get(name), "found": found[name]} for name in found},
        "gpu": next((s["gpu"] for s in states if s.get("gpu")), None),
    }
    print(json.dumps(result), flush=True)
    raise SystemExit(EXIT_CODES[outcome])
