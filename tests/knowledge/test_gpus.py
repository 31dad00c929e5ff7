"""GPU names and what runs where."""

from __future__ import annotations

import pytest

from forensics.errors import UsageError
from forensics.knowledge import can_run, chip, chips, find_gpu, gpu_named, parse_target, products, runs_on


@pytest.mark.parametrize(
    ("text", "sms"),
    [
        ("RTX PRO 6000", ["sm_120"]), ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", ["sm_120"]), ("H100", ["sm_90"]),
        ("NVIDIA_H100_80GB_HBM3", ["sm_90"]), ("h100 80gb hbm3", ["sm_90"]), ("sm_120", ["sm_120"]), ("12.0", ["sm_120"]), ("120", ["sm_120"]),
        ("compute capability 8.6", ["sm_86"]), ("CUDA arch 12.1", ["sm_121"]), ("gfx942", ["gfx942"]), ("gfx942:sramecc+:xnack-", ["gfx942"]),
        ("MI300X", ["gfx942"]), ("AMD Instinct MI355X", ["gfx950"]), ("Radeon RX 9070 XT", ["gfx1201"]), ("4090", ["sm_89"]),
        ("RTX 3070 Laptop GPU", ["sm_86"]), ("Tesla V100-SXM2-16GB", ["sm_70"]), ("A100-SXM4-80GB MIG 3g.40gb", ["sm_80"]), ("GB10", ["sm_121"]),
        ("DGX Spark", ["sm_121"]), ("B200", ["sm_100"]), ("GB300", ["sm_103"]), ("Rubin", ["sm_107"]), ("Jetson AGX Thor", ["sm_110"]),
        ("sm_101", ["sm_110"]), ("Hopper", ["sm_90"]), ("RTX A6000", ["sm_86"]), ("RTX 6000 Ada", ["sm_89"]), ("Quadro RTX 6000", ["sm_75"]),
        ("RTX 6000", ["sm_75", "sm_89", "sm_120"]), ("Blackwell", ["sm_100", "sm_110", "sm_120", "sm_121"]), ("T4", ["sm_75"]), ("L40S", ["sm_89"]),
        ("H20", ["sm_90"]), ("xyz", []), ("", []), ("NVIDIA", []), ("sm_999", []), ("a" * 500, []),
    ],
)  # fmt: skip
def test_a_typed_name_means(text: str, sms: list[str]) -> None:
    assert [gpu.sm for gpu in find_gpu(text)] == sms


def test_every_product_is_found_by_each_of_its_spellings() -> None:
    for product in products():
        for spelling in product.spellings:
            assert product.sm in [gpu.sm for gpu in find_gpu(spelling)], spelling


def test_every_product_names_a_chip() -> None:
    known = {row.sm for row in chips()}
    assert {product.sm for product in products()} <= known
    assert len(known) == len(chips())


@pytest.mark.parametrize(
    ("target", "sm", "runs"),
    [
        ("sm_80", "sm_86", True), ("sm_80", "sm_89", True), ("sm_80", "sm_90", False), ("sm_86", "sm_80", False), ("sm_90a", "sm_90", True),
        ("sm_90a", "sm_100", False), ("sm_100", "sm_103", True), ("sm_100a", "sm_103", False), ("sm_100f", "sm_103", True), ("sm_100f", "sm_107", True),
        ("sm_100f", "sm_110", False), ("sm_100f", "sm_120", False), ("sm_103f", "sm_100", False), ("sm_120", "sm_121", True), ("sm_120a", "sm_121", False),
        ("sm_120f", "sm_121", True), ("sm_121a", "sm_120", False), ("compute_80", "sm_120", True), ("compute_90", "sm_80", False), ("compute_90a", "sm_100", False),
        ("compute_100f", "sm_103", True), ("compute_100f", "sm_120", False), ("9.0+PTX", "12.0", True), ("gfx942", "gfx942:sramecc+", True), ("gfx942", "gfx950", False),
        ("sm_90", "gfx942", False), ("sm_101a", "sm_110", True),
    ],
)  # fmt: skip
def test_what_loads_where(target: str, sm: str, runs: bool) -> None:
    assert can_run(target, sm) is runs


def test_a_wrong_architecture_is_refused() -> None:
    with pytest.raises(UsageError, match="no GPU architecture"):
        can_run("hopper", "sm_90")
    assert parse_target("sm_9") is None
    assert parse_target("100f") == parse_target("sm_100f")
    assert str(parse_target("9.0a+PTX")) == "compute_90a"


def test_targets_keep_the_order_of_the_gpus() -> None:
    assert runs_on(("sm_100f", "nonsense"), ("sm_103", "sm_90", "sm_100")) == ("sm_103", "sm_100")
    assert runs_on((), ("sm_90",)) == ()


def test_chip_facts() -> None:
    blackwell = chip("sm_120a")
    assert blackwell is not None
    assert (blackwell.smem_optin_bytes, blackwell.capability, blackwell.vendor) == (101376, "12.0", "nvidia")
    assert "tcgen05" in blackwell.lacks
    hopper = chip("9.0")
    assert hopper is not None and hopper.family == "Hopper"
    assert chip("gfx942:sramecc+").vendor == "amd"  # type: ignore[union-attr]
    assert chip("sm_33") is None


def test_a_driver_name_is_kept_as_printed() -> None:
    gpu = gpu_named("NVIDIA H100 80GB HBM3")
    assert gpu is not None and (gpu.name, gpu.sm) == ("NVIDIA H100 80GB HBM3", "sm_90")
    assert gpu_named("RTX 6000") is None
