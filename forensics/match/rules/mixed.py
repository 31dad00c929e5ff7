"""Ranks of one job that run different releases of the same library. In: facts and what was found; out: `Finding`s. Sample:

    NCCL 2.27.5 and NCCL 2.21.5 in the log, "Message truncated : received 1024 bytes instead of 256"
    -> Finding("nccl.mixed-releases", category=VERSION_MISMATCH, title="The ranks run different releases of NCCL: 2.21.5, 2.27.5")

The structs that ranks exchange while they set a communicator up differ between releases (nccl src/bootstrap.cc, src/init.cc), so one gets
a message of another size than it expects. Two releases alone prove nothing: a process may load one of its own, or a log hold two jobs.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.match.engine import Matcher
from forensics.match.quoting import evidence
from forensics.model.record import replace
from forensics.model.verdict import Category, Confidence, Finding

_TRUNCATED = "nccl.message-truncated"


def mixed_releases(matcher: Matcher, findings: Sequence[Finding]) -> list[Finding]:
    """One root finding where messages of wrong sizes were met and the log names several releases of NCCL."""
    truncated = next((one for one in findings if one.id == _TRUNCATED), None)
    seen = {v.value.partition("+")[0]: v for v in matcher.facts.versions if v.name == "nccl" and v.how == "banner"}
    if truncated is None or len(seen) < 2:
        return []
    told = tuple(evidence(matcher.subjects, v.span, (value,), f"NCCL {value}") for value, v in sorted(seen.items()))
    return [
        replace(
            truncated,
            id="nccl.mixed-releases",
            category=Category.VERSION_MISMATCH,
            title=f"The ranks run different releases of NCCL: {', '.join(sorted(seen))}",
            explanation="All ranks of a communicator must use one release of NCCL: what they send each other to set it up differs between "
            "releases, so that a rank gets messages of another size than it expects.",
            confidence=Confidence.SUPPORTED,
            evidence=(*truncated.evidence, *told),
            next_steps=(
                "Use the same image (or the same nvidia-nccl wheel) on every node.",
                "Look for a second libnccl in LD_LIBRARY_PATH and LD_PRELOAD.",
            ),
            specificity=truncated.specificity + 10,
        )
    ]
