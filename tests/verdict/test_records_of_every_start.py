"""What libraries log as an error at every start, settings that a program does not define, outputs that are there already."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, CausalRole, Status
from tests.verdict.conftest import Told, primary

_STAMP = "2026-11-29 20:15:2{}.125000: E external/local_xla/xla/stream_executor/"
_XLA = (
    _STAMP.format(0) + "cuda/cuda_fft.cc:485] Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one has already been registered\n"
    + _STAMP.format(1) + "stream_executor_internal.h:177] SetPriority unimplemented for this stream.\n"
)
_EPOCHS = "".join(f"epoch {n} loss 0.{n}\n" for n in range(1, 5))
_CANCELLED = "slurmstepd: error: *** JOB 711 ON node3 CANCELLED AT 2026-11-29T20:20:20 ***\n"
_PIP = (
    "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. "
    "This behaviour is the source of the following dependency conflicts.\nlib 2.1 requires base<3, but you have base 3.4 which is incompatible.\n"
)
_CALL = 'Traceback (most recent call last):\n  File "/home/u/fit.py", line 9, in main\n    {}\n  File "{}", line 41, in {}\n    raise e\n{}\n'


def test_xla_logs_as_errors_what_tells_of_nothing(told: Told) -> None:
    assert told(_XLA + _EPOCHS).status is Status.HEALTHY
    ended = told(_XLA + _CANCELLED)
    assert ended.verdict.category is Category.KILLED_EXTERNALLY
    assert {f.role for f in ended.failures[1:]} == {CausalRole.TEARDOWN}


def test_what_xla_could_not_do_stays_an_error(told: Told) -> None:
    failed = _XLA + _STAMP.format(3) + "cuda/cuda_dnn.cc:522] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
    assert "CUDNN" in primary(told(failed)).message


def test_pips_words_about_conflicts_are_not_why_a_step_was_refused(told: Told) -> None:
    refused = told(_PIP + "srun: error: Unable to create step for job 711: Invalid generic resource (gres) specification\n")
    assert refused.verdict.signature == "launcher.slurm-request-refused"
    # where nothing else is, they are what there is
    assert "dependency resolver" in primary(told(_PIP)).message


@pytest.mark.parametrize(
    ("place", "function"),
    [("/env/lib/python3.11/site-packages/absl/flags/_flagvalues.py", "__getattr__"), ("/env/lib/python3.11/site-packages/easydict/__init__.py", "__getattr__")],
)
def test_a_setting_that_is_not_defined_is_the_programs_own(told: Told, place: str, function: str) -> None:
    incident = told(_CALL.format("os.makedirs(FLAGS.out_dir)", place, function, "AttributeError: out_dir"))
    assert incident.verdict.category is Category.USER_CODE
    assert "setting" in incident.verdict.title


def test_an_attribute_that_a_library_misses_is_not(told: Told) -> None:
    missing = "AttributeError: module 'torch' has no attribute 'float9'"
    incident = told(_CALL.format("model = load()", "/env/lib/python3.11/site-packages/vllm/model_executor/layers.py", "build", missing))
    assert incident.verdict.category is Category.VERSION_MISMATCH


def test_an_output_that_is_there_already_is_the_programs_own(told: Told) -> None:
    there = "FileExistsError: [Errno 17] File exists: '/data/runs/7'"
    for place in ("/env/lib/python3.11/site-packages/lerobot/datasets/store.py", "/home/u/store.py"):
        assert told(_CALL.format("create(root)", place, "create", there)).verdict.category is Category.USER_CODE


def test_monarch_repeats_that_an_actor_is_gone(told: Told) -> None:
    cause = 'Traceback (most recent call last):\n  File "/home/u/serve.py", line 5, in build\n    pool()\nRuntimeError: no room for the pool\n\n'
    gone = _CALL.format("generator.pull.call(0).get()", "/env/lib/python3.11/site-packages/monarch/_src/actor/future.py", "get",
                        "monarch._rust_bindings.monarch_hyperactor.supervision.SupervisionError: Endpoint call generator.pull() failed")  # fmt: skip
    assert primary(told(cause + gone)).message == "no room for the pool"
    assert (primary(told(gone)).type or "").endswith("SupervisionError")


_KIT = "2026-11-29 20:15:2{} [11,52{}ms] [Error] [omni.physx.plugin] "


def test_a_simulation_that_broke_off_on_the_gpu(told: Told) -> None:
    broken = "".join(
        (_KIT.format(n, n) + text + "\n")
        for n, text in enumerate(("PhysX error: Synchronizing GPU Broadphase failed! 700", "Cuda context manager error, simulation will be stopped and new one made."))
    )
    incident = told("".join(f"Learning iteration {n}/500\n" for n in range(3)) + broken)
    assert incident.verdict.category is Category.ILLEGAL_MEMORY_ACCESS
    assert incident.verdict.signature == "physx.cuda-error"
    small = _KIT.format(1, 1) + "PhysX error: the application need to increase the foundLostPairsCapacity parameter to 700, otherwise it will miss interactions\n"
    assert told(small + "".join(f"Learning iteration {n}/500\n" for n in range(3))).status is Status.HEALTHY
