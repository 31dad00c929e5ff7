# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""Shells, make, Kubernetes, docker and CI runners: how processes ended as their keepers say. In: an intake; out: PROCESS_EXIT,
OOM_KILL and LAUNCHER events. Samples:

        Reason:       OOMKilled
        Exit Code:    137
    -> OOM_KILL fields {"by": "kubernetes"}; PROCESS_EXIT type "SIGKILL"
    ./run.sh: line 12:  4711 Killed                  python train.py
    -> PROCESS_EXIT type "SIGKILL", fields {"exit": ProcessExit(None, "SIGKILL", 4711, "shell"), "command": "python train.py"}
    /usr/bin/python3: can't open file '/srv/train.py': [Errno 2] No such file or directory
    -> MESSAGE level ERROR, fields {"program": "/usr/bin/python3", "file": "/srv/train.py"}
    Command took >30min, returning 124
    -> LAUNCHER type "exit 124", fields {"what": "cancelled", "reason": "time limit"}
"""

from __future__ import annotations

import re

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind, ProcessExit
from forensics.model.record import replace
from forensics.parse.exits import exit_of, with_exit_type
from forensics.parse.rows import Row, Table
from forensics.parse.signals import signal_in, signal_of_exit

_X = EventKind.PROCESS_EXIT
#: the interpreter, as it names itself
_PYTHON = r"\S{0,300}[Pp]ython[\w.-]{0,20}"
_SIGNAL_WORDS = r"(?P<words>Killed|Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception|Terminated|Trace/breakpoint trap|IOT instruction|Bad system call|(?:CPU time|File size) limit exceeded|Hangup|Quit|User defined signal \d)"

#: where a shell's word stands in the middle of a line that another process was writing: behind half a word or a bar, not behind a
#: blank or a quote, as in prose, nor behind a line break that is told in letters
_TORN = r"(?<=[A-Za-z0-9_=%,|\]])(?<!\\[nrt])"
#: a script's path from its beginning on: behind half a word, "jobs/run.sh" is none
_SCRIPT = r"(?:\.{1,2}|/(?:data|home|job|mnt|nfs|opt|root|scratch|srv|tmp|usr|var|work|workspace)\d{0,2}|(?<![A-Za-z0-9_]))/(?:[^\s/]{1,60}/){0,9}[^\s/]{1,60}"

#: what bash says of a process that a signal ended, in the languages of its users (bash po/*.po): words -> English
_TOLD_ABROAD = {
    "已杀死": "Killed",
    "已終止": "Killed",
    "Getötet": "Killed",
    "Processus arrêté": "Killed",
    "Tué": "Killed",
    "強制終了": "Killed",
    "Убито": "Killed",
    "Terminado (killed)": "Killed",
    "已终止": "Terminated",
    "Beendet": "Terminated",
    "段错误": "Segmentation fault",
    "程式記憶體區段錯誤": "Segmentation fault",
    "Speicherzugriffsfehler": "Segmentation fault",
    "Erreur de segmentation": "Segmentation fault",
    "Violación de segmento": "Segmentation fault",
    "Ошибка сегментирования": "Segmentation fault",
    "已放弃": "Aborted",
    "Abgebrochen": "Aborted",
    "总线错误": "Bus error",
    "Bus-Zugriffsfehler": "Bus error",
}


def _abroad(words: str, english: str) -> Row:
    """A row for one of them: the line holds no more than the words, with bash's place before and its core file after them."""
    told = re.escape(words)
    made = ProcessExit(None, signal_in(english), None, "shell")
    pattern = rf"^\s*(?:[\w./-]{{1,200}}: (?:line|行|Zeile|ligne|línea|строка) ?\d{{1,7}}: +\d{{1,10}} )?(?P<message>{told})(?: ?[(（][^()（）]{{1,40}}[)）])?(?:\s{{2,40}}\S.{{0,2000}})?\s*$"
    return Row(words, _X, pattern, fields={"by": "shell", "exit": made})


