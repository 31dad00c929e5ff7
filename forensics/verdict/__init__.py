"""What happened, who first, why that one, how sure. Public verb: `judge`."""

from forensics.verdict.judge import judge

__all__ = ["judge"]
