r"""What people asked a model, and what it said. In: nothing; out: RULES of (pattern, unit, weak). Samples:

    Received request cmpl-1: prompt: 'tell me about …', params: …        vLLM
    GenerateReqInput(text='tell me about …', input_ids=[1, 2, 3])          SGLang
    {"messages": [{"role": "user", "content": "tell me about …"}]}         a request's body

Each pattern has two groups: what stays before it, and what goes.
"""

from __future__ import annotations

import re

#: a quoted string, escaped or not; {0}: the group of its quote, {1}: its shortest length. An open end is a text that was cut.
_STRING = r"""(?P<{0}>\\{{0,3}}["'])(?:(?!(?P={0}))(?:[^\\]|\\(?!(?P={0}))|\\.)){{{1},}}+(?:(?P={0})|\Z)"""
_STRONG = r"(?:(?:system|user|negative|raw|chat|formatted|decoder|encoder|mm|text)_?)?prompts?(?:_?text)?|messages|input_text|generated[_ ]text|output_text|reasoning(?:_content)?|chat_history"
_WEAK = r"content|text|texts|inputs?|instructions?|arguments|outputs?|completion|response|body|documents?|query|question|suffix|delta"


def _named(names: str, shortest: int) -> re.Pattern[str]:
    one, first, more = (_STRING.format(*row) for row in (("one", shortest), ("first", shortest), ("more", 1)))
    mark = r"""(?:\\{0,3}["'])?"""
    return re.compile(
        rf"""(?xsi) ((?<![\w.-]){mark}\b(?:{names}){mark}\s{{0,2}}[:=]\s{{0,2}}b?)
        ({one} | \[\s{{0,2}}b?{first}(?:\s{{0,2}},\s{{0,2}}b?{more}){{0,4000}}\s{{0,2}}\]?)"""
    )


#: (pattern, what is counted, whether the name alone does not tell)
RULES: tuple[tuple[re.Pattern[str], str, bool], ...] = (
    (_named(_STRONG, 3), "characters", False),
    (_named(_WEAK, 12), "characters", True),
    (re.compile(r"(?i)((?<![\w.-])prompt\s{0,2}=\s{0,2})((?=[^\W\d])[^\s\"'=,\[\](){}<]+(?:\s[^\s\"'=\[\](){}<]+){3,400}(?=,\s\w+=|\s*$))"), "characters", False),
    (re.compile(r"""(?ix) ((?<![\w.-])\\{0,3}["']?(?:\w{0,20}(?:input|prompt|output|token|fill)_?(?:token_?)?ids|prompt_tokens_ids|inputTokenIds|outputTokenIds)
        (?:\\{0,3}["'])?\s{0,2}[:=]\s{0,2}(?:tensor\(|array\()?)(\[[\d,\s\[\]]{7,}\]?)"""), "token ids", False),
    (re.compile(r"(\bdata:[\w/+.-]{3,60};base64,)([A-Za-z0-9+/=]{16,})"), "characters", False),
)  # fmt: skip


def is_prose(text: str) -> bool:
    """Whether a value of `text=`, `input:` and the like is language: several words, or letters of no alphabet of programs."""
    return not text.isascii() or len(text.split()) > 2 or "\\u" in text
