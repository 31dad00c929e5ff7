"""What the repro floor offers for an incident, as a plain record for the report floor. In: an incident; out: `ReproOffer`. Sample:

offered(incident) -> ReproOffer(recipe="triton-shared-memory", runnable=True, reason=None)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forensics.report.blocks import ReproOffer

if TYPE_CHECKING:
    from forensics.model.verdict import Incident


def offered(found: Incident, with_script: bool = False) -> ReproOffer:
    """The recipe that rebuilds this failure, or why there is none. with_script: its text too."""
    if found.primary is None:
        return ReproOffer(reason="nothing failed")
    try:
        from forensics.repro import plan

        planned = plan(found)
        if planned is None:
            return ReproOffer(reason="no recipe rebuilds this failure")
        text = None
        if with_script:
            from forensics.repro import script

            text = script(planned)
        told = planned.contract
        return ReproOffer(told["recipe"], told["runnable"], told["reason"], text)
    except Exception as error:
        if os.environ.get("FORENSICS_DEBUG"):
            raise
        return ReproOffer(reason=f"the plan for a repro failed: {type(error).__name__}: {error}"[:300])
