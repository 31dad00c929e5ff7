# ruff: noqa: E501  (a pattern stands on one line, to be held against the line it reads)
"""CUDA, cuDNN, cuBLAS and HIP errors that a program printed without a traceback. In: an intake; out: DEVICE_ERROR events whose
type is the status name. Samples:

    [rank2]:[E1129 20:17:00.1 ProcessGroupNCCL.cpp:2119] [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered
    CUDA error at /src/kernel.cu:33 code=700(cudaErrorIllegalAddress) "cudaDeviceSynchronize()"
    CUDA Runtime Error: an illegal memory access was encountered
    E external/xla/xla/stream_executor/cuda/cuda_driver.cc:1136] failed to unload module: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure
    -> DEVICE_ERROR type "cudaErrorIllegalAddress" or "CUDA_ERROR_LAUNCH_FAILED", message from the error on

Lines that a Python exception begins with ("RuntimeError: CUDA error: …") and what() texts belong to other parsers.
Status names: CUDA runtime API, driver_types.h (cudaGetErrorString texts).
"""

from __future__ import annotations

from forensics.ingest.anchors import Anchor
from forensics.ingest.intake import Intake
from forensics.model.event import Event, EventKind
from forensics.parse.groups import rank_in
from forensics.parse.reading import Lazy, clipped, fold, following, hits, make

#: what cudaGetErrorString says -> the status
TEXTS: dict[str, str] = {
    "an illegal memory access was encountered": "cudaErrorIllegalAddress",
    "misaligned address": "cudaErrorMisalignedAddress",
    "unspecified launch failure": "cudaErrorLaunchFailure",
    "device-side assert triggered": "cudaErrorAssert",
    "an illegal instruction was encountered": "cudaErrorIllegalInstruction",
    "invalid program counter": "cudaErrorInvalidPc",
    "operation not supported on global/shared address space": "cudaErrorInvalidAddressSpace",
    "the launch timed out and was terminated": "cudaErrorLaunchTimeout",
    "too many resources requested for launch": "cudaErrorLaunchOutOfResources",
    "no kernel image is available for execution on the device": "cudaErrorNoKernelImageForDevice",
    "invalid device function": "cudaErrorInvalidDeviceFunction",
    "the provided PTX was compiled with an unsupported toolchain": "cudaErrorUnsupportedPtxVersion",
    "device kernel image is invalid": "cudaErrorInvalidKernelImage",
    "uncorrectable ECC error encountered": "cudaErrorECCUncorrectable",
    "uncorrectable NVLink error detected during the execution": "cudaErrorNvlinkUncorrectable",
    "unspecified driver error": "cudaErrorDeviceUninitialized",
    "system not yet initialized": "cudaErrorSystemNotReady",
    "system has unsupported display driver / cuda driver combination": "cudaErrorSystemDriverMismatch",
    "CUDA driver version is insufficient for CUDA runtime version": "cudaErrorInsufficientDriver",
    "no CUDA-capable device is detected": "cudaErrorNoDevice",
    "invalid device ordinal": "cudaErrorInvalidDevice",
    "CUDA-capable device(s) is/are busy or unavailable": "cudaErrorDevicesUnavailable",
    "out of memory": "cudaErrorMemoryAllocation",
    "initialization error": "cudaErrorInitializationError",
    "driver shutting down": "cudaErrorCudartUnloading",
    "peer access is not supported between these two devices": "cudaErrorPeerAccessUnsupported",
    "invalid configuration argument": "cudaErrorInvalidConfiguration",
    "invalid resource handle": "cudaErrorInvalidResourceHandle",
    "operation not permitted when stream is capturing": "cudaErrorStreamCaptureUnsupported",
    "operation failed due to a previous error during capture": "cudaErrorStreamCaptureInvalidated",
    "an exception occurred on the device": "cudaErrorLaunchFailure",
    "Invalid access of peer GPU memory over nvlink or a hardware error": "cudaErrorTensorMemoryLeak",
    "invalid argument": "cudaErrorInvalidValue",
    "unknown error": "cudaErrorUnknown",
}

#: the statuses that HIP calls by another name than CUDA's with "hip" for "cuda"
_HIP = {
    "cudaErrorMemoryAllocation": "hipErrorOutOfMemory",
    "cudaErrorInvalidResourceHandle": "hipErrorInvalidHandle",
    "cudaErrorNoKernelImageForDevice": "hipErrorNoBinaryForGpu",
    "cudaErrorInvalidKernelImage": "hipErrorInvalidImage",
    "cudaErrorLaunchOutOfResources": "hipErrorLaunchOutOfResources",
    "cudaErrorLaunchTimeout": "hipErrorLaunchTimeOut",
    "cudaErrorECCUncorrectable": "hipErrorECCNotCorrectable",
    "cudaErrorInitializationError": "hipErrorNotInitialized",
}

_LITERALS = (
    "CUDA error",
    "CUDA Error",
    "Cuda error",
    "CUDA Runtime Error",
    "cudaError",
    "CUDA_ERROR_",
    "HIP error",
    "hipError",
    "CUDNN_STATUS_",
    "CUBLAS_STATUS_",
    "CUDA driver error",
    "CUDA runtime error",
    "CUDA failure",
    "Cuda Error",
    "cuda error",
    "CURAND_STATUS_",
    "CUFFT_",
    "CUSPARSE_STATUS_",
    "CUSOLVER_STATUS_",
    "GPUassert: ",
)

