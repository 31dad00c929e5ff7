"""Words for the verdict: why, what to do, what would settle it. In: what was concluded; out: a `Verdict`. Sample:

OOM on all ranks -> "An allocation on the device did not fit … All 8 ranks failed alike, each by itself; TP3 printed first."
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from forensics.callpath import owner_of
from forensics.data import table
from forensics.ingest.compiled import pattern_of
from forensics.knowledge.faults import FaultCode
from forensics.model.knowledge import Facts
from forensics.model.record import replace
from forensics.model.source import Evidence
from forensics.model.verdict import (
    Alternative,
    Category,
    Confidence,
    Contradiction,
    Failure,
    Finding,
    Fix,
    Owner,
    SignatureRole,
    Verdict,
)
from forensics.verdict.analysis import Analysis
from forensics.verdict.category import Judgement
from forensics.verdict.chains import told_by
from forensics.verdict.hang import Hang
from forensics.verdict.hardware import known_fault
from forensics.verdict.memory import may_help, memory_in, said_of
from forensics.verdict.sighting import exits as known_exits
from forensics.verdict.situations import USUAL_ALLOCATOR, allocator_of, situations
from forensics.verdict.steps import Known, steps_for
from forensics.verdict.stuck import stuck_in

_MOST = 6
#: what a check on the host says where it compared shapes or types
_OF_SHAPES = pattern_of(
    r"(?i:shape|size|dim|dtype|stride|contiguous|numel|ndim|divisible|torch\.[a-z]+\d|head|hidden|\btype|isinstance\([^)]{0,80}tensor)"
)
_COMPILER = pattern_of(r"\b(?:gcc|g\+\+|clang|nvcc|ptxas|ninja|CppCompileError)\b")
_NO_MODULE = pattern_of(r"No module named '(\w{2,60})\.[\w.]{1,120}'")
#: which device is full, and by how much, as the allocator says it
_FULL = pattern_of(r"^GPU \d{1,3} is too full: [\d.]{1,12} \w{1,5} more were asked for")
_FULL_SAID = pattern_of(r"Tried to allocate ([\d.]{1,12} [KMGT]?i?B).{0,20}?GPU (\d{1,3})")
#: where a runtime check stands: no part of what it says
_PLACE_OF_CHECK = pattern_of(r"^(?:Runtime check|Check|Assertion) failed at /\S{1,300}:\d{1,6}: ")
_DETAIL = 140
_OUTSIDE = "Everything that the log shows is the consequence of something it does not show: the cause is outside this log."
_EARLIER = ("One run before it failed: it stands among the incidents.", "{} runs before it failed: they stand among the incidents.")
_LEFT_OUT = (
    "Everything that the chosen lines show is the consequence of something else: the cause stands among those that {} left out, or "
    "outside this log."
)
#: how sure it is who kept the others waiting, which may be less sure than that they waited: in a title, and in a sentence
_HOW_SURE = {
    Confidence.ESTABLISHED: ("", ""),
    Confidence.SUPPORTED: ("most likely", "The log supports that {} is to blame, and does not prove it."),
    Confidence.HYPOTHESIS: ("perhaps", "That {} is to blame is a hypothesis."),
}
#: how many quotes a reader sees first
_SHOWN = 3
_STOPPED, _KILLED = ("KeyboardInterrupt", "SIGINT"), ("SIGKILL", "exit -9", "exit 137")


@lru_cache(maxsize=1)
def _advice() -> dict[str, dict[str, Any]]:
    return table("verdict/advice")


def _advice_for(category: Category, settings: Sequence[str]) -> dict[str, Any]:
    """A category's advice, with what another situation (another vendor's GPU, another framework) needs instead."""
    found = dict(_advice().get(category.value, {}))
    for setting in settings:
        found.update(found.get(setting, {}))
    return found


def _settings(primary: Failure, facts: Facts, finding: Finding | None, run: Analysis) -> list[str]:
    """Which of the advice's variants are this run's."""
    said = f"{primary.root_type or ''} {primary.root_message} {primary.message}"[:4_000]
    by = run.cast.primary.first.events[0].fields.get("by") if run.cast.primary is not None else None
    kinds = situations(said, facts, finding, str(by or ""))
    name = (primary.type or "").rsplit(".", 1)[-1]
    if name in _STOPPED:
        kinds.append("by_hand")
    elif name in _KILLED:
        kinds.append("killed")
    own = primary.root_message or primary.message
    if "InductorError" in said and not _COMPILER.search(said):
        kinds.append("inductor")
    missing = _NO_MODULE.search(said)
    if missing is not None and any(f"/{missing[1]}/" in frame.path for frame in primary.frames):
        kinds.append("part_of_a_package")
    if own == "terminated" and name in _STOPPED:
        kinds.append("asked")
    if primary.frames and primary.type and not run.cast.outside:
        kinds.append("raised")
        if all(owner_of(frame) is not Owner.USER for frame in primary.frames[-3:]):
            kinds.append("of_engine")
    if (primary.root_type or name).rsplit(".", 1)[-1] == "AssertionError" and not _OF_SHAPES.search(own):
        kinds.append("other_check")
    return kinds


def exit_words(code: int | None) -> str:
    """What an exit code means, in words; "" where it says nothing."""
    row = known_exits().get(code) if code is not None else None
    return (
        f"exit code {code} ({row['signal']}): {row['means']}"
        if row and row["signal"]
        else f"exit code {code}: {row['means']}"
        if row
        else ""
    )


def verdict_of(
    primary: Failure,
    run: Analysis,
    facts: Facts,
    contradictions: Sequence[Contradiction],
    proof: Sequence[Evidence] = (),
    moving: bool = False,
    left_out: str = "",
) -> Verdict:
    """The answer for one incident. run: what its run came to; proof: of a hang; moving: the job was at work until it failed; left_out:
    the options by which lines were taken away before anybody looked."""
    judgement, hang = run.judgement, run.hang
    finding, category = judgement.finding, judgement.category
    settings = _settings(primary, facts, finding, run)
    advice = _advice_for(category, settings)
    fault = known_fault(primary.type) if finding is None and category is Category.DRIVER_OR_HARDWARE else None
    memory = memory_in(f"{primary.root_message}\n{primary.message}") if category is Category.OOM_GPU else None
    # Whoever stops a job that moves meets it anywhere: its stack is no sign of what it hung in.
    waits = hang is None and (category is Category.HANG_OR_WATCHDOG or ("by_hand" in settings and not moving))
    stands = stuck_in(primary.frames) if waits else None
    variable = allocator_of(f"{primary.root_message}\n{primary.message}"[:4_000], settings)
    fixes = (replace(fix, action=fix.action.replace(USUAL_ALLOCATOR, variable)) for fix in _fixes(finding, run.findings, category))
    steps = steps_for(primary, judgement, facts, hang, advice, Known(fault, memory, stands))
    advised = _advised(run.findings, category)[:1]
    sentences = [
        finding.explanation if finding is not None else _of_fault(primary.type or "", fault) if fault is not None else "",
        said_of(memory) if memory is not None else "",
        *_who(run, left_out, facts.at_least == 1, category is Category.KILLED_EXTERNALLY, category is Category.NCCL and "gloo" in settings),
        (_LEFT_OUT.format(left_out) if left_out else _OUTSIDE) if run.cast.outside else "",
        stands.says if stands is not None else "",
        *(contradiction.explanation for contradiction in contradictions[:2]),
        *(one.explanation for one in advised),
        *_ends(run.exits),
    ]
    sentences[0] = sentences[0] or str(advice.get("explanation", ""))
    return Verdict(
        category=category,
        title=_title(primary, judgement, hang),
        explanation=" ".join(s.strip() for s in sentences if s.strip()),
        confidence=judgement.confidence,
        signature=finding.id if finding is not None else None,
        rank=run.rank,
        same_failure_ranks=tuple(run.same),
        culprit_note=hang.note if hang is not None else None,
        fixes=tuple(fix for fix in fixes if memory is None or may_help(fix.action, memory)),
        next_steps=tuple(step.replace(USUAL_ALLOCATOR, variable) for step in steps),
        must_not_prove=(finding.must_not_prove if finding is not None else None) or advice.get("must_not_prove"),
        settled_by=tuple(advice.get("settled_by", ())),
        evidence=_evidence(primary, judgement, contradictions, proof, advised),
        alternatives=_alternatives(judgement, advice),
    )


def _ends(exits: Sequence[int]) -> list[str]:
    """What the first exit codes mean, a sentence each."""
    words = [exit_words(code) for code in dict.fromkeys(exits)]
    return [f"{said[0].upper()}{said[1:]}." for said in words if said][:2]


def _of_fault(type_: str, fault: FaultCode) -> str:
    """What the catalogue says of an Xid: "Xid 79: GPU has fallen off the bus: PCIe access failed."."""
    if not fault.meaning or fault.meaning.startswith(fault.name):
        return f"{type_}: {fault.meaning or fault.name}."
    return f"{type_} ({fault.name}): {fault.meaning}."


def _title(primary: Failure, judgement: Judgement, hang: Hang | None) -> str:
    if hang is not None and hang.culprit is not None:
        where, who = hang.collective.op or "a collective", hang.culprit.label
        if hang.confidence is Confidence.ESTABLISHED:
            return f"{who} kept the others waiting in {where}"
        return f"The ranks waited in {where}, {_HOW_SURE[hang.confidence][0]} for {who}"
    if judgement.finding is not None:
        return _of_this_device(judgement.finding.title, primary)
    told = told_by(primary.chain, primary.root_type, primary.root_message)
    # A wrapper's words do not speak for a cause that has none.
    own = primary.root_message or (primary.message if primary.root_type == primary.type else "")
    type_, said = told or (primary.root_type or primary.type or "", own)
    line = _shortened(_PLACE_OF_CHECK.sub("", next((part.strip() for part in said.split("\n") if part.strip()), "")))
    name = type_.rsplit(".", 1)[-1]
    detail = f"{name}: {line}" if name and line and not line.startswith(name) else line or name
    if judgement.title:
        return f"{judgement.title} ({detail})" if detail else judgement.title
    return detail or "Something failed"


def _shortened(line: str) -> str:
    """The line's beginning, up to a word's end."""
    if len(line) <= _DETAIL:
        return line
    return line[:_DETAIL].rsplit(" ", 1)[0].rstrip(" ,;:([{") + " …"


def _of_this_device(title: str, primary: Failure) -> str:
    """A signature's title with the numbers of the rank that failed first; other ranks' lines may stand before its."""
    said = _FULL_SAID.search(f"{primary.root_message} {primary.message}"[:4_000])
    return _FULL.sub(f"GPU {said[2]} is too full: {said[1]} more were asked for", title) if said is not None else title


def _who(run: Analysis, left_out: str, single: bool, killed: bool, broken: bool) -> list[str]:
    """Whose failure it was, and what the log shows of the others' part in it. left_out: options that took lines away; single: there is
    one process only."""
    if run.hang is not None:
        note, culprit = run.hang.note, run.hang.culprit
        sure = _HOW_SURE[run.hang.confidence][1].format(culprit.label) if culprit is not None else ""
        return [note[0].upper() + note[1:] + "." + (f" {sure}" if sure else "")] if note else []
    if run.rank is None or run.named:
        return []
    if run.same:
        count = len({r.key for r in run.same} | {run.rank.key})
        primary = run.cast.primary
        if primary is not None and primary.first.kind == "exit" and len({m.place for m in primary.members}) == 1:
            return [f"One line tells that {count} ranks ended: which of them was first, it does not say."]
        how = "saw the connection break" if broken else "failed alike, each by itself"
        return [f"{count} ranks {how}; {run.rank.label} printed first."]
    if broken:
        return []
    if run.alone and single:
        return []
    if run.alone and left_out:
        return [f"Only the lines that {left_out} asked for were looked at: whether a rank failed before {run.rank.label} is not told."]
    if run.alone:
        return [f"Of the ranks, only {run.rank.label} has lines in this log: whether another one failed before it, the log does not show."]
    if run.cast.outside:
        return [f"{run.rank.label} printed it first."]
    return [f"{run.rank.label} was ended first." if killed else f"{run.rank.label} failed first."]


def _advised(findings: Sequence[Finding], category: Category) -> list[Finding]:
    """Advice that says of itself to which kind of failure it belongs, where the failure is of that kind."""
    return [one for one in findings if one.role is SignatureRole.ADVICE and one.category is category]


def _fixes(finding: Finding | None, findings: Sequence[Finding], category: Category) -> tuple[Fix, ...]:
    """The verdict's own fixes first, then what advice and agreeing findings add."""
    found: dict[str, Fix] = {}
    for fix in finding.fixes if finding is not None else ():
        found.setdefault(fix.action, fix)
    for other in findings:
        agrees = (
            finding is not None
            and other.category is finding.category
            and other.role in (SignatureRole.ROOT, SignatureRole.CONFIRMATION)
        )
        if agrees and other is not finding:
            for fix in other.fixes:
                found.setdefault(fix.action, fix)
    for other in _advised(findings, category):
        for fix in other.fixes:
            found.setdefault(fix.action, fix)
    return tuple(found.values())[:_MOST]


