"""Settings as engines print and people type them."""

from __future__ import annotations

import pytest

from forensics.ingest import read
from forensics.knowledge import collect, commands_from, settings_from
from forensics.knowledge.settings.reprs import pairs
from forensics.model import Setting
from tests.knowledge.logs import intake_of


def values(text: str, how: str = "asked") -> dict[str, str | None]:
    """Name -> value; the draft's names with "draft:" before them."""
    found: dict[str, str | None] = {}
    for s in settings_from(intake_of(text)):
        if s.how == how:
            found.setdefault(("draft:" if s.component == "draft_model" else "") + s.name, s.value)
    return found


def test_server_args_with_target_and_draft() -> None:
    found = values(
        "[2026-01-05 10:00:00] server_args=ServerArgs(model_path='org/Model-NVFP4', tp_size=4, quantization=None, moe_runner_backend='triton', "
        "attention_backend='flashinfer', speculative_algorithm='EAGLE', speculative_moe_runner_backend='triton', speculative_draft_model_path=None, "
        "cuda_graph_bs=[1, 2, 4], json_model_override_args='{\"a\": 1}', unknown_key=3)"
    )
    assert found["model"] == "org/Model-NVFP4"
    assert found["tensor_parallel_size"] == "4"
    assert found["moe_runner_backend"] == "triton"
    assert found["draft:moe_runner_backend"] == "triton"
    assert found["quantization"] is None
    assert "unknown_key" not in found


def test_a_draft_setting_names_its_component_and_spelling() -> None:
    found = settings_from(
        intake_of("ServerArgs(model_path='m', speculative_moe_runner_backend='auto', moe_runner_backend='triton')")
    )
    target = next(s for s in found if s.name == "moe_runner_backend" and s.component == "target_model")
    draft = next(s for s in found if s.name == "moe_runner_backend" and s.component == "draft_model")
    assert (target.value, draft.value, draft.spelled) == ("triton", "auto", "speculative_moe_runner_backend")
    assert found.index(target) < found.index(draft)


def test_vllm_forms() -> None:
    found = values(
        "INFO 01-05 10:00:00 [utils.py:233] non-default args: {'model': 'm', 'max_model_len': 1024, 'chat_template': \"{% if x['role'] == 'a' %}\", 'dtype': 'half'}"
    )
    assert found == {"model": "m", "max_model_len": "1024", "dtype": "half"}
    line = (
        "INFO 01-05 10:00:00 [core.py:76] Initializing a V1 LLM engine (v0.20.0) with config: model='m', speculative_config=SpeculativeConfig(method='eagle3', "
        "model='d', num_spec_tokens=3, moe_backend='triton'), tensor_parallel_size=2, quantization=None, kernel_config=KernelConfig(moe_backend='auto'), "
        'compilation_config={"cudagraph_mode": "FULL", "level": 3}'
    )
    resolved = values(line, "resolved")
    assert resolved["tensor_parallel_size"] == "2"
    assert resolved["moe_runner_backend"] == "auto"
    assert resolved["draft:moe_runner_backend"] == "triton"
    assert resolved["speculative_num_draft_tokens"] == "3"
    assert resolved["quantization"] is None
    assert (
        values("api_server.py:841] args: Namespace(host=None, model='m', tensor_parallel_size=8)")[
            "tensor_parallel_size"
        ]
        == "8"
    )


def test_megatron_argument_list() -> None:
    text = "using world size: 64, data-parallel-size: 1, tensor-model-parallel size: 4, pipeline-model-parallel size: 16 \n"
    text += "------------------------ arguments ------------------------\n  bf16 ............................................ True\n"
    text += (
        "  tensor_model_parallel_size ...................... 4\n  some_other ...................................... 1\n"
    )
    assert values(text)["bf16"] == "True"
    assert values(text)["tensor_parallel_size"] == "4"
    assert collect(intake_of(text), []).world_size == 64


