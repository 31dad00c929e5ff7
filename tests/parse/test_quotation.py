"""What a quotation over several lines still waits for."""

from __future__ import annotations

import pytest

from forensics.parse.quotation import waits_for


@pytest.mark.parametrize(
    ("lines", "waits"),
    [
        (["Received request c-1: prompt: 'Why?"], "'"),
        (["Received request c-1: prompt: 'Why?', params: x"], ""),
        (["Received request c-1: prompt: 'I don't know why"], "'"),  # an apostrophe ends nothing
        (["Receive: obj=GenerateReqInput(rid='5b2', text='Why?"], "'"),
        (["Receive: obj=GenerateReqInput(rid='5b2', text='Why?')"], ""),
        (['Receive: obj=GenerateReqInput(text="""Why?'], '"""'),
        (['{"messages": [{"role": "user", "content": "Why?'], '"'),
        (['{"messages": [{"role": "user", "content": "Why?"}]}'], ""),
        (['{"messages": [{"role": "user", "content": "Why?"}'], "["),
        (["step 3 of the job's work"], ""),
        (["Received request c-1: prompt: 'Why?", "I ran f('a') and 'b'"], "'"),  # words in quotes end nothing either
        (["Received request c-1: prompt: 'Why?", '  File "/a/b.py", line 3, in f', "    g('x')"], "'"),
        (["Received request c-1: prompt: 'Why?", "thanks', params: x"], ""),
        (["Received request c-1: prompt: 'Why?", "thanks', params: x", "  prompt: 'no record'"], ""),
        (['{"messages": [{"content": "Why?"}', '{"content": "more"}', "]}"], ""),
        (['{"messages": [{"role": "user", "content": "Why?"}], "error": "'], ""),  # its braces are open, what was asked is whole
        (['level=WARN msg="chat request" prompt="Why?" error="'], ""),
        ([], ""),
    ],
)
def test_waits_for(lines: list[str], waits: str) -> None:
    assert waits_for(lines) == waits