def _evidence(
    primary: Failure,
    judgement: Judgement,
    contradictions: Sequence[Contradiction],
    proof: Sequence[Evidence],
    advised: Sequence[Finding],
) -> tuple[Evidence, ...]:
    found = [*proof, *(judgement.finding.evidence if judgement.finding is not None else ()), *primary.evidence]
    said = primary.root_message.split(": ", 1)[-1].strip().split("\n", 1)[0].rstrip(" .")[:60]
    if len(said) > 20 and not any(said in one.quote for one in found[:_SHOWN]):  # what is named as the failure is shown first
        found.sort(key=lambda one: said not in one.quote)
    for contradiction in contradictions[:2]:
        found += contradiction.evidence[:2]
    told = [proof for one in advised for proof in one.evidence[:1]]
    found = [*found[: _MOST - len(told)], *told]
    unique: dict[tuple[int, int, int, str], Evidence] = {}
    for one in found:
        unique.setdefault((one.span.source, one.span.first_line, one.span.last_line, one.quote[:80]), one)
    return tuple(unique.values())[:_MOST]


def _alternatives(judgement: Judgement, advice: Mapping[str, Any]) -> tuple[Alternative, ...]:
    """What else it could be: by other findings and words, else by what such a failure often is."""
    found: dict[Category, Alternative] = {}
    for category, why, _ in judgement.others:
        if category not in (None, Category.UNKNOWN, judgement.category):
            found.setdefault(category, Alternative(category, why, Confidence.HYPOTHESIS))
    for name, why in advice.get("often", {}).items():
        found.setdefault(Category(name), Alternative(Category(name), why, Confidence.HYPOTHESIS))
    return tuple(found.values())[:3]