COMMANDS = [
    ("$ NCCL_DEBUG=INFO python -m sglang.launch_server --model-path m --tp 4 \\\n    --moe-runner-backend triton \\\n    --speculative-moe-runner-backend=auto\nready",
     {"model": "m", "tensor_parallel_size": "4", "moe_runner_backend": "triton", "draft:moe_runner_backend": "auto", "NCCL_DEBUG": "INFO"}),
    ("vllm serve org/m --tensor-parallel-size 2 --enforce-eager -q awq", {"model": "org/m", "tensor_parallel_size": "2", "enforce_eager": "True", "quantization": "awq"}),
    ("+ torchrun --nproc_per_node=8 --nnodes 2 train.py --bf16 --lr 1e-4", {"nproc_per_node": "8", "nnodes": "2", "bf16": "True", "learning_rate": "1e-4"}),
    ("docker run --gpus all -e VLLM_USE_V1=0 vllm/vllm-openai:v0.10.2 --model m -tp 2", {"VLLM_USE_V1": "0", "model": "m", "tensor_parallel_size": "2"}),
    ("SGLang server arguments: --model=m --tp=8 --attention-backend=fa3", {"model": "m", "tensor_parallel_size": "8", "attention_backend": "fa3"}),
    ("./llama-server -m model.gguf -ngl 99 -c 8192 --split-mode row", {"model": "model.gguf", "num_gpu_layers": "99", "split_mode": "row"}),
    ("srun --nodes=4 --ntasks-per-node=8 python train.py --fp16", {"nnodes": "4", "nproc_per_node": "8", "fp16": "True"}),
    ("+ bash -c 'nohup python3 -m vllm.entrypoints.openai.api_server --model '\\''/models/m'\\'' --tensor-parallel-size 4'", {"model": "/models/m", "tensor_parallel_size": "4"}),
    ("trtllm-serve m --tp_size 4 --backend pytorch", {"model": "m", "tensor_parallel_size": "4", "engine_backend": "pytorch"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), COMMANDS, ids=[c[0][:24] for c in COMMANDS])
def test_launch_commands(text: str, wanted: dict[str, str]) -> None:
    found = values(text)
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    "run",
    [
        "-m deepspeed.launcher.launch",
        "-u -m deepspeed.launcher.launch",
        "-u -m torch.distributed.run",
        "-X dev -u -m vllm.entrypoints.openai.api_server",
        "-W ignore -m sglang.launch_server",
    ],
)
def test_the_module_that_python_runs_is_no_model(run: str) -> None:
    found = values(f"$ /usr/bin/python3 {run} --tensor-parallel-size 2")
    assert found["tensor_parallel_size"] == "2" and "model" not in found


def test_a_command_is_quoted_as_typed() -> None:
    command = commands_from(intake_of("$ CUDA_VISIBLE_DEVICES=0,1 vllm serve m --dtype half 2>&1 | tee x.log"))[0]
    assert command.text == "CUDA_VISIBLE_DEVICES=0,1 vllm serve m --dtype half"
    assert command.variables == {"CUDA_VISIBLE_DEVICES": "0,1"}
    facts = collect(intake_of("a\n$ vllm serve m \\\n  --dtype half\nb"), [])
    assert facts.command == "vllm serve m --dtype half"
    assert facts.command_span is not None and (facts.command_span.first_line, facts.command_span.last_line) == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "please run vllm serve again",
        "usage: sglang serve --model-path <model> [options]",
        "srun: error: node1: task 3: Exited with exit code 1",
        "torchrun failed",
    ],
)
def test_prose_is_no_command(text: str) -> None:
    assert commands_from(intake_of(text)) == []


def test_advice_is_no_setting() -> None:
    text = "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable\nplease set NCCL_DEBUG=INFO for details"
    assert values(text) == {}
    assert values("export NCCL_DEBUG=INFO\nNCCL INFO NCCL_IB_DISABLE set by environment to 1.") == {
        "NCCL_DEBUG": "INFO",
        "NCCL_IB_DISABLE": "1",
    }


def test_a_pattern_that_puts_a_variable_into_a_script_is_no_setting() -> None:
    text = "+ sed -i s/__V__/export VLLM_ATTENTION_BACKEND=.*|export VLLM_ATTENTION_BACKEND=FLASHINFER/ start.sh"
    assert values(text).get("attention_backend", "FLASHINFER") == "FLASHINFER"


