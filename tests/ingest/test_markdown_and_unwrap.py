"""Pasted issues and hard-wrapped lines."""

from __future__ import annotations

import pytest

from forensics.ingest import from_text
from forensics.ingest.unwrap import rejoin, width_of

ISSUE = """### Describe the bug

It crashes. See RuntimeError below.

```bash
python -m server --tp 4
```

<details>

~~~
[rank0]: Traceback (most recent call last):
[rank0]:   File "a.py", line 1, in f
[rank0]: RuntimeError: boom
~~~
</details>
"""


def test_each_fence_is_a_source() -> None:
    intake = from_text(ISSUE, "issue.md")
    assert len(intake.sources) == 2
    assert [(line.source, line.number, line.text) for line in intake.lines] == [
        (0, 6, "python -m server --tp 4"),
        (1, 12, "Traceback (most recent call last):"),
        (1, 13, '  File "a.py", line 1, in f'),
        (1, 14, "RuntimeError: boom"),
    ]


def test_a_log_that_quotes_fences_is_one_source() -> None:
    text = "[2026-11-29 20:15:20 TP0] prompt:\n```python\nprint()\n```\n[2026-11-29 20:15:21 TP0] done\n"
    assert len(from_text(text).sources) == 1


def test_a_stack_outside_of_the_fences_keeps_the_text_whole() -> None:
    text = (
        '### Bug\n```\npip list\n```\nTraceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: x\n'
    )
    assert len(from_text(text).lines) == 7


@pytest.mark.parametrize("width", [80, 120])
def test_rejoin(width: int) -> None:
    originals = [
        "[rank0]: Traceback (most recent call last):",
        '[rank0]:   File "/usr/local/lib/python3.12/dist-packages/torch/nn/modules/module.py", line 1790, in _call_impl_and_a_longer_name',
        "[rank0]: RuntimeError: CUDA error: no kernel image is available for execution on the device, which is said at length_" + "x" * 90,
        '[rank0]:   File "/usr/local/lib/python3.12/dist-packages/flashinfer/fused_moe/core.py", line 2790, in trtllm_fp4_block_scale_routed_moe',
        "[rank0]: short",
        "[rank0]: " + "words_without_a_blank" * 12,
    ]  # fmt: skip
    wrapped = [text[at : at + width] for text in originals for at in range(0, len(text), width)]
    lines = from_text("\n".join(wrapped)).lines
    assert width_of(lines) == width
    joined = rejoin(lines)
    assert [line.raw for line in joined] == originals
    assert joined[1].number == 2 and joined[1].joined >= 1 and joined[1].rank is not None


def test_lines_of_one_length_are_not_a_wrap() -> None:
    lines = from_text(
        "".join(
            f"[rank{n % 8}]: step {n:04d} loss 0.1234 lr 0.00010 grad norm 1.2345 tokens 4096 seconds 12.3\n"
            for n in range(50)
        )
    ).lines
    assert width_of(lines) is None and rejoin(lines) == lines


def test_lines_filled_up_with_blanks_are_not_a_wrap() -> None:
    texts = ["Traceback (most recent call last):", '  File "/srv/a.py", line 3, in run', "    check(pool)", "ValueError: leak"]
    lines = from_text("\n".join(text.ljust(100) for text in texts)).lines
    assert [line.raw.strip() for line in rejoin(lines, 100)] == [text.strip() for text in texts]
    # a line that reaches the width by itself goes on below
    full = ["ValueError: " + "x" * 88, "yyy".ljust(100), "z"]
    assert [line.raw.strip() for line in rejoin(from_text("\n".join(full)).lines, 100)] == [full[0] + "yyy", "z"]
