"""Folders that are called as another package is."""

from __future__ import annotations

import pytest

from forensics.callpath.owners import owner_of, package_of
from forensics.data import table
from forensics.model.stack import Frame
from forensics.model.verdict import Owner


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("/home/u/vllm/vllm/distributed/device_communicators/tpu.py", "vllm"),
        ("/home/u/vllm/vllm/third_party/deep_gemm/jit/core.py", "deep_gemm"),
        ("/srv/distributed/scheduler/core.py", "distributed"),
        ("/home/u/vllm/examples/offline/run.py", None),
        ("/srv/megatron_fsdp/src/megatron_fsdp/param_and_grad_buffer.py", "megatron_fsdp"),
        ("/opt/megatron-lm/megatron/core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py", "megatron_fsdp"),
        ("/srv/my_fsdp/src/train_fsdp/buffer.py", None),
    ],
)
def test_the_package_around_a_folder_of_that_name(path: str, package: str | None) -> None:
    assert package_of(path) == package


def test_what_a_library_evaluates_is_not_the_users() -> None:
    assert owner_of(Frame("__init__", "<string>", 137)) is Owner.RUNTIME
    assert owner_of(Frame("<module>", "<string>", 1)) is Owner.USER


def test_a_native_frame_without_symbols_is_not_the_users() -> None:
    assert owner_of(Frame("__tvm_ffi_paged_run", "<unknown>", 0)) is Owner.KERNEL_LIBRARY
    assert owner_of(Frame("something", "<unknown>", 0)) is Owner.RUNTIME


def test_a_program_that_runs_from_its_own_folder_is_not_the_users() -> None:
    for row in table("frames/owners")["checkout"]:
        for path in row["examples"]:
            assert owner_of(Frame("f", path, 3)).value == row["owner"], path
        for path in row["counterexamples"]:
            assert owner_of(Frame("f", path, 3)) is Owner.USER, path