def healthy(evidence: Sequence[Evidence], why: str, confidence: Confidence = Confidence.SUPPORTED, before: int = 0) -> Verdict:
    """Nothing failed; a hypothesis where nothing shows that the job worked either. before: so many earlier jobs in the same log failed."""
    title = "No failure was found" if confidence is Confidence.HYPOTHESIS else "Nothing failed"
    if before:
        title += " in the last job of this log"
        why = f"Several jobs wrote into this log one after another: this is of the last one. {why} {_EARLIER[before > 1].format(before)}"
    return Verdict(Category.NONE, title, why, confidence, evidence=tuple(evidence))


def nothing_to_read() -> Verdict:
    """An empty input: neither healthy nor failed."""
    why = "There is nothing to read: the input holds no line of text. It may have been opened before anything was written to it."
    return Verdict(Category.UNKNOWN, "The log is empty", why, Confidence.UNKNOWN)


def only_fragments(proof: Evidence) -> Verdict:
    """Error records stand in the log, and none of them is whole."""
    why = "Error records stand in the log, but what failed is not among their lines, and nothing shows that the job worked."
    return Verdict(Category.UNKNOWN, "Something failed", why, Confidence.UNKNOWN, evidence=(proof,))


def after_all_work(verdict: Verdict, done: Evidence) -> Verdict:
    """The same, with a line above the failure that says that all of the work is done: what came later may be the clearing up, or the
    saving of what the work was for."""
    told = "The job had said before that its work was done: what failed behind that may have cost a part of the result, or nothing."
    return replace(verdict, explanation=f"{verdict.explanation} {told}", evidence=(*verdict.evidence, done))