ANCHORS: tuple[Anchor, ...] = tuple(Anchor(text.encode(), 1, 6, "device_error") for text in _LITERALS)

_NAME = Lazy(
    r"\b(cudaError[A-Z]\w{2,60}|CUDA_ERROR_\w{2,60}|hipError[A-Z]\w{2,60}|(?:CUDNN|CUBLAS|CURAND|CUSPARSE|CUSOLVER)_STATUS_\w{2,60}|CUFFT_(?:INVALID|ALLOC|INTERNAL|EXEC|SETUP|UNALIGNED|INCOMPLETE|PARSE|NO_WORKSPACE|NOT|LICENSE|MISSING|NVRTC|NVJITLINK|NVSHMEM)\w{0,40})"
)
_FROM = Lazy(
    r"(?i)(?:GPUassert: |(?:CUDA|HIP)(?: runtime| driver)? (?:error|failure)|cudaError|CUDA_ERROR|hipError|CUDNN_|CUBLAS_|CUSPARSE_|CUSOLVER_|CURAND_|CUFFT_)"
)
#: a Python exception's own line, a what(), code of a traceback, documentation links, ggml's and TensorRT-LLM's lines; cuda-gdb's warnings of
#: what every program asks before it has a context
_ELSEWHERE = Lazy(
    r"^\s*(?:[\w.]{0,80}(?:Error|Exception|Warning): |what\(\):|File \"|frame #|raise |if |return |self\.|#|\d+ {3,}0x|Accelerator Fatal Error: |Search for `|For debugging|Compile with|CUDA kernel errors|HIP kernel errors)"
    r"|\[TensorRT-LLM\]|torch\.\w{0,30}Error|(?:Error|Exception)\((?:'|\")?CUDA|docs\.nvidia\.com|current device: |unhandled cuda error|^\s*warning: Cuda Driver error detected: "
)
#: HIP's own words for itself, and a library's before them that name the call: "fail to call hipModuleLaunchKernel(…) ---> [HIP error](…)"
_IS_HIP = Lazy(r"\bHIP (?:runtime )?(?:error|failure)|\bhip[A-Z]\w{2,60}\(")
_CALLED = Lazy(r"\bfail(?:ed)? to call (?:hip|cu|cuda)[A-Z]\w{2,60}\(")
#: a library's own tag, which its exceptions carry too: "[TM][ERROR] CUDA runtime error: …"
_TAG = Lazy(r"\s{0,8}\[[A-Z]{2,8}\] ?\[(?:ERROR|FATAL)\] ?$")
#: a variable of the environment, as `env` and `set -x` print it; in small letters it may be a program's word: "status=CUDA_ERROR_…"
_VARIABLE = Lazy(r"\s{0,8}(?:\++ )?(?:(?:export |declare -x )[A-Za-z_]\w{2,100}|[A-Z_][A-Z0-9_]{2,100})=")
_GGML = Lazy(r"(?:^|: )(?:CUDA|ROCm) error\s*$")
_SUCCESS = ("cudaSuccess", "CUDA_SUCCESS", "STATUS_SUCCESS", "hipSuccess", "NCCL WARN", "NCCL INFO")


def parse(intake: Intake) -> list[Event]:
    """Runtime and library statuses outside of tracebacks, alike ones folded."""
    events = []
    for index in hits(intake, *_LITERALS):
        line = intake.lines[index]
        text = clipped(line.text, "rror")
        if (
            " called after throwing" in text
            or _ELSEWHERE.search(text)
            or _GGML.search(text)
            or _VARIABLE.match(text)
            or ("_STATUS_" not in text and "cudaError_t" in text)
        ):
            continue
        if any(word in line.raw[:CLIP_HEAD] for word in _SUCCESS[-2:]) or any(word in text for word in _SUCCESS[:4]):
            continue
        if any("current device: " in other.text for _, other in following(intake, index, 3)):
            continue  # ggml's own report
        start = _FROM.search(text)
        status = _status(text)
        if start is None or (status is None and ":" not in text[start.start() : start.start() + 40]):
            continue
        if status is None and not _serious(line.level, text):
            continue
        called = _CALLED.search(text[: start.start()])
        begin = called.start() if called else 0 if _TAG.match(text[: start.start()]) else start.start()
        events.append(
            make(
                EventKind.DEVICE_ERROR,
                line,
                parser="device_error",
                type=status,
                message=text[begin:],
                rank=rank_in(text, line),
            )
        )
    return fold(events)


#: how much of a raw line may hold NCCL's prefix
CLIP_HEAD = 300


def _status(text: str) -> str | None:
    """The status a text names, or the one that its words stand for."""
    named = _NAME.search(text)
    if named:
        return str(named[1])
    name = next((name for words, name in TEXTS.items() if words in text), None)
    if name is not None and _IS_HIP.search(text):
        return _HIP.get(name, name.replace("cuda", "hip", 1))
    return name


def _serious(level: str | None, text: str) -> bool:
    return level in ("ERROR", "FATAL", "CRITICAL") or text.lstrip().lower().startswith(
        ("cuda error", "cuda runtime error", "cuda failure", "hip error", "gpuassert")
    )
