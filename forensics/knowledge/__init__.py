"""What is true of GPUs, kernels, settings and versions. In: retained lines and events; out: `Facts` and answers. Sample:

    collect(intake, events).gpu      -> Gpu(name="NVIDIA RTX PRO 6000 Blackwell Server Edition", sm="sm_120", …)
    decode_kernel("bmm_…_sm100f")    -> KernelName(op="batched gemm", runs_on=("sm_100", "sm_103", "sm_107"), …)
    can_run("sm_100f", "sm_120")     -> False

The tables are TOML under signatures/facts; they load when first asked for.
"""

from __future__ import annotations

from forensics.knowledge.architectures import Target, can_run, parse_target, runs_on
from forensics.knowledge.collecting import anchors, collect, commands_from, versions_from
from forensics.knowledge.families import (
    Support,
    families,
    families_for_symbol,
    families_on,
    family,
    family_facts,
    supported,
)
from forensics.knowledge.gpus import Chip, Product, chip, chips, find_gpu, gpu_named, gpu_of, products, sms
from forensics.knowledge.kernels import decode_kernel, find_kernels
from forensics.knowledge.settings import Command, canonical, settings_from

__all__ = [
    "Chip", "Command", "Product", "Support", "Target", "anchors", "can_run", "canonical", "chip", "chips", "collect",
    "commands_from", "decode_kernel", "families", "families_for_symbol", "families_on", "family", "family_facts",
    "find_gpu", "find_kernels", "gpu_named", "gpu_of", "parse_target", "products", "runs_on", "settings_from", "sms",
    "supported", "versions_from",
]  # fmt: skip