def perhaps(finding: Finding, proof: Evidence) -> Verdict:
    """A line stands in the log that only a failure prints, and no more than that line shows one."""
    why = f"{finding.explanation} Nothing else in the log shows a failure, and nothing shows that the job went on behind this line."
    return Verdict(
        Category.UNKNOWN,
        f"Perhaps: {finding.title}",
        why.strip(),
        Confidence.UNKNOWN,
        evidence=(proof,),
        next_steps=finding.next_steps,
        alternatives=(Alternative(finding.category, finding.title, Confidence.HYPOTHESIS),) if finding.category is not None else (),
    )


def left_in_start(what: str, proofs: tuple[Evidence, ...], *, gone: bool) -> Verdict:
    """The log ends in the middle of an engine's start. what: what the engine did there; gone: its processes are known to have ended, which
    without a word they do most often because somebody killed them."""
    advice = _advice()["left_in_start"]
    if gone:
        advice = advice["gone"]
    return Verdict(
        Category.KILLED_EXTERNALLY if gone else Category.UNKNOWN,
        f"The engine was gone while it {what}, without a word" if gone else f"The log ends while the engine {what}",
        str(advice["explanation"]),
        Confidence.HYPOTHESIS if gone else Confidence.UNKNOWN,
        evidence=proofs,
        next_steps=tuple(advice["next_steps"]),
        settled_by=tuple(advice["settled_by"]),
        must_not_prove=advice["must_not_prove"],
        alternatives=tuple(Alternative(Category(name), why, Confidence.HYPOTHESIS) for name, why in advice["often"].items()),
    )


def perhaps_quoted(proof: Evidence) -> Verdict:
    """What looks like a failure stands behind a prompt whose end the log does not show."""
    why = (
        "A log record quotes a request and does not close its quotation; what looks like a failure stands behind that. It may be what a "
        "user of the service pasted into it, or the service's own."
    )
    return Verdict(Category.UNKNOWN, "Perhaps a user's words, perhaps a failure", why, Confidence.UNKNOWN, evidence=(proof,))


def unread(why: str) -> Verdict:
    """No failure was found, but a part of the analysis did not work."""
    return Verdict(
        Category.UNKNOWN,
        "The log could not be read completely",
        f"No failure was found, but {why}.",
        Confidence.UNKNOWN,
    )
