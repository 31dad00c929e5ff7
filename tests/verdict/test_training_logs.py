"""Kinds that whole training logs of clusters showed: MPI's own errors, words that are no failures, phases, pasted tracebacks."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Confidence, Incident, Status

from .conftest import Told

PROGRESS = "step 120 loss 2.31\nstep 121 loss 2.30\nstep 122 loss 2.29\n"


def _said(incident: Incident) -> str:
    assert incident.primary is not None
    return f"{incident.primary.message}\n{incident.primary.root_message}"


MPICH = (
    "MPICH ERROR [Rank 3] [job id 71.0] [Sun Nov 29 20:15:01 2026] [node8] - Abort(2140431) (rank 3 in comm 0): "
    "Fatal error in PMPI_Recv: Other MPI error, error stack:\n"
    "PMPI_Recv(177)................: MPI_Recv(buf=0x7f00, count=4, MPI_FLOAT, src=0, tag=7, comm=0x84) failed\n"
    "MPIDI_recv(50)................:\n"
    "MPIDI_OFI_do_irecv(81)........: OFI tagged recv failed (ofi_recv.h:81:MPIDI_OFI_do_irecv:No route to host)\n"
)
STEP = (
    "srun: error: node8: task 3: Exited with exit code 255\nsrun: Terminating StepId=71.0\n"
    "slurmstepd: error: *** STEP 71.0 ON node7 CANCELLED AT 2026-11-29T20:15:02 ***\n"
)


def test_mpichs_error_stack_is_the_failure_and_its_rank_is_named(told: Told) -> None:
    incident = told(MPICH + STEP)
    assert incident.verdict.category is Category.NCCL
    assert incident.verdict.rank is not None and incident.verdict.rank.number == 3
    assert "Fatal error in PMPI_Recv" in _said(incident) and "No route to host" in _said(incident)


OPENMPI = (
    "[node7:4021] *** An error occurred in MPI_Allreduce\n[node7:4021] *** reported by process [271403,0]\n"
    "[node7:4021] *** on communicator MPI_COMM_WORLD\n[node7:4021] *** MPI_ERR_OTHER: known error not in list\n"
)
FATAL = "[node7:4021] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n"
KILLED = "srun: error: node7: task 0: Killed\nsrun: error: node7: task 1: Killed\n"


def test_tasks_killed_after_a_fatal_mpi_error_died_of_it(told: Told) -> None:
    incident = told(OPENMPI + FATAL + KILLED)
    assert incident.verdict.category is Category.NCCL and "MPI_Allreduce" in _said(incident)


def test_an_mpi_error_that_was_returned_does_not_explain_a_kill(told: Told) -> None:
    assert told(OPENMPI + KILLED).verdict.category is Category.KILLED_EXTERNALLY


def test_ucx_says_why_it_aborts(told: Told) -> None:
    handler = (
        "[node7:4021:1:4030]        rndv.c:943  Fatal: failed to unpack rendezvous remote key received from node8: Input/output error\n"
        "==== backtrace ====\n    0  /opt/ucx/lib/libucs.so.0(ucs_fatal_error_message+0xd0) [0x2aaa]\n"
        "    1  /opt/ucx/lib/libucp.so(ucp_rndv_rtr_handler+0x153) [0x2aab]\n===================\n"
        "[node7:4021] *** Process received signal ***\n[node7:4021] Signal: Aborted (6)\n[node7:4021] Signal code:  (-6)\n"
    )
    incident = told(handler)
    assert incident.verdict.category is Category.NCCL
    assert "failed to unpack rendezvous remote key" in _said(incident)
    disk = "Traceback (most recent call last):\n  File \"train.py\", line 9, in save\n    f.flush()\nOSError: [Errno 5] Input/output error\n"
    assert told(disk).verdict.category is Category.STORAGE


IMPORT = (
    "/opt/py/site-packages/geom/typing.py:63: UserWarning: An issue occurred while importing 'geom-scatter'. Disabling its usage. "
    "Stacktrace: /opt/py/site-packages/geom_scatter/_version_cpu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs\n"
)


def test_a_library_that_a_warning_does_without_is_no_failure(told: Told) -> None:
    assert told(IMPORT + PROGRESS).status is Status.HEALTHY
    error = "Traceback (most recent call last):\n  File \"train.py\", line 9, in main\n    fit()\nRuntimeError: bucket 7 has no samples\n"
    incident = told(IMPORT + error)
    assert incident.verdict.category is not Category.VERSION_MISMATCH and "bucket 7" in _said(incident)
    loader = "python: symbol lookup error: /opt/lib/_version_cpu.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationESs\n"
    assert told(loader).verdict.category is Category.VERSION_MISMATCH


@pytest.mark.parametrize(
    "line",
    [
        "CondaError: Run 'conda init' before 'conda deactivate'",
        "slurmstepd-node7: error: couldn't chdir to `/data/run7': No such file or directory: going to /tmp instead",
    ],
)
def test_errors_that_a_job_shrugs_off(told: Told, line: str) -> None:
    assert told(f"{line}\n{PROGRESS}").status is Status.HEALTHY
    assert told(f"{line}\n").status is not Status.HEALTHY
    error = "Traceback (most recent call last):\n  File \"train.py\", line 2, in <module>\n    import geom\nModuleNotFoundError: No module named 'geom'\n"
    assert told(f"{line}\n{error}").verdict.category is Category.MISSING_LIBRARY


def test_a_fabric_event_that_changes_nothing_is_no_failure(told: Told) -> None:
    warn = "node7:5021:5386 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : "
    assert told(warn + "client reregistration\n").status is Status.HEALTHY
    assert told(warn + "local work queue catastrophic error\n").verdict.category is Category.NCCL


REMOTE = (
    "(raylet) Traceback (most recent call last):\n"
    '  File "python/ray/_raylet.pyx", line 2276, in ray._raylet.task_execution_handler\n'
    '  File "/opt/py/ray/_private/function_manager.py", line 608, in temporary_actor_method\n'
    "    raise RuntimeError(\n"
    "RuntimeError: The actor with name Pool failed to import on the worker. Its dependencies may be missing in the worker environment{end}\n"
    "\nTraceback (most recent call last):\n"
    '  File "/opt/py/ray/_private/function_manager.py", line 647, in _load_actor_class_from_gcs\n'
    "    actor_class = pickle.loads(pickled_class)\n"
    '  File "/home/me/pool.py", line 3, in <module>\n    import fancy\n'
    "ImportError: /opt/py/fancy.so: undefined symbol: _ZN3c105ErrorC2Ev\n"
)


def test_what_a_sentence_with_a_colon_announces_is_its_cause(told: Told) -> None:
    incident = told(REMOTE.format(end=":"))
    assert incident.primary is not None and incident.primary.root_type == "ImportError"
    assert incident.verdict.category is Category.VERSION_MISMATCH
    apart = told(REMOTE.format(end="."))
    assert apart.primary is not None and apart.primary.root_type == "RuntimeError"


def test_an_exception_named_by_its_class_above_a_torn_traceback(told: Told) -> None:
    record = "[ERROR] - __main__ : Uncaught exception: <class 'trainer.errors.MisconfigurationException'> --> no scheduler for two optimizers\n"
    torn = "Traceback (most recent call last):\n  File \"main.py\", line 34, in <module>\n    main(config)\n  File \"main.py\", line 16, in main\n    trainer.fit(\n"
    incident = told(record + torn)
    assert incident.verdict.category is Category.CONFIG_ERROR
    assert incident.primary is not None and incident.primary.type == "trainer.errors.MisconfigurationException"
    assert told("[INFO] - registry: <class 'trainer.models.Net'> --> two heads\n" + PROGRESS).status is Status.HEALTHY


def test_a_pasted_traceback_without_its_head_keeps_its_exception(told: Told) -> None:
    pasted = '        File "/opt/py/torch/nn/modules/linear.py", line 114, in forward\n          return F.linear(input, self.weight, self.bias)\n'
    incident = told(pasted + "      RuntimeError: expected scalar type Half but found Float\n")
    assert incident.verdict.category is Category.SHAPE_OR_DTYPE_ASSERT
    deeper = told(pasted + "            RuntimeError: expected scalar type Half but found Float\n")
    assert deeper.verdict.category is Category.UNKNOWN


def test_a_refused_argument_is_not_the_heading_of_the_next_programs_traceback(told: Told) -> None:
    refused = "usage: train.py [-h] [--workers N]\ntrain.py: error: argument --workers: expected one argument\n"
    stopped = "Traceback (most recent call last):\n  File \"caption.py\", line 5, in <module>\n    import timm\nKeyboardInterrupt\n"
    incident = told(refused + stopped)
    assert incident.verdict.category is Category.CONFIG_ERROR
    assert incident.primary is not None and incident.primary.type != "KeyboardInterrupt"
    assert told(stopped).verdict.category is Category.KILLED_EXTERNALLY


def _raised(frames: str, line: str) -> str:
    return f"Traceback (most recent call last):\n{frames}{line}\n"


@pytest.mark.parametrize(
    ("function", "file", "phase"),
    [
        ("decode", "/home/me/vae.py", None),
        ("prefill", "/home/me/buckets.py", None),
        ("decode", "/opt/py/site-packages/sglang/srt/managers/scheduler.py", "decode"),
        ("_batch_encode_plus", "/opt/py/site-packages/transformers/tokenization_utils_fast.py", None),
        ("_from_pretrained", "/opt/py/site-packages/transformers/tokenization_utils_base.py", "startup"),
    ],
)
def test_a_name_of_many_things_is_no_phase(told: Told, function: str, file: str, phase: str | None) -> None:
    frames = f'  File "/home/me/data.py", line 7, in rows\n    x = f(row)\n  File "{file}", line 9, in {function}\n    y = x[3]\n'
    incident = told(_raised(frames, "IndexError: list index out of range"))
    assert incident.primary is not None and incident.primary.phase == phase


def test_an_object_of_another_type_is_no_setting(told: Told) -> None:
    frames = '  File "/home/me/eval.py", line 155, in tokenize\n    mask = torch.ones_like(ids)\n'
    wrong = told(_raised(frames, "TypeError: ones_like(): argument 'input' (position 1) must be Tensor, not BatchEncoding"))
    assert wrong.verdict.category is Category.USER_CODE
    setting = told(_raised(frames, "ValueError: argument 'rank' must be a power of two"))
    assert setting.verdict.category is Category.CONFIG_ERROR


def test_start_up_alone_is_an_unproven_good_run(told: Told) -> None:
    line = "Horovod initialized. Hostname node7, pid 4021, rank 2 / size 4, local rank 0 / local size 1.\n"
    verdict = told(line).verdict
    assert verdict.category is Category.NONE and verdict.confidence is Confidence.HYPOTHESIS and verdict.evidence
    assert not told("a note about Horovod\n").verdict.evidence


def test_two_ranks_that_raise_alike_are_two_failures(told: Told) -> None:
    cut = "[rank4]: AssertionError: bucket 7 has no samples\n"
    whole = (
        "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/home/me/train.py\", line 7, in main\n[rank3]:     fit()\n"
        "[rank3]: AssertionError: bucket 7 has no samples\n"
    )
    verdict = told(cut + whole).verdict
    assert verdict.rank is not None and verdict.rank.number == 4
    echoed = told("AssertionError: bucket 7 has no samples\n" + whole).verdict
    assert echoed.rank is not None and echoed.rank.number == 3


def test_a_ranks_nccl_words_belong_to_its_exception(told: Told) -> None:
    lines = (
        "torch.distributed.DistBackendError: NCCL error in: /src/ProcessGroupNCCL.cpp:3699, remote process exited, NCCL version 2.27.3",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "Last error:",
        "socketPollConnect: connect to 10.0.2.7<40277> returned Connection refused, exceeded error retry count after 35 attempts",
    )
    incident = told("".join(f"[rank0]: {line}\n" for line in lines))
    assert incident.primary is not None and incident.primary.type == "torch.distributed.DistBackendError"
    assert "35 attempts" in _said(incident)


def test_tasks_that_could_not_be_launched(told: Told) -> None:
    failed = told("srun: error: task 0 launch failed: Error configuring interconnect\n")
    assert failed.status is not Status.HEALTHY and "Error configuring interconnect" in _said(failed)
    assert failed.verdict.category is Category.CONFIG_ERROR and failed.verdict.title.startswith("Slurm could not launch")
    assert told("srun: launch failed over to node 8: continuing\n" + PROGRESS).status is Status.HEALTHY


def test_a_good_run_shows_the_work_it_did(told: Told) -> None:
    verdict = told(PROGRESS).verdict
    assert verdict.category is Category.NONE and verdict.evidence and "step 122" in verdict.evidence[0].quote


def test_an_allocation_larger_than_the_device(told: Told) -> None:
    words = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: "
    assert told(words + "Allocation (size=85899345920) would exceed memory (size=17179869184) :: #allocation7\n").verdict.category is Category.OOM_GPU
    assert told(words + "Too many open streams\n").verdict.category is not Category.OOM_GPU
