"""What a library's own check says, where no signature knows it: the kind of the words decides, and other words decide nothing."""

from __future__ import annotations

import pytest

from forensics.model.event import Event, EventKind
from forensics.model.source import Span
from forensics.model.stack import ExceptionChain, Frame, RaisedException
from forensics.model.verdict import Category
from forensics.verdict.category import categorize
from forensics.verdict.fold import Group
from forensics.verdict.sighting import sight

ENGINE = Frame("f", "/usr/lib/python3/dist-packages/vllm/v1/worker/x.py")
FRAMEWORK = Frame("f", "/usr/lib/python3/dist-packages/deepspeed/runtime/x.py")
KERNELS = Frame("f", "/usr/lib/python3/dist-packages/flashinfer/x.py")
USER = Frame("f", "/home/me/train.py")
SPAN = Span(0, 10, 20)


def said(kind: str, message: str, frame: Frame) -> Category:
    chain = ExceptionChain((RaisedException(kind, message, (frame,)),), SPAN)
    seen = sight(Event(EventKind.PYTHON, SPAN, chain=chain))
    assert seen is not None
    return categorize(Group(seen, "x", [seen]), [], None).category


@pytest.mark.parametrize(
    ("kind", "message", "frame", "category"),
    [
        ("AssertionError", "Sparse gather is supported only for the fused optimizer.", FRAMEWORK, Category.CONFIG_ERROR),
        ("AssertionError", "assert self.num_kv_heads % get_tp_size() == 0", ENGINE, Category.CONFIG_ERROR),
        ("AssertionError", "assert self.num_heads % tp_size == 0", ENGINE, Category.CONFIG_ERROR),
        ("AssertionError", "assert self.total_num_kv_heads % tensor_model_parallel_world_size == 0", ENGINE, Category.CONFIG_ERROR),
        ("AssertionError", "assert num_heads % head_size == 0", ENGINE, Category.SHAPE_OR_DTYPE_ASSERT),
        ("RuntimeError", "fp8 and int8 can not be enabled at once", FRAMEWORK, Category.CONFIG_ERROR),
        ("ValueError", "Unknown draft model backend: medusa9", ENGINE, Category.CONFIG_ERROR),
        ("ValueError", "The tool parser x9 is not in the parser list: ['a', 'b']", ENGINE, Category.CONFIG_ERROR),
        ("ValueError", "context split is not supported with pipeline stages", KERNELS, Category.CONFIG_ERROR),
        ("RuntimeError", "You need to pass the ENV 'MOONCAKE_CONF=/a/mooncake.json'", ENGINE, Category.CONFIG_ERROR),
        ("RuntimeError", "Address family not supported by protocol", ENGINE, Category.UNKNOWN),
        ("RuntimeError", "worker 3 stopped supporting its peers", ENGINE, Category.UNKNOWN),
        ("AssertionError", "Replica routing table is not initialized", FRAMEWORK, Category.UNKNOWN),
        ("AssertionError", "table of size 8 is not initialized for size 16", FRAMEWORK, Category.SHAPE_OR_DTYPE_ASSERT),
        ("AssertionError", "", ENGINE, Category.UNKNOWN),
        ("AssertionError", "assert lent == returned", ENGINE, Category.UNKNOWN),
        ("AssertionError", "assert len(tickets) == 1", KERNELS, Category.UNKNOWN),
        ("AssertionError", "assert rows.shape[0] == columns.shape[1]", ENGINE, Category.SHAPE_OR_DTYPE_ASSERT),
        ("AssertionError", "assert weight.dtype == torch.bfloat16", FRAMEWORK, Category.SHAPE_OR_DTYPE_ASSERT),
        ("AssertionError", "K must be 96, but got 24", KERNELS, Category.SHAPE_OR_DTYPE_ASSERT),
        ("ValueError", "expected shape of mel per clip is (80, 300). You supplied (80, 298).", ENGINE, Category.SHAPE_OR_DTYPE_ASSERT),
        ("ValueError", "q head dim must be a multiple of 64, got 80.", KERNELS, Category.SHAPE_OR_DTYPE_ASSERT),
        ("RuntimeError", "Check failed: out.size(1) == rows (96 vs. 64) : out has a wrong dim 1", KERNELS, Category.SHAPE_OR_DTYPE_ASSERT),
        ("RuntimeError", "Check failed: pending.size() == 1 (0 vs. 1)", KERNELS, Category.UNKNOWN),
        ("ValueError", "scale must have shape (8, 4); got (8, 2)", KERNELS, Category.SHAPE_OR_DTYPE_ASSERT),
        ("ValueError", "num_rows mismatch. num_rows = 4, num_rows_ = 8", KERNELS, Category.SHAPE_OR_DTYPE_ASSERT),
        ("ValueError", "the shape of things to come", KERNELS, Category.UNKNOWN),
        ("ValueError", "zero.buckets must be >= 1", FRAMEWORK, Category.CONFIG_ERROR),
        ("ValueError", "put_signal: unsupported backend: NVSHMEM", FRAMEWORK, Category.CONFIG_ERROR),
        ("RuntimeError", "Missing optimizer state for parameter 'x' in the file", FRAMEWORK, Category.MODEL_LOAD),
        ("ValueError", "the op supports float16 / bfloat16 inputs; got torch.float64", KERNELS, Category.UNSUPPORTED_DTYPE_OR_QUANT),
        ("TypeError", "Frame feature must be a numpy.ndarray, got <class 'str'>", ENGINE, Category.UNKNOWN),
        ("TypeError", "f() takes 2 positional arguments but 3 were given", ENGINE, Category.VERSION_MISMATCH),
        ("RuntimeError", "Distributed package doesn't have XCCL built in", FRAMEWORK, Category.MISSING_LIBRARY),
        ("FileNotFoundError", "Missing MoE optimizer checkpoint for rank 9", FRAMEWORK, Category.MODEL_LOAD),
        ("FileNotFoundError", "Missing report for rank 9", FRAMEWORK, Category.CONFIG_ERROR),
        ("ValueError", "the loss of `train_step` is nan.", FRAMEWORK, Category.NUMERICS),
        ("RuntimeError", "cuSOLVER error: CUSOLVER_STATUS_ALLOC_FAILED", USER, Category.OOM_GPU),
        ("RuntimeError", "cuFFT error: CUFFT_NOT_SUPPORTED", USER, Category.UNSUPPORTED_DTYPE_OR_QUANT),
        ("RuntimeError", "HIPBLAS_STATUS_ARCH_MISMATCH when calling x", USER, Category.ARCH_MISMATCH),
        ("OSError", "[Errno 108] Cannot send after transport endpoint shutdown", USER, Category.STORAGE),
        ("RuntimeError", "lib version 0.5.1 is newer than and incompatible with app version 0.4.9.", FRAMEWORK, Category.VERSION_MISMATCH),
        ("botocore.exceptions.ClientError", "An error occurred (SlowDown) when calling the PutObject operation: x", USER, Category.STORAGE),
        ("botocore.exceptions.ClientError", "An error occurred (Denied) when calling the Invoke operation: x", USER, Category.USER_CODE),
        ("botocore.exceptions.NoCredentialsError", "Unable to locate credentials", USER, Category.CONFIG_ERROR),
    ],
)  # fmt: skip
def test_words_of_a_check(kind: str, message: str, frame: Frame, category: Category) -> None:
    assert said(kind, message, frame) is category
