"""Fingerprints: the same on every rank, in every run, after an edit elsewhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forensics.model.stack import Frame
from forensics.verdict.fold import fingerprint, plain


def frames(root: str, shift: int) -> tuple[Frame, ...]:
    return (
        Frame("main", f"{root}/serve.py", 10 + shift),
        Frame("_wrapped_call_impl", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1751 + shift),
        Frame("forward", f"{root}/model.py", 99 + shift),
        Frame("mlp", f"{root}/model.py", 120 + shift),
    )


@given(
    address=st.integers(0, 2**48),
    shift=st.integers(0, 500),
    rank=st.integers(0, 4095),
    root=st.sampled_from(["/home/a/b", "/opt/venv/lib", "/srv"]),
)
def test_it_does_not_drift(address: int, shift: int, rank: int, root: str) -> None:
    def mark(address: int, shift: int, rank: int, root: str) -> str:
        message = f"rank {rank} failed at {hex(address)} in {root}/model.py after {shift}.5 s"
        return fingerprint("python", "RuntimeError", message, frames(root, shift))

    assert mark(address, shift, rank, root) == mark(1, 0, 0, "/elsewhere/x")


def test_what_failed_makes_the_difference() -> None:
    one = fingerprint("python", "RuntimeError", "no kernel for this GPU", frames("/srv", 0))
    assert one != fingerprint("python", "ValueError", "no kernel for this GPU", frames("/srv", 0))
    assert one != fingerprint("python", "RuntimeError", "no memory for this GPU", frames("/srv", 0))
    assert one != fingerprint("python", "RuntimeError", "no kernel for this GPU", frames("/srv", 0)[:-1])
    assert one == fingerprint("python", "builtins.RuntimeError", "no kernel for this GPU", frames("/srv", 0))


@given(st.text(max_size=3_000))
def test_any_message_is_made_plain(text: str) -> None:
    assert plain(plain(text)) == plain(plain(plain(text)))
