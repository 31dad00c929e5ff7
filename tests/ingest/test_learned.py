"""Prefixes that no dialect describes, learnt from tracebacks."""

from __future__ import annotations

from forensics.ingest.learned import learn
from forensics.ingest.lines import LineMaker

SHIPPED = [
    "job-7f/step-1 :: epoch 1 loss 0.5",
    "job-7f/step-1 :: Traceback (most recent call last):",
    'job-7f/step-1 ::   File "/app/train.py", line 12, in <module>',
    "job-7f/step-1 ::     main()",
    'job-7f/step-2 ::   File "/app/train.py", line 7, in main',
    "job-7f/step-2 ::     save()",
    "job-7f/step-2 :: OSError: [Errno 28] No space left on device",
]


def test_the_prefix_of_frames_comes_off_every_line_whatever_its_numbers() -> None:
    maker = LineMaker(0, sample=SHIPPED)
    for number, text in enumerate(SHIPPED, 1):
        maker.add(number, text)
    assert [line.text for line in maker.lines][-3:] == [
        '  File "/app/train.py", line 7, in main',
        "    save()",
        "OSError: [Errno 28] No space left on device",
    ]
    assert maker.lines[0].raw == SHIPPED[0]


def test_a_heading_before_tracebacks_is_no_prefix() -> None:
    frame = '  File "/app/a.py", line 1, in f'
    assert learn(["worker 1 failed: Traceback (most recent call last):", frame] * 3) is None


def test_rulers_of_exception_groups_are_no_prefix() -> None:
    assert learn(['  |   File "/app/a.py", line 1, in f', '  |   File "/app/a.py", line 2, in g']) is None


def test_one_frame_alone_teaches_nothing() -> None:
    assert learn(['note:   File "/app/a.py", line 1, in f']) is None


def _texts(lines: list[str]) -> list[str]:
    maker = LineMaker(0, sample=lines)
    for number, text in enumerate(lines, 1):
        maker.add(number, text)
    return [line.text for line in maker.lines]


def test_several_hosts_are_several_prefixes() -> None:
    lines = ["node-a: Traceback (most recent call last):", 'node-a:   File "/app/a.py", line 1, in f', "node-a:     f()", "node-a: KeyError: 7"]
    both = lines + [line.replace("node-a", "10.0.0.7") for line in lines]
    assert _texts(both)[3] == _texts(both)[7] == "KeyError: 7"


def test_a_rank_behind_a_learnt_prefix_is_a_rank() -> None:
    lines = ["up - INFO - [rank3]: Traceback (most recent call last):", 'up - INFO - [rank3]:   File "/app/a.py", line 1, in f', "up - INFO - [rank3]: KeyError: 7"]
    maker = LineMaker(0, sample=lines)
    for number, text in enumerate(lines, 1):
        maker.add(number, text)
    assert [line.text for line in maker.lines][1:] == ['  File "/app/a.py", line 1, in f', "KeyError: 7"]
    assert {line.rank.number if line.rank else None for line in maker.lines} == {3}


def test_redrawn_bars_do_not_outvote_the_prefix_of_the_lines() -> None:
    bars = "0: \r".join(f"pkg-{n} | 9 MB | {n}% " for n in range(60))
    lines = [f"0: {bars}", "0: done", "0: Traceback (most recent call last):", '0:   File "/app/a.py", line 1, in f', "0: KeyError: 7"]
    assert _texts(lines)[-1] == "KeyError: 7"
    bare = [line.removeprefix("0: ") for line in lines]
    assert _texts([*bare[1:], "3: a list's third"])[-1] == "3: a list's third"


PASTED = [
    "    [rank1]: Traceback (most recent call last):",
    '    [rank1]:   File "/app/train.py", line 12, in <module>',
    "    [rank1]:     main()",
    "",
    "    [rank1]: OSError: [Errno 28] No space left on device",
]


def _taken(texts: list[str]) -> list[tuple[str, str]]:
    maker = LineMaker(0, sample=texts)
    for number, text in enumerate(texts, 1):
        maker.add(number, text)
    assert [line.raw for line in maker.lines] == texts
    return [(line.text, line.rank.label if line.rank else "") for line in maker.lines]


def test_a_paste_that_was_indented_as_a_block_of_code_is_read_without_its_margin() -> None:
    assert _taken(PASTED) == [
        ("Traceback (most recent call last):", "rank 1"),
        ('  File "/app/train.py", line 12, in <module>', "rank 1"),
        ("    main()", "rank 1"),
        ("", ""),
        ("OSError: [Errno 28] No space left on device", "rank 1"),
    ]


def test_an_indentation_that_hides_no_prefix_stays() -> None:
    frames = ['    File "/app/train.py", line 12, in <module>', "      main()", '    File "/app/train.py", line 7, in main', "      save()"]
    assert [text for text, _ in _taken(frames)] == frames
    some = [*PASTED[:3], "started by hand", "no margin here"]  # a part of a log quotes another
    assert [text for text, _ in _taken(some)] == some
