"""The command line, in processes of its own: words, exit codes, pipes that close, errors in words."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

Run = Callable[..., subprocess.CompletedProcess[bytes]]
CRASH = "one_oom/one_oom.log"
HEALTHY = "healthy_sglang/healthy_sglang.log"


@pytest.mark.parametrize("words", [(), ("analyze",)])
def test_a_path_or_a_pipe(forensics: Run, samples: Path, words: tuple[str, ...]) -> None:
    log = samples / CRASH
    named = forensics(*words, str(log))
    piped = forensics(*words, stdin=log.read_bytes())
    dashed = forensics(*words, "-", stdin=log.read_bytes())
    assert named.returncode == piped.returncode == dashed.returncode == 1, named.stderr
    assert b"CRASHED" in named.stdout
    assert piped.stdout == dashed.stdout
    assert piped.stdout.replace(b"stdin:", b"one_oom.log:").split() == named.stdout.split()
    assert not named.stderr


def test_healthy_is_zero(forensics: Run, samples: Path) -> None:
    done = forensics(str(samples / HEALTHY))
    assert done.returncode == 0, done.stdout
    assert b"HEALTHY" in done.stdout


def test_options_before_paths(forensics: Run, samples: Path) -> None:
    done = forensics("--format", "json", str(samples / CRASH))
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "crashed"


def test_schema(forensics: Run, samples: Path) -> None:
    printed = json.loads(forensics("schema").stdout)
    report = json.loads(forensics("--format", "json", str(samples / CRASH)).stdout)
    jsonschema.Draft202012Validator(printed).validate(report)


@pytest.mark.parametrize("ending", ["json", "md", "txt"])
def test_output_is_named_after_its_format(forensics: Run, samples: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"report.{ending}"
    done = forensics(str(samples / CRASH), "-o", str(out))
    assert done.returncode == 1
    assert not done.stdout
    start = {"json": "{", "md": "## ✗ crashed", "txt": " ✗ CRASHED"}[ending]
    assert out.read_text(encoding="utf-8").startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_output_into_nowhere(forensics: Run, samples: Path, tmp_path: Path) -> None:
    done = forensics(str(samples / CRASH), "-o", str(tmp_path / "no" / "report.json"))
    assert done.returncode == 4
    assert b"error: cannot write the report: No such file or directory" in done.stderr
    assert b"make the folder first" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--nonsense",), b"No such option"),
        (("--format", "yaml"), b"'yaml' is not one of"),
        (("--since", "yesterday-ish"), b"--since 'yesterday-ish' is no time I can read"),
        (("--incident", "0"), b"0 is not in the range"),
        (("--signatures", "/nowhere"), b"does not exist"),
    ],
)
def test_wrong_usage_is_two(forensics: Run, words: tuple[str, ...], said: bytes) -> None:
    done = forensics("analyze", "-", *words)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(b"error: ")
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
    assert not done.stdout


def test_unreadable_is_four(forensics: Run, tmp_path: Path) -> None:
    done = forensics(str(tmp_path / "no.log"))
    assert done.returncode == 4
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr


def test_nothing_understood_is_three(forensics: Run) -> None:
    assert forensics(stdin=b"lorem ipsum\n" * 50).returncode == 3
    assert forensics(stdin=b"").returncode == 3


def test_some_inputs_unreadable_is_one(forensics: Run, samples: Path, tmp_path: Path) -> None:
    done = forensics(str(samples / HEALTHY), str(tmp_path / "no.log"), "--format", "json")
    assert done.returncode == 1, done.stderr
    assert "no.log" in json.loads(done.stdout)["coverage"]["skipped"][0]["name"]


def test_an_ambiguous_gpu_is_asked_back(forensics: Run, samples: Path) -> None:
    done = forensics(str(samples / CRASH), "--gpu", "RTX 6000")
    assert done.returncode == 2, done.stdout
    assert b"RTX PRO 6000" in done.stderr
    assert b"Ada" in done.stderr


def test_a_gpu_as_people_type_it(forensics: Run, samples: Path) -> None:
    done = forensics("--gpu", "rtx pro 6000", "--format", "json", stdin=b"CUDA error: no kernel image is available\n")
    assert json.loads(done.stdout)["device"]["sm"] == "sm_120"
    assert json.loads(done.stdout)["device"]["source"] == "flag"


def test_only_one_rank(forensics: Run, samples: Path) -> None:
    report = json.loads(forensics(str(samples / CRASH), "--rank", "0", "--format", "json").stdout)
    assert (report["primary"] or {}).get("root_type") != "torch.OutOfMemoryError"


@pytest.mark.parametrize("bound", ["2026-11-29T20:18:45", "20:18:45", "1795983525"])
def test_since_and_until(forensics: Run, samples: Path, bound: str) -> None:
    """The failure at 20:18:45 is out of sight before it, and there after it."""
    early = forensics(
        str(samples / CRASH), "--until", bound.replace("45", "43").replace("525", "523"), "--format", "json"
    )
    assert json.loads(early.stdout)["primary"] is None
    late = forensics(str(samples / CRASH), "--since", bound, "--format", "json")
    assert json.loads(late.stdout)["primary"]["root_type"] == "torch.OutOfMemoryError"


def test_quiet_is_one_line(forensics: Run, samples: Path) -> None:
    done = forensics("-q", str(samples / CRASH))
    assert done.stdout.count(b"\n") == 1
    assert done.stdout.startswith(b"crashed oom_gpu")


@pytest.mark.parametrize(
    ("words", "env", "coloured"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour(forensics: Run, samples: Path, words: tuple[str, ...], env: dict[str, str], coloured: bool) -> None:
    done = forensics(str(samples / CRASH), *words, **env)
    assert (b"\x1b[" in done.stdout) is coloured


def test_help_names_commands_and_examples(forensics: Run) -> None:
    done = forensics("--help")
    assert done.returncode == 0
    for said in (b"analyze", b"signatures", b"Examples:", b"Exit codes:", b"Nothing leaves this machine"):
        assert said in done.stdout
    assert b"Examples:" in forensics("analyze", "--help").stdout


def test_the_readme_and_the_help_tell_the_same_exit_codes(forensics: Run, samples: Path) -> None:
    from forensics.errors import ExitCode

    def told(text: str) -> str:
        return " ".join(text.partition("Exit codes: ")[2].split("\n\n")[0].split())

    helped = told(forensics("--help").stdout.decode())
    assert helped.endswith("interrupted.")
    assert told((samples.parent / "README.md").read_text(encoding="utf-8")) == helped
    assert [int(word) for word in helped.replace(",", "").split() if word.isdigit()] == sorted(ExitCode)


@pytest.mark.parametrize(
    ("log", "more", "code", "status"),
    [
        (b"[2026-11-29 20:11:02] INFO step 3 loss 2.1\n", (), 0, "healthy"),
        (b"[2026-11-29 20:11:02] ERROR worker: see above\n", (), 1, "unknown"),  # that something failed, and not what
        (b"[2026-11-29 20:11:02] INFO step 3 loss 2.1\n", ("not-there.log",), 1, "unknown"),
        (b"", (), 3, "unknown"),
    ],
)
def test_what_cannot_be_ruled_out_is_not_zero(
    forensics: Run, tmp_path: Path, log: bytes, more: tuple[str, ...], code: int, status: str
) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(log)
    done = forensics("--format", "json", str(path), *(str(tmp_path / name) for name in more))
    assert (done.returncode, json.loads(done.stdout)["status"]) == (code, status)


def test_every_command_opens(forensics: Run) -> None:
    """Lazily imported commands exist under their names."""
    listed = forensics("--help").stdout.decode()
    from forensics.cli.main import COMMANDS

    for name in COMMANDS:
        assert f"\n  {name} " in listed, name
        done = forensics(name, "--help")
        assert done.returncode == 0, (name, done.stderr)


def test_version(forensics: Run) -> None:
    assert forensics("--version").stdout.startswith(b"forensics, version ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(forensics: Run, shell: str) -> None:
    done = forensics("completion", shell)
    assert done.returncode == 0
    assert b"_FORENSICS_COMPLETE" in done.stdout


def test_completion_knows_commands_and_the_defaults_options(forensics: Run) -> None:
    def complete(words: str, at: str) -> bytes:
        return forensics(_FORENSICS_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=at).stdout

    assert b"schema" in complete("forensics sch", "1")
    assert b"--format" in complete("forensics analyze --fo", "2")
    assert b"--format" in complete("forensics --fo", "1")
    assert b"--format" in complete("forensics server.log --fo", "2")


def test_a_reader_that_leaves(samples: Path) -> None:
    """`forensics … | head -1`: no traceback, no complaint, the verdict's exit code."""
    process = subprocess.Popen(
        [sys.executable, "-m", "forensics", str(samples / CRASH), "--explain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert told == b""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import atexit; atexit.register(print, 'at the end')", b"at the end"),
        ("import cProfile; profile = cProfile.Profile(); profile.enable()", b""),
        ("", None),
    ],
)
def test_who_wants_to_see_the_end_sees_it(samples: Path, before: str, after: bytes | None) -> None:
    code = f"{before}\nfrom forensics.__main__ import run\ncode = run()\nprint('behind it', code)"
    done = subprocess.run(
        [sys.executable, "-c", code, "--format", "json", str(samples / CRASH)], capture_output=True, timeout=60
    )
    report, _, rest = done.stdout.partition(b"\n}\n")
    assert json.loads(report + b"}")["status"] == "crashed"
    if after is None:
        assert (done.returncode, rest) == (1, b"")
    else:
        assert (done.returncode, rest.strip()) == (0, b"\n".join(filter(None, [b"behind it 1", after])))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX redirections")
