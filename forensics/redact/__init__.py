"""Takes out of a report what must not be handed on. In: a view, plain values or text; out: the same with stand-ins. Sample:

    Redactor().text("/home/alice/run.py on gpu-node-17.corp.internal, token=hf_AbCd…")
    -> "/home/user-1/run.py on host-1, token=<secret-1>"

The same thing gets the same stand-in everywhere, so that the story stays readable. It is a net, not a proof: read a report before
you publish it.
"""

from __future__ import annotations

from forensics.redact.redactor import Redactor

__all__ = ["Redactor"]
