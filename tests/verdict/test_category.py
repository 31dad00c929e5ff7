"""From words to categories, where no signature speaks."""

from __future__ import annotations

import re

import pytest

from forensics.data import table
from forensics.model.event import Event, EventKind
from forensics.model.source import Evidence, Span
from forensics.model.stack import ExceptionChain, Frame, RaisedException
from forensics.model.verdict import Category, Confidence, Finding, SignatureRole
from forensics.verdict.category import categorize
from forensics.verdict.fold import Group
from forensics.verdict.sighting import sight

ENGINE = Frame("f", "/usr/lib/python3/dist-packages/vllm/engine/x.py")
USER = Frame("f", "/home/me/train.py")
TORCH = Frame("__init__", "/opt/env/lib/python3.12/site-packages/torch/distributions/distribution.py", 71)
CONFIG = Frame("check", "/opt/env/lib/python3.12/site-packages/deepspeed/runtime/config.py", 700)
SPAN = Span(0, 10, 20)


def group(kind: str, message: str, *frames: Frame, outer: tuple[str, str] | None = None) -> Group:
    links = [RaisedException(kind, message, frames or (USER,))]
    if outer is not None:
        links.append(RaisedException(*outer, frames or (USER,), link="cause"))
    seen = sight(Event(EventKind.PYTHON, SPAN, chain=ExceptionChain(tuple(links), SPAN)))
    assert seen is not None
    return Group(seen, "x", [seen])


def finding(
    category: Category, specificity: int, quote: str = "", line: int = 15, confidence: Confidence = Confidence.SUPPORTED
) -> Finding:
    proof = Evidence(Span(0, line, line), quote)
    return Finding(
        f"a.{category}", SignatureRole.ROOT, category, category.value, "", confidence, (proof,), specificity=specificity
    )


@pytest.mark.parametrize(
    ("kind", "message", "frame", "category"),
    [
        ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 1.00 GiB.", USER, Category.OOM_GPU),
        (
            "RuntimeError",
            "CUDA error: no kernel image is available for execution on the device",
            USER,
            Category.NO_KERNEL_IMAGE,
        ),
        ("RuntimeError", "This kernel requires compute capability 9.0 or newer", ENGINE, Category.ARCH_MISMATCH),
        (
            "RuntimeError",
            "CUDA error: an illegal memory access was encountered\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
            USER,
            Category.ILLEGAL_MEMORY_ACCESS,
        ),
        (
            "RuntimeError",
            "CUDA error: operation not permitted when stream is capturing\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
            USER,
            Category.GRAPH_CAPTURE,
        ),
        ("ModuleNotFoundError", "No module named 'deep_ep'", USER, Category.MISSING_LIBRARY),
        ("OSError", "[Errno 28] No space left on device", USER, Category.STORAGE),
        ("RuntimeError", "Error(s) in loading state_dict for Net", USER, Category.MODEL_LOAD),
        (
            "RuntimeError",
            "mat1 and mat2 shapes cannot be multiplied (4x3 and 5x6)",
            USER,
            Category.SHAPE_OR_DTYPE_ASSERT,
        ),
        ("TypeError", "gate() got an unexpected keyword argument 'bias'", ENGINE, Category.VERSION_MISMATCH),
        ("TypeError", "f() got an unexpected keyword argument 'bias'", USER, Category.USER_CODE),
        ("KeyError", "'tokens'", USER, Category.USER_CODE),
        ("RuntimeError", "something nobody has seen", ENGINE, Category.UNKNOWN),
        # what a library says of what it was given
        ("TypeError", "'NoneType' object is not callable", ENGINE, Category.MISSING_LIBRARY),
        ("TypeError", "'NoneType' object is not callable", USER, Category.USER_CODE),
        ("ray.exceptions.RaySystemError", "System error: Can't deserialize object: ObjectRef(00ff), metadata: b'X'", USER, Category.VERSION_MISMATCH),
        ("ray.exceptions.RaySystemError", "System error: the object is gone", USER, Category.UNKNOWN),
        ("ValueError", "`offload_states` cannot be given twice", ENGINE, Category.CONFIG_ERROR),
        ("ValueError", "The parameter rows of the table is the fourth one", USER, Category.USER_CODE),
        ("ValueError", "Expected parameter loc of N(a) to satisfy the constraint Real(), but found invalid values:\ntensor([nan])", TORCH, Category.NUMERICS),
        ("ValueError", "Expected parameter loc of N(a) to satisfy the constraint Real(), but found invalid values:\ntensor([-1.])", TORCH, Category.CONFIG_ERROR),
        ("ValueError", "rows differ, so you should pad them. Perhaps the field (`labels` here) is nested", TORCH, Category.USER_CODE),
        ("ValueError", "rows differ, so you should pad them with `pad_rows`", TORCH, Category.CONFIG_ERROR),
        ("ValueError", "the stage is too low", CONFIG, Category.CONFIG_ERROR),
    ],
)
def test_words(kind: str, message: str, frame: Frame, category: Category) -> None:
    assert categorize(group(kind, message, frame), (), None).category is category


