"""Takes what belongs to a person or a site out of text that is to be published. In: text; out: text. Sample:

"/home/anna/run.py on gpu-17.corp.example with hf_abcdefghijklmnop" -> "/home/<user>/run.py on <host> with <token>"
"""

from __future__ import annotations

import re

_RULES = (
    (
        re.compile(r"\b(?:hf_|sk-|ghp_|gho_|github_pat_|glpat-|xox[abp]-|AKIA|ASIA|AIza)[A-Za-z0-9_\-]{8,200}"),
        "<token>",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_\-]{10,2000}\.[A-Za-z0-9_\-]{5,2000}\.[A-Za-z0-9_\-]{5,500}"), "<token>"),
    (
        re.compile(
            r"(?i)\b((?:api[_-]?key|token|secret|password|passwd|authorization)['\"]?\s{0,3}[:=]\s{0,3}['\"]?)(?!None\b)[^\s'\",)]{4,200}"
        ),
        r"\1<secret>",
    ),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\b"), "<mail>"),
    (re.compile(r"(?<![\w/.])(/(?:home|Users|data/home|mnt/home|nfs/home)/)[^/\s'\":]{1,64}"), r"\1<user>"),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"), "<address>"),
    (re.compile(r"\b(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}\b"), "<address>"),
    (
        re.compile(
            r"\b[a-z][a-z0-9-]{1,62}(?:\.[a-z0-9-]{1,62}){0,4}\.(?:local|internal|lan|corp|intra)(?:\.[a-z]{2,10}){0,2}\b"
        ),
        "<host>",
    ),
    (re.compile(r"(?i)\b((?:host(?:name)?|node)\s{0,3}[:=]\s{0,3})[A-Za-z0-9][\w.-]{2,100}"), r"\1<host>"),
)


def redacted(text: str) -> str:
    """The text without tokens, secrets, mail addresses, user names in paths, IP addresses and internal host names."""
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text