def test_a_closed_standard_output(samples: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m forensics "{samples / CRASH}" >&-'], capture_output=True, check=False
    )
    assert done.returncode == 4
    assert b"standard output is closed" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk(samples: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "forensics", str(samples / CRASH)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 4
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_no_traceback_without_debug(forensics: Run, samples: Path, tmp_path: Path) -> None:
    """An error of our own becomes a sentence; --debug shows it."""
    broken = tmp_path / "sitecustomize.py"
    broken.write_text("import sys\nsys.modules['forensics.pipeline'] = None\n")
    env = {"PYTHONPATH": f"{tmp_path}:{samples.parent}"}
    calm = forensics(str(samples / CRASH), **env)
    assert b"Traceback" not in calm.stderr
    assert b"an error inside forensics" in calm.stderr
    loud = forensics(str(samples / CRASH), "--debug", **env)
    assert b"Traceback" in loud.stderr


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        (["analyze", "a.log", "-"], (["a.log", "-"], None)),
        (["analyze", "--format", "json", "a.log"], (["a.log"], "json")),
        (["analyze", "a.log", "--format", "json"], (["a.log"], "json")),
        (["analyze", "--format", "xml", "a.log"], None),
        (["analyze", "a.log", "--format"], None),
        (["analyze", "--format", "json", "--format", "sarif"], None),
        (["analyze", "--format=json", "a.log"], None),
        (["analyze", "-q", "a.log"], None),
        (["gpu", "sm_120"], None),
    ],
)
def test_plain_words_need_no_parser(words: list[str], plain: object) -> None:
    from forensics.cli.main import _plain

    assert _plain(words) == plain