def test_an_environment_variable_that_is_a_setting() -> None:
    found = settings_from(intake_of("export VLLM_ATTENTION_BACKEND=FLASHINFER"))
    assert [(s.name, s.component, s.spelled) for s in found] == [
        ("attention_backend", "target_model", "VLLM_ATTENTION_BACKEND")
    ]


def test_resolved_lines() -> None:
    text = """[2026-01-05 10:00:01 TP0] Use flashinfer_trtllm_routed as MoE runner backend for DeepseekV4ForCausalLM hybrid FP8+NVFP4 checkpoint.
[2026-01-05 10:00:02 TP0] Attention backend not specified. Use flashinfer backend by default.
[2026-01-05 10:00:03 TP0] Overriding draft attention backend to triton."""
    found = [(s.name, s.value, s.component, s.how) for s in settings_from(intake_of(text))]
    assert ("moe_runner_backend", "flashinfer_trtllm_routed", None, "resolved") in found
    assert ("attention_backend", "flashinfer", "target_model", "resolved") in found
    assert ("attention_backend", "triton", "draft_model", "resolved") in found


def test_a_choice_made_for_the_draft_is_the_drafts() -> None:
    text = """INFO Using 'FLASHINFER_CUTLASS' NvFp4 MoE backend out of potential backends: ['A']
INFO Loading drafter model...
INFO Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['A']
INFO Using FlashAttention version 3"""
    found = [(s.value, s.component) for s in settings_from(intake_of(text))]
    assert found == [("FLASHINFER_CUTLASS", "target_model"), ("MARLIN", "draft_model"), ("3", "draft_model")]


@pytest.mark.parametrize(
    ("text", "world"),
    [
        ("world_size=8 rank=0 local_rank=0 distributed_init_method=tcp://h:1 backend=nccl", 8),
        ("ServerArgs(model_path='m', tp_size=4, pp_size=2, dp_size=1)", 8),
        ("ServerArgs(model_path='m', tp_size=8, dp_size=8, enable_dp_attention=True)", 8),
        ("torchrun --nproc_per_node=8 --nnodes 2 train.py --bf16", 16),
        ("step 1 loss 2", None),
    ],
)
def test_world_size(text: str, world: int | None) -> None:
    assert collect(intake_of("sglang.srt\n" + text if "ServerArgs" in text else text), []).world_size == world


@pytest.mark.parametrize(
    "text",
    [
        "ServerArgs(" + "(" * 50_000,
        "ServerArgs(a='" + "\\'" * 50_000,
        "Namespace(" + "a=1," * 30_000,
        "args: {'" * 5_000,
    ],
)
def test_torn_and_hostile_dumps_end(text: str) -> None:
    assert isinstance(settings_from(intake_of(text)), tuple)


def test_members_of_a_repr() -> None:
    text = "a=1, b='x, y', c=[1, (2, 3)], d=F(e=5), g=\"it's\", h=<E.A: 'v'>, i=None)rest, j=1"
    assert dict(pairs(text)) == {
        "a": "1",
        "b": "x, y",
        "c": "[1, (2, 3)]",
        "d": "F(e=5)",
        "g": "it's",
        "h": "v",
        "i": "None",
    }
    assert list(pairs("a='never closed")) == [("a", "'never closed")]


def test_settings_are_records() -> None:
    assert all(
        isinstance(s, Setting) and s.span.first_line == 1 for s in settings_from(intake_of("vllm serve m --dtype half"))
    )


def test_of_ranks_of_which_some_are_missing_the_highest_is_not_the_last() -> None:
    def of(*ranks: int) -> str:
        return "".join(f"[rank{n}]: device 0: NVIDIA GH200 120GB\n" for n in ranks)

    whole = collect(read([of(0, 1, 2, 3).encode()], []), [])
    assert whole.world_size == whole.at_least == 4 and whole.gpu is not None and whole.gpu.count == 4
    torn = collect(read([of(0, 8, 28).encode()], []), [])
    assert torn.world_size is None and torn.at_least == 29 and torn.gpu is not None and torn.gpu.count is None
