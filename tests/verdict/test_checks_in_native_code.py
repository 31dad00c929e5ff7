"""C's assert() and Triton's own compiler: what they prove, and what settles it."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status
from tests.verdict.conftest import Told, primary

STEP = "step 10 loss 2.3\n"


@pytest.mark.parametrize(
    "line",
    [
        "trainer: ring.c:512: ring_push: Assertion `head < RING_SIZE' failed.",
        'python3: /src/lib/ring.cpp:512: void Ring::push(int): Assertion `head < kSize && "ring is full"\' failed.',
        "ring.c:123: ring_push: Assertion `x != NULL' failed.",
    ],
)
def test_an_assertion_of_the_c_library_is_an_abort_of_the_program_that_it_names(told: Told, line: str) -> None:
    incident = told(STEP + line + "\n")
    assert incident.status is Status.CRASHED and incident.verdict.category is Category.SEGFAULT
    assert primary(incident).message == line
    assert "source of the installed version" in incident.verdict.next_steps[0]


def test_a_line_that_quotes_an_assertion_is_none(told: Told) -> None:
    quoted = "case 3: expects \"ring.c:123: fn: Assertion `x' failed.\" in the output: ok\n"
    assert told(STEP + quoted + STEP.replace("10", "11")).status is Status.HEALTHY


TRITON = """\
Traceback (most recent call last):
  File "/app/kernels.py", line 30, in run
    _kernel[grid](x, y, n, BLOCK=128)
  File "/usr/lib/python3.12/site-packages/triton/compiler/compiler.py", line 85, in make_ir
    return ast_to_ttir(self.fn, self, context=context)
triton.compiler.errors.CompilationError: at 10:12:
    y = tl.dot(x, w)
        ^
Input shapes should have M >= 16, N >= 16 and K >= 16
"""


def test_tritons_compiler_is_not_settled_by_nvcc(told: Told) -> None:
    verdict = told(TRITON).verdict
    assert verdict.category is Category.JIT_COMPILE
    assert not any("nvcc" in one for one in (*verdict.settled_by, *verdict.next_steps))
    built = TRITON[: TRITON.index("triton.compiler.errors")] + "RuntimeError: Error building extension 'fused': ninja: build stopped\n"
    other = told(built.replace("triton/compiler/compiler.py", "torch/utils/cpp_extension.py")).verdict
    assert any("nvcc" in one for one in other.settled_by)
