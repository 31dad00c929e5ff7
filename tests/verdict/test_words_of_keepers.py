"""What those who keep a job say when it ended: Kubernetes' events and operators, Slurm's job record, Grid Engine, SageMaker, systemd."""

from __future__ import annotations

import pytest

from forensics.model.verdict import Category, Status

from .conftest import Told

STEPS = "".join(f"2026-11-29 20:15:{second:02} INFO loop.py:31 step {second} loss 1.5 grad_norm 0.4\n" for second in range(10, 40))
EVENTS = "Events:\n  Type     Reason     Age   From     Message\n"
EVICTED = (
    "Status:           Failed\nReason:           Evicted\nMessage:          The node was low on resource: {}. Threshold quantity: 20Gi, "
    "available: 17Gi. Container main was using 700Gi, request is 0, has larger consumption of {}.\n"
    "Containers:\n  main:\n    State:          Terminated\n      Reason:       Error\n      Exit Code:    137\n"
)


@pytest.mark.parametrize(
    ("said", "status", "category"),
    [
        (
            "Warning  UnexpectedAdmissionError  3s  kubelet  Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 4, Available: 3, which is unexpected",
            Status.CRASHED,
            Category.DRIVER_OR_HARDWARE,
        ),
        (
            'Warning  FailedCreatePodSandBox  9s  kubelet  Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "c1": no free addresses',
            Status.CRASHED,
            Category.CONFIG_ERROR,
        ),
        ("4m   Warning   NodeNotReady   pod/worker-2   Node is not ready", Status.CRASHED, Category.DRIVER_OR_HARDWARE),
        ("4m   Normal   TaintManagerEviction   pod/worker-2   Marking for deletion Pod lab/worker-2", Status.KILLED, Category.KILLED_EXTERNALLY),
        ("Warning  DeadlineExceeded  3s  job-controller  Job was active longer than specified deadline", Status.KILLED, Category.KILLED_EXTERNALLY),
        ("Warning  BackoffLimitExceeded  3s  job-controller  Job has reached the specified backoff limit", Status.UNKNOWN, Category.UNKNOWN),
        ("    Message:               PyTorchJob gpt is failed because 2 Worker replica(s) failed.", Status.UNKNOWN, Category.UNKNOWN),
        (
            "    Message: Preempted to accommodate a workload (UID: 77fe) due to prioritization in the ClusterQueue",
            Status.KILLED,
            Category.KILLED_EXTERNALLY,
        ),
        (
            'I1129 20:19:01.000000    1402 eviction_manager.go:395] "Eviction manager: must evict pod(s) to reclaim" resourceName="memory"',
            Status.KILLED,
            Category.OOM_HOST,
        ),
        ("   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)", Status.CRASHED, Category.DRIVER_OR_HARDWARE),
        ("   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)", Status.KILLED, Category.KILLED_EXTERNALLY),
        ("   JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null)", Status.KILLED, Category.OOM_HOST),
        ("job 7301 exceeded hard wallclock time - initiate terminate method", Status.KILLED, Category.KILLED_EXTERNALLY),
        ("slurmstepd: error: write /home/ana/run-88.out: Disk quota exceeded", Status.CRASHED, Category.STORAGE),
        ("2026-11-29 20:19:01,101 sagemaker-training-toolkit ERROR    Reporting training FAILURE\nExitCode 137", Status.KILLED, Category.KILLED_EXTERNALLY),
        (
            "systemd[1]: llm.service: start operation timed out. Terminating.\nsystemd[1]: llm.service: Failed with result 'timeout'.",
            Status.KILLED,
            Category.KILLED_EXTERNALLY,
        ),
        (
            "systemd-oomd[512]: Killed /user.slice/user-1001.slice due to memory used (90000) / total (100000) and swap used (9 GB) / total (10 GB) being more than 90.00%",
            Status.KILLED,
            Category.OOM_HOST,
        ),
    ],
)
def test_a_job_that_its_keeper_ended_or_gave_up_is_not_healthy(told: Told, said: str, status: Status, category: Category) -> None:
    events = EVENTS if "  " in said[:40] else ""
    incident = told(STEPS + events + said + "\n")
    assert (incident.status, incident.verdict.category) == (status, category)


@pytest.mark.parametrize(
    "said",
    [
        "4m   Normal   TaintManagerEviction   pod/worker-2   Cancelling deletion of Pod lab/worker-2",
        "4m   Warning   NodeNotReady   pod/worker-2   Node is not ready\n3m   Normal   NodeReady   node/gpu-9   Node gpu-9 status is now: NodeReady",
        "   JobState=RUNNING Reason=None Dependency=(null)",
        'I1129 20:19:01.000000    1402 eviction_manager.go:348] "Eviction manager: attempting to reclaim" resourceName="ephemeral-storage"',
        "systemd[1]: llm.service: Deactivated successfully.",
        "ExitCode 0",
    ],
)
def test_what_a_keeper_says_of_a_job_that_goes_on_is_no_end(told: Told, said: str) -> None:
    assert told(STEPS + said + "\n").status is Status.HEALTHY


@pytest.mark.parametrize(
    ("resource", "category"), [("memory", Category.OOM_HOST), ("ephemeral-storage", Category.STORAGE), ("pids", Category.KILLED_EXTERNALLY)]
)
def test_an_evicted_pod_was_ended_for_what_the_node_was_short_of(told: Told, resource: str, category: Category) -> None:
    incident = told(STEPS + EVICTED.format(resource, resource))
    assert (incident.status, incident.verdict.category) == (Status.KILLED, category)
    assert "low on resource" in incident.verdict.evidence[0].quote


SMI = "|   5  NVIDIA B200                     On  |   00000000:9A:00.0 Off |            {} |\n| {}  |   {} |     {} |\n"


@pytest.mark.parametrize(
    "said",
    [
        SMI.format("    ERR! ", "ERR! ERR!  ERR!           ERR! / ERR!", "  ERR! / 183359MiB", "ERR!         ERR!"),
        "No devices were found\n",
        "| Hardware  GPU Memory      | Fail - GPU: 5                                  |\n",
    ],
    ids=["nvidia-smi", "no devices", "dcgmi"],
)
def test_what_a_tool_sees_of_a_broken_gpu_is_told(told: Told, said: str) -> None:
    incident = told(STEPS + said)
    assert (incident.status, incident.verdict.category) == (Status.CRASHED, Category.DRIVER_OR_HARDWARE)


def test_a_fan_that_cannot_be_read_is_no_failure(told: Told) -> None:
    assert told(SMI.format("      0 ", "ERR!   44C    P0             61W / 1000W", "40213MiB / 183359MiB", "97%      Default") + STEPS).status is Status.HEALTHY
