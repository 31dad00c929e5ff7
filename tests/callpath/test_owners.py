"""Whose code a frame is."""

from __future__ import annotations

import pytest

from forensics.callpath import of_client, owner_of
from forensics.data import table
from forensics.model.stack import Frame
from forensics.model.verdict import Owner

PACKAGES = "/usr/local/lib/python3.12/dist-packages/"


@pytest.mark.parametrize(
    ("frame", "owner"),
    [
        (Frame("forward", PACKAGES + "vllm/model_executor/models/llama.py"), Owner.ENGINE),
        (Frame("forward", "/sgl-workspace/sglang/python/sglang/srt/models/qwen2.py"), Owner.ENGINE),
        (Frame("main", "/home/me/vllm/train.py"), Owner.USER),
        (Frame("main", "/home/me/vllm/examples/offline.py"), Owner.USER),
        (Frame("trtllm_fp4_block_scale_moe", PACKAGES + "flashinfer/fused_moe/core.py"), Owner.KERNEL_LIBRARY),
        (Frame("linear", PACKAGES + "torch/nn/functional.py"), Owner.FRAMEWORK),
        (Frame("linear", "torch/nn/functional.py"), Owner.FRAMEWORK),
        (Frame("f", PACKAGES + "some_package_nobody_knows/x.py"), Owner.FRAMEWORK),
        (Frame("_bootstrap", "/usr/lib/python3.12/multiprocessing/process.py"), Owner.RUNTIME),
        (Frame("_run_module_as_main", "<frozen runpy>"), Owner.RUNTIME),
        (Frame("main", r"C:\work\train.py"), Owner.USER),
        (Frame("__getattr__", r"C:\Users\me\AppData\Local\Programs\Python\Python311\Lib\ctypes\__init__.py"), Owner.RUNTIME),
        (Frame("run", r"C:\Users\me\miniconda3\envs\llm\lib\threading.py"), Owner.RUNTIME),
        (Frame("run", r"D:\app\python_embeded\python311.zip\threading.py"), Owner.RUNTIME),
        (Frame("forward", r"C:\Users\me\miniconda3\envs\llm\lib\site-packages\torch\nn\functional.py"), Owner.FRAMEWORK),
        (Frame("main", r"C:\Users\me\python\lib_tests\train.py"), Owner.USER),
        (Frame("c10::Error::Error(c10::SourceLocation)", module="/usr/lib/libc10.so"), Owner.FRAMEWORK),
        (Frame("??", module="/usr/lib/x86_64-linux-gnu/libcuda.so.1"), Owner.DRIVER),
        (Frame("ncclGroupEnd", module="/usr/lib/libnccl.so.2"), Owner.KERNEL_LIBRARY),
        (Frame("llama_decode", module="/opt/libllama.so.0"), Owner.ENGINE),
        (Frame("_nv012454rm+0x437/0x4b0 [nvidia]"), Owner.DRIVER),
        (Frame("f", "train.py"), Owner.USER),
    ],
)
def test_owner(frame: Frame, owner: Owner) -> None:
    assert owner_of(frame) is owner


def test_exceptions_of_libraries_that_speak_to_services() -> None:
    rows = table("frames/owners")["clients"]
    assert rows["packages"] and all(not name.endswith(".") for name in rows["packages"])
    assert all(of_client(name) for name in rows["examples"])
    assert not any(of_client(name) for name in rows["counterexamples"])