def test_a_guess_is_called_a_guess() -> None:
    assert categorize(group("KeyError", "'tokens'"), (), None).confidence is Confidence.HYPOTHESIS
    assert categorize(group("RuntimeError", "something", ENGINE), (), None).confidence is Confidence.UNKNOWN


def test_the_more_specific_finding_wins() -> None:
    said = group("RuntimeError", "boom")
    best = categorize(said, [finding(Category.NCCL, 20, "boom"), finding(Category.ARCH_MISMATCH, 90, "boom")], None)
    assert best.category is Category.ARCH_MISMATCH
    assert [category for category, _, _ in best.others] == [Category.NCCL]


def test_the_root_before_its_wrapper() -> None:
    said = group("RuntimeError", "an illegal memory access", outer=("RuntimeError", "the device is busy"))
    findings = [
        finding(Category.DRIVER_OR_HARDWARE, 70, "RuntimeError: the device is busy"),
        finding(Category.ILLEGAL_MEMORY_ACCESS, 20, "an illegal memory access"),
    ]
    assert categorize(said, findings, None).category is Category.ILLEGAL_MEMORY_ACCESS


def test_a_finding_elsewhere_does_not_speak_of_it() -> None:
    said = group("KeyError", "'tokens'")
    assert categorize(said, [finding(Category.NCCL, 90, "x", line=5_000)], None).category is Category.USER_CODE


def test_a_finding_just_before_is_a_hypothesis() -> None:
    said = group("RuntimeError", "something", ENGINE)
    near = categorize(said, [finding(Category.NCCL, 90, "x", line=8, confidence=Confidence.ESTABLISHED)], None)
    assert (near.category, near.confidence) == (Category.NCCL, Confidence.HYPOTHESIS)


def test_every_pattern_is_a_pattern_and_bounded() -> None:
    for name, key in (("verdict/categories", "category"), ("verdict/consequences", "consequence")):
        for row in table(name)[key]:
            for field in ("type", "message", "heading", "function", "inner", "frames"):
                if field in row:
                    re.compile(row[field])
                    assert ".*" not in row[field], (name, row[field])


@pytest.mark.parametrize(
    ("kind", "message", "category", "near"),
    [
        ("RuntimeError", "level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", Category.OOM_GPU, "(UR_RESULT_ERROR_DEVICE_LOST)"),
        ("RuntimeError", "level_zero backend failed with error: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)", Category.OOM_GPU, "(UR_RESULT_ERROR_UNKNOWN)"),
        ("numpy._core._exceptions._ArrayMemoryError", "Unable to allocate 9.00 TiB for an array", Category.OOM_HOST, None),
        ("ValueError", "init_method env:// requires the environment variable RANK", Category.CONFIG_ERROR, "the environment variable RANK was read"),
    ],
)
def test_words_of_other_run_times_and_what_only_looks_like_them(kind: str, message: str, category: Category, near: str | None) -> None:
    assert categorize(group(kind, message), [], None).category is category
    beside = group("numpy.exceptions.AxisError", message) if near is None else group(kind, near)
    assert categorize(beside, [], None).category is not category


@pytest.mark.parametrize(
    ("kind", "message", "category"),
    [
        ("PIL.UnidentifiedImageError", "cannot identify image file '/d/7.png'", Category.USER_CODE),
        ("soundfile.LibsndfileError", "Error opening '/d/7.flac': Format not recognised.", Category.USER_CODE),
        ("pyarrow.lib.ArrowInvalid", "Could not open Parquet input source '<Buffer>'", Category.USER_CODE),
        ("OSError", "image file is truncated (12 bytes not processed)", Category.USER_CODE),
        ("yaml.parser.ParserError", "while parsing a block mapping", Category.UNKNOWN),
        ("pyarrow.lib.ArrowIOError", "the table is not open", Category.UNKNOWN),
    ],
)
def test_a_file_that_its_reader_cannot_read_is_the_users_data(kind: str, message: str, category: Category) -> None:
    library = Frame("open", "/usr/lib/python3.12/site-packages/reader/__init__.py", 12)
    assert categorize(group(kind, message, USER, library), (), None).category is category


def test_windows_says_in_any_language_that_a_library_is_not_there() -> None:
    said = "[WinError 126] O módulo especificado não foi encontrado. Error loading \"C:\\\\env\\\\torch\\\\lib\\\\shm.dll\" or one of its dependencies."
    assert categorize(group("OSError", said, USER), (), None).category is Category.MISSING_LIBRARY
    assert categorize(group("OSError", said.replace("126", "5"), USER), (), None).category is not Category.MISSING_LIBRARY