_TABLE = Table(
    "shells",
    (
        Row(
            "OOMKilled",
            EventKind.OOM_KILL,
            r"(?P<message>(?:[Rr]eason\"?: *\"?)?OOMKilled.*)$",
            type="SIGKILL",
            fields={"by": "kubernetes"},
            unless=('OOMKilled":false', 'OOMKilled": false'),
        ),
        Row(
            "Exit Code: ",
            _X,
            r"^\s*(?P<message>Exit Code: +(?P<code>[1-9]\d*))\s*$",
            fill=exit_of("kubernetes"),
            before=6,
            after=4,
        ),
        Row(
            "+ exit ",  # bash -x; with more of them a command substitution ends, and not the script
            _X,
            r"^\s*(?P<message>\+ exit (?P<code>[1-9]\d{0,2}))\s*$",
            fill=exit_of("shell"),
        ),
        Row(
            "command terminated with exit code",
            _X,
            r"(?P<message>command terminated with exit code (?P<code>\d+))",
            fill=exit_of("kubernetes"),
        ),
        Row(
            "The node was low on resource",
            EventKind.LAUNCHER,
            r"(?P<message>The node was low on resource: (?P<resource>[\w-]+).*)$",
            type="SIGTERM",
            fields={"what": "evicted", "by": "kubernetes"},
        ),
        Row(
            "Back-off restarting failed container",
            EventKind.LAUNCHER,
            fields={"what": "crash_loop", "by": "kubernetes"},
        ),
        Row("CrashLoopBackOff", EventKind.LAUNCHER, fields={"what": "crash_loop", "by": "kubernetes"}),
        Row("ImagePullBackOff", EventKind.LAUNCHER, fields={"what": "image_pull", "by": "kubernetes"}),
        Row("Job has reached the specified backoff limit", EventKind.LAUNCHER, fields={"what": "gave_up", "by": "kubernetes"}),
        Row(
            " replica(s) failed",
            EventKind.LAUNCHER,
            r"(?P<message>\b(?:PyTorch|TF|MPI|XGBoost|Paddle|JAX)Job (?P<job>[\w./-]{1,253}) is failed because \d{1,6} \w{1,40} replica\(s\) failed.{0,200})",
            fields={"what": "gave_up", "by": "kubeflow"},
        ),
        Row("Liveness probe failed", EventKind.LAUNCHER, fields={"what": "liveness", "by": "kubernetes"}),
        Row(
            " probe, will be restarted",
            EventKind.LAUNCHER,
            r"(?P<message>Container (?P<container>[\w.-]{1,253}) failed (?P<probe>liveness|startup) probe, will be restarted)",
            type="SIGTERM",
            fields={"what": "probe_killed", "by": "kubernetes"},
        ),
        Row("Pod was evicted", EventKind.LAUNCHER, type="SIGTERM", fields={"what": "evicted", "by": "kubernetes"}),
        Row(
            "Preempted by ",
            EventKind.LAUNCHER,
            type="SIGTERM",
            fields={"what": "preempted", "by": "kubernetes"},
            unless=("PreemptionMode",),
        ),
        Row(
            "has exceeded the maximum execution time",
            EventKind.LAUNCHER,
            fields={"what": "cancelled", "reason": "time limit", "by": "github"},
        ),
        Row("The operation was canceled", EventKind.LAUNCHER, fields={"what": "cancelled", "by": "github"}),
        Row(
            "execution took longer than",
            EventKind.LAUNCHER,
            fields={"what": "cancelled", "reason": "time limit", "by": "gitlab"},
        ),
        Row(
            "returning 124",
            EventKind.LAUNCHER,
            r"(?P<message>[^\n]{0,300}returning 124.*)$",
            type="exit 124",
            fields={"what": "cancelled", "reason": "time limit", "by": "timeout"},
        ),
        Row("+ Timeout +", EventKind.LAUNCHER, fields={"what": "test_timeout", "by": "pytest"}),
        Row(
            " exited with exit code ",
            _X,
            r"(?P<message>\b(?:[Ww]orker|[Pp]rocess|[Cc]ontainer|[Ss]erver|[Jj]ob|[Ee]ngine)\b(?: [\w./:-]{1,80}){0,2} exited with exit code (?P<code>[1-9]\d{0,2})\b[^\n]{0,200})",
            fill=exit_of("supervisor"),
            unless=("Error: ", "raise "),
        ),
        Row(
            "ExitCode ",
            _X,
            r"^(?P<message>ExitCode (?P<code>[1-9]\d{0,2}))\s*$",
            fill=exit_of("sagemaker"),
        ),
        Row(
            " exited with code ",
            _X,
            r"^(?P<message>(?P<name>[\w./-]{1,120}) exited with code (?P<code>[1-9]\d{0,2}))\s*$",
            fill=exit_of("docker"),
        ),
        Row(
            " exited with code ",
            _X,
            r"(?P<message>\b[Pp]od:? (?P<name>[\w./-]{1,200}) exited with code (?P<code>[1-9]\d{0,2}))\b",
            fill=exit_of("kubernetes"),
        ),
        Row(
            " exitCode: ",
            _X,
            r"(?P<message>(?:Error )?pod (?P<name>[\w./-]{1,200}) container (?P<container>[\w./-]{1,200}) exitCode: (?P<code>[1-9]\d{0,2})\b.{0,400}?)(?:\s*\{|$)",
            fill=exit_of("kubernetes"),
        ),
        Row(
            "Command terminated by signal",
            _X,
            r"(?P<message>Command terminated by signal (?P<signal_number>\d+))",
            fill=lambda g, line: {
                "exit": ProcessExit(None, signal_of_exit(-int(g["signal_number"] or 0)), None, "time")
            },
        ),
        Row("timeout: the monitored command dumped core", _X, fields={"by": "timeout"}),
        Row(
            "returned a non-zero code: ",
            _X,
            r"(?P<message>The command .{1,600}returned a non-zero code: (?P<code>\d+))",
            fill=exit_of("docker"),
        ),
        Row(
            "did not complete successfully: exit code",
            _X,
            r"(?P<message>process .{1,2000}did not complete successfully: exit code: (?P<code>\d+))",
            fill=exit_of("docker"),
        ),
        Row(
            "Process completed with exit code",
            _X,
            r"(?P<message>Process completed with exit code (?P<code>\d+))",
            fill=exit_of("github"),
        ),
        Row(
            "make: *** [",
            _X,
            r"make(?:\[\d+\])?: \*\*\* \[(?P<target>[^\]]{1,200})\] (?P<message>Error (?P<code>\d+)|Killed|Segmentation fault.*|Terminated)",
            fill=exit_of("make"),
        ),
        Row(
            ": line ",
            _X,
            rf"(?P<message>(?:^\S{{1,200}}|{_TORN}(?P<torn>){_SCRIPT}): line \d+: +(?P<pid>\d+) "
            + _SIGNAL_WORDS
            + r"(?:: \d{1,2})? *(?:\(core dumped\))? +(?P<command>.*))$",
            fill=exit_of("shell"),
        ),
        Row(
            "(core dumped)",
            _X,
            r"^ {0,4}(?P<message>(?:\w{2,8}: |\[\d+\]\s{1,4}[-+]?\s*(?:(?P<pid>\d+) )?)?"
            + _SIGNAL_WORDS
            + r" ?\(core dumped\)(?: +(?P<command>\S.*))?)$",
            fill=exit_of("shell"),
        ),
        Row(
            "(core dumped)",
            _X,
            rf"{_TORN}(?P<torn>)(?P<message>{_SIGNAL_WORDS} ?\(core dumped\))\s*$",
            fill=exit_of("shell"),
        ),
        Row(
            "core dumped",
            _X,
            r"^(?P<message>(?:zsh: |\[\d+\] +)?(?:(?P<pid>\d+) +)?(?P<words>IOT instruction|abort|segmentation fault|bus error|illegal hardware instruction|floating point exception) +\(core dumped\)(?: +(?P<command>\S.*))?)\s*$",
            fill=exit_of("shell"),
        ),
        Row(
            "zsh: killed",
            _X,
            r"^(?P<message>zsh: killed +(?P<command>.*))$",
            type="SIGKILL",
            fields={"by": "shell", "exit": ProcessExit(None, "SIGKILL", None, "shell")},
        ),
        Row(
            "Killed",
            _X,
            r"^\s*(?:[\w./-]{1,60}: line \d+: )?\*{0,2}(?P<message>(?P<words>Killed))\*{0,2}\s*$",
            fill=exit_of("shell"),
        ),
        Row(
            "can't open file '",
            EventKind.MESSAGE,
            rf"^(?P<message>(?P<program>{_PYTHON}): can't open file '(?P<file>[^'\n]{{1,1000}})': \[Errno \d{{1,3}}\] .{{1,200}})$",
            level="ERROR",
        ),
        Row(
            ": No module named ",
            EventKind.MESSAGE,
            rf"^(?P<message>(?P<program>{_PYTHON}): No module named (?P<module>[\w.]{{1,300}}(?:; .{{1,400}})?))$",
            level="ERROR",
        ),
        Row(
            ": Error while finding module specification for ",
            EventKind.MESSAGE,
            rf"^(?P<message>{_PYTHON}: Error while finding module specification for '[^'\n]{{1,300}}' \((?P<type>\w{{1,60}}): .{{1,600}}\))$",
            level="ERROR",
        ),
        Row("Segmentation fault", _X, r"^\s*(?P<message>(?P<words>Segmentation fault))(?:: 11)?\s*$", fill=exit_of("shell")),
        Row("Bus error", _X, r"^\s*(?P<message>(?P<words>Bus error))(?:: 10)?\s*$", fill=exit_of("shell")),
        Row("Illegal instruction", _X, r"^\s*(?P<message>(?P<words>Illegal instruction))(?:: 4)?\s*$", fill=exit_of("shell")),
        Row(
            "Floating point exception",
            _X,
            r"^\s*(?P<message>(?P<words>Floating point exception))(?:: 8)?\s*$",
            fill=exit_of("shell"),
        ),
        Row("Aborted", _X, r"^\s*(?P<message>(?P<words>Aborted))\.?\s*$", fill=exit_of("shell")),
        Row("Terminated", _X, r"^\s*(?P<message>(?P<words>Terminated))\s*$", fill=exit_of("shell")),
        *(_abroad(words, english) for words, english in _TOLD_ABROAD.items()),
    ),
)

ANCHORS: tuple[Anchor, ...] = _TABLE.anchors()


def parse(intake: Intake) -> list[Event]:
    """Exits as reported by whoever kept the process."""
    return [with_exit_type(_of_nobody(event) if "torn" in event.fields else event) for event in _TABLE.read(intake)]


def _of_nobody(event: Event) -> Event:
    """A shell's word that was written into another process's line, without that process."""
    return replace(event, rank=None, stream="", fields={key: said for key, said in event.fields.items() if key != "torn"})
