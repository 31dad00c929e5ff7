"""The threats, their defences and tests as one table; and the proof that each test sees its defence. In: nothing; out: Markdown, or a
list of tests that stayed green. Sample:

    python -m tests.trust.mutations                # takes out one defence after the other in a copy of the tree; each must turn red
    python -m tests.trust.mutations pickle zip     # only those whose threat has one of these words
    python -m tests.trust.mutations --table        # the table of docs/security.md
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
_COPIED = ("forensics", "signatures", "tests", "sample_logs", "docs", "pyproject.toml", "README.md", "Makefile", "hatch_build.py")
#: a test that does not end without its defence has seen it, too
_LIMIT_S = 150


class Row(NamedTuple):
    """threat, defence: for the table; tests: pytest ids; file, old, new: how the defence is taken out ("" where none is to take out:
    the defence is that something does not exist)."""

    threat: str
    defence: str
    tests: str
    file: str = ""
    old: str = ""
    new: str = ""


TRUST = "tests/trust/"
ROWS = (
    Row("Terminal escapes, OSC 8 and OSC 52, C1 codes", "control characters are drawn as pictures on every face for people",
        TRUST + "test_text.py::test_nothing_moves_a_terminal_or_hides", "forensics/visible.py",
        "        return chr(0x2400 + code)", "        return char"),
    Row("The same in lines that are told while the log still comes (--follow)", "drawn as pictures there, too",
        "tests/cli/test_follow.py::test_nothing_a_log_says_moves_the_terminal", "forensics/cli/ticker.py",
        'return visible("  ".join(part for part in', 'return ("  ".join(part for part in'),
    Row("Bidi and zero-width characters", "spelled out as <U+202E>",
        TRUST + "test_text.py::test_nothing_moves_a_terminal_or_hides", "forensics/visible.py",
        '    return f"<U+{code:04X}>"', "    return char"),
    Row("The same in JSON and SARIF, which are looked at with cat", "escaped as \\uXXXX beyond what JSON asks for",
        TRUST + "test_text.py::test_json_spells_control_characters_out", "forensics/report/__init__.py",
        'if text.isascii() and "\\x7f" not in text:', "if text:"),
    Row("rich and textual markup in log text", "log text goes into Text objects, never through a markup parser",
        TRUST + "test_text.py::test_markup_is_text_on_the_console tests/tui/test_app.py"),
    Row("HTML and SVG injection", "autoescape, a content security policy of hashes, nothing loaded",
        TRUST + "test_text.py::test_a_page_gets_no_element_from_the_log", "forensics/report/html.py", "autoescape=True", "autoescape=False"),
    Row("Markdown injection: headings, tables, links, images, mentions", "code spans and fences longer than any inside; escapes elsewhere",
        TRUST + "test_text.py::test_markdown_stays_quoted", "forensics/visible.py",
        'flat = _SPECIAL.sub(r"\\\\\\1", " ".join(text.split()))', "flat = text"),
    Row("XML injection (JUnit)", "escaped, and what XML cannot hold is spelled out",
        TRUST + "test_text.py::test_xml_is_well_formed", "forensics/report/junit.py",
        "{escape(visible(text))}</failure>", "{visible(text)}</failure>"),
    Row("Workflow commands of CI runners", "no line of the report begins with one",
        TRUST + "test_text.py::test_a_runner_gets_no_command_from_the_log", "forensics/report/github.py",
        'if bare.startswith("::"):', "if False:"),
    Row("CSV formulas", "no face writes CSV", "tests/report/test_view.py"),
    Row("Log text that pretends to be our own report", "no stage reads a report out of a log",
        TRUST + "test_text.py::test_a_log_that_pretends_to_be_a_report_is_a_log"),
    Row("Prompt-like text", "log text stands in reports as quotation, and they say so; it becomes no advice",
        TRUST + "test_text.py::test_what_a_log_asks_for_is_a_quotation", "forensics/report/markdown.py",
        "Text in code blocks is quoted from the log.", ""),
    Row("Escapes in file names, said back in errors", "standard error shows control characters as \\xNN",
        TRUST + "test_process.py::test_errors_on_the_terminal_are_harmless", "forensics/cli/talk.py", "text.translate(_UNSAFE)", "text"),
    Row("Workflow commands in what a runner reads from standard output", "on a runner a mark is put before them, on every face but the one that writes some",
        TRUST + "test_outputs.py::test_no_face_on_a_runner_s_output_is_read_as_a_command", "forensics/cli/output.py",
        "content if commands else _no_commands(content)", "content"),
    Row("Hostile file names, and signatures of strangers, on every face", "drawn as log text is",
        TRUST + "test_outputs.py::test_a_file_name_is_as_harmless_as_a_line " + TRUST + "test_outputs.py::test_a_stranger_s_signature_is_as_harmless_as_a_log",
        "forensics/visible.py", "        return chr(0x2400 + code)", "        return char"),
    Row("The same on the ways out beside the report: kernel, gpu, binary, signatures, repro", "one way to standard output for text",
        TRUST + "test_outputs.py::test_words_are_said_back_harmless " + TRUST + "test_outputs.py::test_a_stranger_s_signature_is_as_harmless_as_a_log",
        "forensics/cli/output.py", 'emit((visible(text.rstrip("\\n"))', 'emit((text.rstrip("\\n")'),
    Row("Markdown and escapes in a bug report of a repro", "escaped as in the Markdown report",
        TRUST + "test_outputs.py::test_a_bug_report_of_a_hostile_log", "forensics/repro/bug_report.py",
        "return markdown(visible(", "return str(visible("),
    Row("Path tricks in archives: .., absolute names, links, devices", "members are read as streams: nothing is written, nothing followed",
        TRUST + "test_archives.py::test_names_that_climb_are_only_names", "forensics/ingest/inputs.py",
        "if not member.isreg() or member.size == 0:", "if member.isdir():"),
    Row("Compression bombs", "at most 500 times its size (from 256 MB on), 16 GB in all; output is taken in bounded bites",
        TRUST + "test_archives.py::test_a_bomb_is_defused_by_its_ratio", "forensics/ingest/streams.py",
        "if self._made > RATIO_FROM and", "if False and"),
    Row("Zip bombs", "the same limits on what the directory claims, which is all that is read",
        TRUST + "test_archives.py::test_a_bomb_is_defused_by_its_ratio", "forensics/ingest/inputs.py",
        "if info.file_size > max(RATIO_FROM, RATIO * info.compress_size):", "if False:"),
    Row("Archives of archives of archives", "one allowance of members and bytes for all levels of an input",
        TRUST + "test_archives.py::test_size_and_count_are_limited_over_all_levels", "forensics/ingest/inputs.py",
        "if self.count >= self._members or size > self._bytes:", "if False:"),
    Row("Nesting without end", "three levels of archives, three of compression",
        TRUST + "test_archives.py::test_depth_is_limited", "forensics/ingest/inputs.py", "_DEEPEST = 3", "_DEEPEST = 99"),
    Row("Archive headers that fill the memory", "names and attributes of at most 1 MB",
        TRUST + "test_archives.py::test_a_header_without_end_is_refused", "forensics/ingest/inputs.py",
        'if self.type in b"LKxgX" and self.size > _HEADER_CAP:', "if False:"),
    Row("Torn and damaged archives", "read as far as they go, and said",
        TRUST + "test_archives.py::test_a_zip_with_random_damage_is_a_sentence " + TRUST + "test_archives.py::test_what_is_torn_is_read_as_far_as_it_goes",
        "forensics/ingest/inputs.py", "except (tarfile.TarError, OSError, EOFError, ValueError) as error:", "except ZeroDivisionError as error:"),
    Row("Malicious pickles as flight recorder dumps", "a reader of its own for plain data: no opcode that names, calls or fetches",
        TRUST + "test_dumps.py::test_a_pickle_runs_nothing", "forensics/parse/restricted_pickle.py",
        "        return _run(content)", "        return __import__('pickle').loads(content)"),
    Row("Pickles of shared lists whose text fills the memory", "a name in a dump is text, never the text of a container",
        TRUST + "test_dumps.py::test_a_few_bytes_do_not_become_gigabytes", "forensics/parse/flight_recorder.py",
        "isinstance(value, str | bool | float) or _int(value) is not None", "value is not None"),
    Row("Pickles that reserve memory: memo indices, sizes of byte arrays", "nothing is reserved that does not stand in the dump",
        TRUST + "test_dumps.py::test_a_dump_reserves_no_memory_for_what_is_not_there", "forensics/parse/restricted_pickle.py",
        "        return _run(content)", "        return __import__('pickle').loads(content)"),
    Row("Reports of ours that were tampered with (repro REPORT)", "refused in words",
        TRUST + "test_dumps.py::test_a_report_of_ours_that_was_tampered_with_is_refused_in_words", "forensics/repro/case.py",
        "except (AttributeError, TypeError, KeyError, ValueError, IndexError) as error:", "except ZeroDivisionError as error:"),
    Row("JSON of depth 100,000", "a depth that Python refuses is a broken line or dump",
        TRUST + "test_dumps.py::test_json_without_bottom", "forensics/ingest/dialects.py",
        "except (ValueError, RecursionError):", "except ValueError:"),
    Row("Numbers of thousands of digits", "no number beyond 64 bits is taken from a dump",
        TRUST + "test_dumps.py::test_numbers_too_large_to_print", "forensics/parse/flight_recorder.py",
        "return value if -(1 << 63) <= value < 1 << 64 else None", "return value"),
    Row("Users' patterns with nested repeats", "refused when loaded, by file and line",
        TRUST + "test_signatures.py::test_a_pattern_that_can_explode_is_refused_where_it_stands", "forensics/match/schema.py",
        'return found or ("more than eight', 'return "" or ("" and "more than eight'),
    Row("Users' patterns that are slow all the same", "0.1 s a text; the signature is given up and named",
        TRUST + "test_signatures.py::test_a_catastrophic_pattern_is_given_up_and_named", "forensics/match/signature.py",
        "compiled.search(text, timeout=0.1)", "compiled.search(text)"),
    Row("Wrong, huge or bottomless TOML of users", "named with its line; the shipped signatures stay",
        TRUST + "test_signatures.py::test_a_wrong_file_is_named", "forensics/match/load.py",
        "except (OSError, ValueError, RecursionError) as error:\n        line", "except (OSError, ValueError) as error:\n        line"),
    Row("Text made to slow patterns down", "bounded patterns on clipped text; a stage has 120 s of processor time, a parser what is left of it",
        TRUST + "test_sizes.py::test_text_made_to_slow_a_pattern_down " + TRUST + "test_isolation.py::test_a_stage_that_never_ends_is_stopped "
        + TRUST + "test_isolation.py::test_a_parser_that_never_ends_costs_only_itself", "forensics/pipeline.py",
        "signals.setitimer(signals.ITIMER_VIRTUAL, STAGE_SECONDS, STAGE_SECONDS)", "pass"),
    Row("Lines of 100 MB", "kept around their ends and hits; what stands behind them is read; the cut is said",
        TRUST + "test_sizes.py::test_a_line_of_many_megabytes", "forensics/ingest/scan.py", "done = got == 0 and fill < size", "done = got == 0"),
    Row("Millions of tiny lines", "nothing is done per line; a log without a hit is not searched again",
        TRUST + "test_sizes.py::test_millions_of_tiny_lines"),
    Row("A million ranks", "alike lines are counted, not kept, and that is said",
        TRUST + "test_sizes.py::test_very_many_ranks", "forensics/ingest/assemble.py", "        if folded:\n", "        if False:\n"),
    Row("More marked lines than fit", "a budget of bytes an input; what was dropped is said",
        TRUST + "test_sizes.py::test_the_budget_of_regions_is_said", "forensics/ingest/assemble.py", "        if not taken.whole:\n            self._explain(taken)", "        if False:\n            self._explain(taken)"),
    Row("NULs, lone surrogates, cut letters, mixed and cut encodings", "decoded with replacement, line by line",
        TRUST + "test_sizes.py::test_encodings_torn_and_mixed", "forensics/ingest/decode.py",
        'mended = raw.decode("utf-8", "replace")', 'mended = raw.decode("utf-8")'),
    Row("/dev/zero, other devices, sockets", "refused by name",
        TRUST + "test_files.py::test_devices_are_refused_by_name", "forensics/ingest/inputs.py",
        "if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or", "if False and"),
    Row("An endless pipe", "bounded memory, ends with an interrupt", TRUST + "test_files.py::test_an_endless_pipe_ends_with_an_interrupt"),
    Row("Named pipes in a folder", "left out and said: opening one would wait for a writer",
        TRUST + "test_files.py::test_sockets_and_pipes_in_a_folder_do_not_block", "forensics/ingest/inputs.py",
        "return stat.S_ISFIFO(os.stat(path).st_mode)", "return False"),
    Row("Files that change, shrink, vanish or fail while they are read", "what was read is kept, why it ended is said",
        TRUST + "test_files.py::test_what_fails_while_it_is_read_keeps_what_was_read "
        + TRUST + "test_files.py::test_a_file_that_shrinks_or_vanishes_while_it_is_read", "forensics/ingest/streams.py",
        "except Exception as error:  # what archives", "except ZeroDivisionError as error:  # what archives"),
    Row("Files that may not be read", "named with the system's reason",
        TRUST + "test_files.py::test_what_may_not_be_read_is_said", "forensics/ingest/inputs.py",
        "    except OSError as error:\n        skipped.append(Skipped(name, (error.strerror", "    except ZeroDivisionError as error:\n        skipped.append(Skipped(name, (error.strerror"),
    Row("A full disk while spooling", "the system's reason, and nothing is left behind",
        TRUST + "test_files.py::test_a_full_disk_while_spooling", "forensics/tui/spooling.py",
        "            os.unlink(path)\n            raise", "            raise"),
    Row("A full disk while the cache is written", "the cache is done without",
        TRUST + "test_files.py::test_a_full_disk_costs_the_cache_not_the_report", "forensics/drafts.py",
        "    except BaseException:\n        os.unlink(draft)\n        raise", "    except ZeroDivisionError:\n        raise"),
    Row("A full disk while a report is written", "the older report stays, and no draft",
        TRUST + "test_files.py::test_a_full_disk_keeps_the_old_report", "forensics/drafts.py",
        "    handle = os.open(draft, ", "    draft = path; os.unlink(path); handle = os.open(draft, "),
    Row("Links planted under the name of a draft", "a draft is made only where nothing lies",
        TRUST + "test_outputs.py::test_a_planted_link_is_not_written_through", "forensics/drafts.py", "os.O_CREAT | os.O_EXCL", "os.O_CREAT"),
    Row("A report written over the log it is made from", "refused",
        TRUST + "test_outputs.py::test_a_log_is_not_written_over", "forensics/cli/output.py", "        if same:", "        if False:"),
    Row("An endless pipe into a repro, which reads its input twice", "256 MB of it, then a sentence",
        TRUST + "test_outputs.py::test_a_repro_of_an_endless_pipe_is_refused", "forensics/cli/repro_input.py",
        "if len(content) > _STDIN_BYTES:", "if False:"),
    Row("SIGINT", "one word, exit code 130",
        TRUST + "test_process.py::test_ctrl_c_ends_at_once_and_in_one_word", "forensics/cli/main.py",
        "    except KeyboardInterrupt:\n        tell_interrupted()", "    except ZeroDivisionError:\n        tell_interrupted()"),
    Row("SIGPIPE: a reader that leaves", "silence, the verdict's exit code",
        TRUST + "test_process.py::test_a_reader_that_leaves_early", "forensics/cli/output.py",
        "    except BrokenPipeError:\n        raise\n", ""),
    Row("Closed standard streams", "a sentence where there is one to say it on",
        TRUST + "test_process.py::test_closed_descriptors", "forensics/cli/output.py",
        "if sys.stdout is None or sys.stdout.closed:", "if False:"),
    Row("Code injection into repro scripts", "log text is data there: literals only, read back and compared before a script is written",
        "tests/repro/test_injection.py", "forensics/repro/render.py",
        'safe_name = re.sub(r"[^A-Za-z0-9._-]", "_", name) or "repro.py"', "safe_name = name"),
    Row("Cache poisoning: foreign owner, loose permissions, links", "only what nobody else could have written is read",
        TRUST + "test_cache.py", "forensics/data.py",
        "info.st_uid != user or info.st_mode & 0o022", "False"),
    Row("Cache poisoning: wrong stamp or version, damage", "made anew",
        TRUST + "test_cache.py", "forensics/data.py",
        "content[:2] != [FORMAT, stamp]", "False"),
    Row("Cache poisoning: a search database that is damaged, of other literals, or of another version", "compared byte by byte with what it was made from, and its sum; made anew",
        "tests/ingest/test_engine.py::test_a_database_is_kept_and_a_damaged_one_is_made_anew "
        "tests/ingest/test_engine.py::test_a_database_of_other_literals_or_of_another_owner_is_not_taken", "forensics/ingest/engine.py",
        "if not found or found[:at] != _stamp(patterns, found[at:]):", "if not found:"),
    Row("Secrets and names in what is handed on", "redaction by default for html, markdown, github and bug reports; the number is said",
        TRUST + "test_secrets.py::test_public_faces_are_redacted_by_default", "forensics/report/__init__.py",
        'PUBLIC = frozenset({"markdown", "html", "github"})', 'PUBLIC = frozenset({"markdown", "html", "github"}) if not __debug__ else frozenset({"junit"})'),
    Row("Secrets, users, hosts, addresses, buckets and prompts in the many forms that programs print", "rules by kind; what is known is replaced wherever it stands",
        "tests/redact/test_attacks.py", "forensics/redact/redactor.py", "            text = rule.applied(text, low, self._stand_in)", "            pass"),
    Row("Versions, hashes and names of kernels taken for addresses and secrets", "an address needs a private range or a context",
        "tests/redact/test_attacks.py::test_what_only_looks_like_it", "forensics/redact/places.py", "    if _VERSIONED.search(told):\n        return True", "    if _VERSIONED.search(told):\n        return False"),
    Row("Secrets in a bug report of a repro", "the same redaction over all of it",
        TRUST + "test_secrets.py::test_a_bug_report_is_redacted", "forensics/repro/bug_report.py",
        'text = redactor.value("\\n".join(parts))', 'text = "\\n".join(parts)'),
    Row("An error of ours in a stage", "isolated; in coverage.notes; --debug lets it through",
        TRUST + "test_isolation.py::test_every_stage_may_fail", "forensics/pipeline.py",
        '        if os.environ.get("FORENSICS_DEBUG"):\n            raise\n        notes', "        raise\n        notes"),
    Row("An error of ours in a parser", "the other parsers go on; said by name",
        TRUST + "test_isolation.py::test_every_parser_may_fail", "forensics/parse/__init__.py",
        'if os.environ.get("FORENSICS_DEBUG"):', "if error:"),
    Row("An error of ours in one source", "the other sources are read; said by name",
        TRUST + "test_isolation.py::test_one_source_may_fail_the_others_are_read", "forensics/ingest/files.py",
        'if os.environ.get("FORENSICS_DEBUG"):', "if error:"),
    Row("An error of ours anywhere else", "a sentence; --debug shows the traceback",
        TRUST + "test_process.py::test_an_error_of_ours_is_a_sentence_and_debug_shows_it", "forensics/cli/main.py",
        "        if debug:\n            raise", "        raise"),
    Row("Anything that leaves the machine", "no network call, and no network library for redaction either",
        TRUST + "test_network.py", "forensics/redact/library.py",
        'clients = [name for name in ("requests", "requests.exceptions") if name not in sys.modules]', "clients: list[str] = []"),
    Row("kill -9 at any moment", "files appear whole under their names: caches, notes, reports, scripts",
        TRUST + "test_kills.py", "forensics/drafts.py",
        "    handle = os.open(draft, ", "    draft = path; os.path.exists(path) and os.unlink(path); time.sleep(0.2); handle = os.open(draft, "),
)  # fmt: skip


def table() -> str:
    """The rows as Markdown."""
    lines = ["| threat | defence | test |", "| --- | --- | --- |"]
    for row in ROWS:
        tests = "<br>".join(f"`{test}`" for test in row.tests.split())
        lines.append(f"| {row.threat} | {row.defence} | {tests} |".replace("<U+202E>", "`<U+202E>`"))
    return "\n".join(lines) + "\n"


def survivors(words: list[str]) -> list[str]:
    """The threats whose tests stay green without the defence."""
    alive = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__", "_compiled"))
            elif source.exists():
                shutil.copy(source, place / name)
        env = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1", "FORENSICS_CACHE_DIR": str(place / "cache")}
        for row in ROWS:
            if not row.file or (words and not any(word.lower() in row.threat.lower() for word in words)):
                continue
            path = place / row.file
            whole = path.read_text(encoding="utf-8")
            if row.old not in whole:
                alive.append(f"{row.threat}: the defence is not where this table says ({row.file})")
                continue
            path.write_text(whole.replace(row.old, row.new), encoding="utf-8")
            is_red, why = _is_red(row, place, env)
            path.write_text(whole, encoding="utf-8")
            print(f"{'red' if is_red else 'GREEN'}: {row.threat} ({why})", flush=True)
            if not is_red:
                alive.append(row.threat)
    return alive


def _is_red(row: Row, place: Path, env: dict[str, str]) -> tuple[bool, str]:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *row.tests.split()]
    process = subprocess.Popen(command, cwd=place, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        told = process.communicate(timeout=_LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return True, f"did not end within {_LIMIT_S} s"
    failed = [line for line in told.splitlines() if line.startswith(("FAILED", "ERROR"))]
    # an error while collecting proves nothing
    return process.returncode == 1 and bool(failed), (failed or told.strip().splitlines() or ["?"])[-1][:120]


def main() -> int:
    """The table, or the proof."""
    if "--table" in sys.argv:
        print(table(), end="")
        return 0
    alive = survivors(sys.argv[1:])
    print("\n".join(alive) if alive else "every test saw that its defence was gone")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
