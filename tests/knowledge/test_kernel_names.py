"""Kernel names: one decoder a grammar. Each row: name, grammar, op, types that must be read, tile, archs."""

from __future__ import annotations

import re

import pytest

from forensics.knowledge import decode_kernel, find_kernels
from forensics.knowledge.kernels import finding
from forensics.knowledge.kernels.cxx import inside, parts, read, shape
from forensics.knowledge.kernels.mangled import demangled
from forensics.knowledge.kernels.marlin import scalar_type

FC1 = (
    "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_bA32_bB32_bC32_t128x16x256u2_s4_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_schedS_"
    "biasM_bN_tma_tmaOpt_clmp_swiGlu_dynBatch_sm100f"
)
NAMES = [
    (FC1, "trtllm_gen_bmm", "batched gemm", {"a": "mxfp4", "b": "mxfp8", "out": "mxfp8", "acc": "fp32"}, (128, 16, 256), ("sm_100f",)),
    ("Bmm_Bfloat16_E2m1E2m1_Fp32_bA16_bB16_t128x32x256u2_s6_et128x32_m128x32x64_cga1x1x1_16dp256b_rM_TN_transOut_schedS_bN_tmaOpt_clmp_dynBatch_sm100f",
     "trtllm_gen_bmm", "batched gemm", {"a": "nvfp4", "b": "nvfp4", "out": "bf16", "acc": "fp32"}, (128, 32, 256), ("sm_100f",)),
    ("bmm_E4m3_E4m3E4m3_Fp32_t128x8x128u2_s4x4x4_et64x8_m64x8x32_c1x1x1_rM_BN_transOut_dsFp8_schPd2x1x2x3_bN_tma_clmp_swiGlu_dynB_sm107a",
     "trtllm_gen_bmm", "batched gemm", {"a": "fp8_e4m3", "b": "fp8_e4m3"}, (128, 8, 128), ("sm_107a",)),
    ("bmm_Bfloat16_MxE2m1Bfloat16_castBfloat16_Fp32_bA32_t128x64x256_s3_et128x64_m128x64x16_cga1x1x1_rM_TN_transOut_schedS_bN_tma_clmp_sm100f",
     "trtllm_gen_bmm", "batched gemm", {"a": "mxfp4", "b": "bf16", "out": "bf16"}, (128, 64, 256), ("sm_100f",)),
    ("gemm_Bfloat16_E4m3E4m3_Fp32_t128x32x128_s9_et128x32_m128x32x32_cga1x1x3_16dp256b_rM_splitK3_BN_transOut_schedS_sm100f",
     "trtllm_gen_gemm", "gemm", {"a": "fp8_e4m3", "out": "bf16"}, (128, 32, 128), ("sm_100f",)),
    ("BatchedGemmKernel_BatchN_E2m1E2m1Fp32_Bfloat16_Tile128x8x512_EpiTile128x8_Mma128x8x64_Cluster1x1x1_transposeMmaOutput_GatedAct_dynamic_sm100a",
     "trtllm_gen_bmm", "batched gemm", {"a": "nvfp4", "b": "nvfp4", "acc": "fp32", "out": "bf16"}, (128, 8, 512), ("sm_100a",)),
    ("fmhaSm100fKernel_QkvE4m3OBfloat16HQk576HV512PagedKvDenseStaticTokenSparseP1VarSeqQ16Kv128PersistentSwapsAbForGen",
     "trtllm_gen_fmha", "attention (decode)", {"q": "fp8_e4m3", "kv": "fp8_e4m3", "out": "bf16"}, (16, 128), ("sm_100f",)),
    ("fmhaSm103aKernel_QE4m3KvE2m1OE4m3H64PagedKvDenseP32VarSeqQ128Kv128PersistentContext",
     "trtllm_gen_fmha", "attention (prefill)", {"q": "fp8_e4m3", "kv": "nvfp4", "out": "fp8_e4m3"}, (128, 128), ("sm_103a",)),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl", "all-reduce", {"a": "bf16"}, (), ()),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl", "all-gather", {}, (), ()),
    ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "nccl", "send and receive", {}, (), ()),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "nccl", "collective", {}, (), ()),
    ("ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, unsigned long, ncclWork*)", "nccl_old", "all-reduce", {"a": "fp16"}, (), ()),
    ("ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16(ncclSymkDevWorkArgs)", "nccl_symmetric", "all-reduce", {}, (), ()),
    ("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)", "custom_all_reduce", "all-reduce", {"a": "bf16"}, (), ()),
    ("void deep_ep::internode_ll::combine<true, 7168, 10>(void*)", "deepep", "expert-parallel combine", {}, (), ()),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
     "cublas_xmma", "gemm", {"a": "bf16", "b": "bf16", "out": "bf16", "acc": "fp32"}, (128, 128, 64), ("sm_90a",)),
    ("sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize64x64x64_stage4_warpsize2x2x1_tensor16x8x16_kernel", "cublas_xmma", "gemm", {"a": "fp16"}, (64, 64, 64), ()),
    ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "cublas_nvjet", "gemm", {"a": "bf16", "b": "bf16", "out": "bf16", "acc": "fp32"}, (128, 256, 64), ("sm_90a",)),
    ("nvjet_sm120_qqtst_mma_64x128x64_8_32x64x64_tmaAB_bz_TNNN", "cublas_nvjet", "gemm", {"a": "fp8_e4m3", "b": "fp8_e4m3", "out": "bf16", "acc": "fp32"}, (64, 128, 64), ("sm_120",)),
    ("nvjet_sm100_hsh_128x64_64x6_2x1_v_bz_TNN", "cublas_nvjet", "gemm", {"a": "fp16", "out": "fp16"}, (128, 64, 64), ("sm_100",)),
    ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn", "cublas_named", "gemm", {"a": "bf16", "out": "bf16", "acc": "fp32"}, (128, 128), ()),
    ("ampere_sgemm_128x64_tn", "cublas_named", "gemm", {"a": "fp32"}, (128, 64), ()),
    ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "cublas_named", "gemm", {"a": "fp16", "acc": "fp32"}, (128, 128), ()),
    ("turing_fp16_s1688gemm_fp16_256x64_ldg8_f2f_tn", "cublas_named", "gemm", {"a": "fp16"}, (256, 64), ()),
    ("void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const>>(cublasGemmSmallNParams<float>)", "cublas_kernel", "gemm", {"a": "fp32"}, (), ()),
    ("void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16, 4, 4, false>(cublasGemvParamsEx<int>)", "cublas_kernel", "gemv", {"a": "bf16", "acc": "fp32"}, (), ()),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __half, float, __half, false>(cublasLt::cublasSplitKParams<float>)", "cublas_kernel", "split-K reduction", {"out": "fp16"}, (), ()),
    ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_tn_align8", "cutlass_2_name", "gemm", {"a": "bf16", "out": "bf16", "acc": "fp32"}, (256, 64, 32), ()),
    ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_128x2_tn_align8>(cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_128x2_tn_align8::Params)",
     "cutlass_2_name", "gemm", {"a": "fp16"}, (16, 16, 128), ()),
    ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, cutlass::gemm::collective::CollectiveMma<"
     "cutlass::gemm::MainloopSm90TmaGmmaWarpSpecializedFP8<9, cute::tuple<cute::C<2>, cute::C<1>, cute::C<1>>, cutlass::gemm::KernelTmaWarpSpecializedPingpong>, "
     "cute::tuple<cute::C<64>, cute::C<128>, cute::C<128>>, cutlass::float_e4m3_t, cute::tuple<long, cute::C<1>, long>, cutlass::float_e4m3_t, cute::tuple<long, cute::C<1>, long>, "
     "cute::TiledMMA<cute::MMA_Atom<cute::SM90::GMMA::MMA_64x128x32_F32E4M3E4M3_SS_TN<>>>>, cutlass::epilogue::collective::CollectiveEpilogue<cutlass::epilogue::Sm90TmaWarpSpecialized<2, 2>, "
     "cute::tuple<cute::C<64>, cute::C<128>, cute::C<128>>, cute::tuple<cute::C<64>, cute::C<32>>, void, cute::tuple<long>, cutlass::bfloat16_t, cute::tuple<long>>>>(int)",
     "cutlass_3", "gemm", {"a": "fp8_e4m3", "b": "fp8_e4m3", "out": "bf16", "acc": "fp32"}, (64, 128, 128), ("sm_90a",)),
    ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int>>, cutlass::gemm::collective::CollectiveMma<"
     "cutlass::gemm::MainloopSm120ArrayTmaWarpSpecializedBlockScaled<4, 3, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1>>, cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperativeBlockScaledSm120<3>>, "
     "cute::tuple<cute::C<128>, cute::C<128>, cute::C<128>>, cute::tuple<cutlass::float_e2m1_t, cutlass::float_ue4m3_t>, cute::tuple<long>, cute::tuple<cutlass::float_e2m1_t, cutlass::float_ue4m3_t>, cute::tuple<long>>>>(int)",
     "cutlass_3", "grouped gemm", {"a": "nvfp4", "b": "nvfp4"}, (128, 128, 128), ("sm_120",)),
    ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::bfloat16_t>>, true, false, false>(flash::Flash_fwd_params)",
     "flash_attention_2", "attention (decode, split KV)", {"q": "bf16"}, (64, 128), ()),
    ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4, false, false, cutlass::half_t>, true>(pytorch_flash::Flash_bwd_params)",
     "flash_attention_2", "attention (backward)", {"q": "fp16"}, (128, 128), ()),
    ("kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensorptrbf16gmemalign16odiv8i64_tensorptrbf16gmem", "flash_attention_4", "attention", {"q": "bf16"}, (), ("sm_100",)),
    ("void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)1, 128u, 2u, 8u, __nv_bfloat16, __nv_fp8_e4m3, __nv_bfloat16, float, int>>(int)",
     "flashinfer_attention", "attention (prefill)", {"q": "bf16", "kv": "fp8_e4m3", "out": "bf16"}, (), ()),
    ("void sm90::flash_fwd_splitkv_mla_kernel<sm90::Traits<cutlass::bfloat16_t>, sm90::TmaParams<int>>(sm90::Params)", "flashmla", "attention (MLA decode)", {"q": "bf16"}, (), ("sm_90a",)),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u, 4096u, 7168u, 1u, 64u, 128u, 128u, 128u>(float*)", "deepgemm", "gemm", {"a": "fp8_e4m3", "out": "bf16"}, (64, 128, 128), ("sm_90a",)),
    ("void deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<(cute::UMMA::Major)0>(int*)", "deepgemm", "gemm", {"a": "fp8_e4m3", "b": "mxfp4"}, (), ("sm_100f",)),
    ("void deep_gemm::sm100_paged_mqa_logits<1u>(int)", "deepgemm", "indexer logits", {"a": "fp8_e4m3"}, (), ("sm_100f",)),
    ("kernel.fp8_m_grouped_gemm.0123456789ab", "deepgemm_file", "grouped gemm", {"a": "fp8_e4m3"}, (), ("sm_100f",)),
    ("void marlin::Marlin<__nv_bfloat16, 1125899906843648l, 128, 1, 4, 8, false, 4, 2, false>(int4 const*)", "marlin", "gemm", {"a": "bf16", "b": "uint4"}, (16, 64, 128), ()),
    ("void marlin_moe_wna16::Marlin<1125899906909960l, 562949953487106l, 1125899906909960l, 2814749767106568l, 128, 4, 4, 8, false, 4, 2, false>(int4 const*)",
     "marlin", "moe gemm", {"a": "bf16", "b": "fp4_e2m1"}, (64, 64, 128), ()),
    ("void sglang::gptq::gemm_half_q_half_gptq_4bit_kernel<true, 1>(__half const*, unsigned int const*)", "gptq", "gemm", {"a": "fp16", "b": "uint4"}, (), ()),
    ("triton_per_fused__to_copy_add_mean_mul_pow_rsqrt_3", "inductor", "persistent reduction", {}, (), ()),
    ("triton_tem_fused_addmm_12", "inductor", "gemm", {}, (), ()),
    ("_p_matmul_ogs_NNT_bf16xbf16xmxfp4_128x256x128x1_swiglu", "triton_kernels", "moe gemm", {"a": "bf16", "b": "mxfp4", "out": "bf16"}, (128, 256, 128), ()),
    ("_fwd_grouped_kernel_stage1", "named", "attention (decode)", {}, (), ()),
    ("fused_moe_kernel", "named", "moe gemm", {}, (), ()),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0", "cudnn_sdpa", "attention", {"q": "fp16"}, (64, 128, 128), ("sm_90a",)),
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "memory_efficient_attention", "attention", {"q": "bf16"}, (64, 64), ()),
    ("fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_128_causal_sm90_kernel_nl", "fmha_v2", "attention", {"q": "bf16"}, (64, 128), ("sm_90a",)),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add<c10::BFloat16>)", "named", "elementwise", {"a": "bf16"}, (), ()),
    ("void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true, at::native::ReduceAdd>(at::cuda::detail::TensorInfo<float, unsigned int>)", "named", "index", {"a": "fp32"}, (), ()),
    ("void flashinfer::norm::RMSNormKernel<16u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*)", "named", "normalization", {"a": "bf16"}, (), ()),
    ("Cijk_Alik_Bljk_HHS_BH_MT128x128x32_MI16x16x16x1_SN_1LDSB0_ISA90a_WG32_8_1", "tensile", "gemm", {"a": "fp16", "out": "fp16", "acc": "fp32"}, (128, 128, 32), ("gfx90a",)),
    ("_ZN5aiter41mla_dec_stage1_bf16_a16w16_subQ128_mqa128E", "aiter", "attention (MLA)", {"q": "bf16"}, (), ()),
    ("void mul_mat_vec_q<(ggml_type)12, 1, false, false>(void const*, void const*, int const*, float*)", "ggml", "gemv", {"b": "q4_K"}, (), ()),
    ("void flash_attn_tile<128, 128, 32, 1, false>(char const*)", "ggml", "attention", {"q": "fp16"}, (), ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "grammar", "op", "dtypes", "tile", "archs"), NAMES, ids=lambda v: v[:40] if isinstance(v, str) else ""
)
def test_a_name_is_decoded(
    name: str, grammar: str, op: str, dtypes: dict[str, str], tile: tuple[int, ...], archs: tuple[str, ...]
) -> None:
    decoded = decode_kernel(name)
    assert decoded.grammar == grammar
    assert decoded.op == op
    assert dict(decoded.dtypes) | dtypes == dict(decoded.dtypes)
    assert decoded.tile == tile
    assert decoded.archs == archs
    assert decoded.name == name
    assert decoded.sentence.endswith(".")


def test_the_suffix_says_where_it_runs() -> None:
    assert decode_kernel(FC1).runs_on == ("sm_100", "sm_103", "sm_107")
    assert "sm_120" not in decode_kernel(FC1).sentence
    assert decode_kernel(
        "fmhaSm103aKernel_QkvFp16OFp16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext"
    ).runs_on == ("sm_103",)
    assert decode_kernel("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_tn_align8").runs_on[0] == "sm_80"


def test_a_trtllm_name_gives_its_parts() -> None:
    extra = decode_kernel(FC1).extra
    assert extra["epilogue_tile"] == "128x16"
    assert extra["cluster"] == "1x1x1"
    assert extra["stages"] == 4 or extra["stages"] == "4"
    assert extra["activation"] == "swiGlu"
    assert extra["unroll"] == 2
    assert extra["scale_block_a"] == 32
    assert "transposed output" in extra["options"]  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "RuntimeError",
        "gemm",
        "the kernel failed",
        "scheduler.py",
        "_Z",
        "_ZN5E",
        "a" * 50_000,
        "void <>()",
        "<<<<",
        "bmm_",
    ],
)
def test_what_is_no_kernel_name_is_not_decoded(text: str) -> None:
    assert decode_kernel(text).grammar is None


def test_names_are_found_in_text() -> None:
    text = f"Error occurred when running GEMM! (numBatches: 256, GemmMNK: 16 4096 7168, Kernel: {FC1})"
    assert [k.name for k in find_kernels(text)] == [FC1]
    dump = "#3 0x7f void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true>(at::Info<float>) in libtorch_cuda.so"
    assert find_kernels(dump)[0].op == "index"
    assert find_kernels("File x.py, line 3, in fused_experts") == ()


@pytest.mark.parametrize(
    ("mangled", "spelled"),
    [
        (
            "_ZN5flash3fooIN7cutlass6half_tELi128ELb1EEEvPT_i",
            "void flash::foo<cutlass::half_t, 128, true>(cutlass::half_t*, int)",
        ),
        ("_Z3addPKfS0_Pfi", "add(float const*, float const*, float*, int)"),
        ("_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work()"),
        (
            "_ZN2at6native6kernelILi4ESt5arrayIPcLm3EEEEviT0_",
            "void at::native::kernel<4, std::array<char*, 3ul>>(int, std::array<char*, 3ul>)",
        ),
    ],
)
def test_mangled_names_are_read(mangled: str, spelled: str) -> None:
    assert demangled(mangled) == spelled


@pytest.mark.parametrize(
    "hostile",
    [
        "_ZN" + "I" * 5_000,
        "_Z1f" + "P" * 5_000,
        "_ZN1aI" + "NS_" * 4_000,
        "_Z99999999x",
        "_ZS_",
        "_Z1fIJ",
        "_ZN1aIS_IS_IS_IS_EEEE",
    ],
)
def test_hostile_mangled_names_end(hostile: str) -> None:
    assert demangled(hostile) is None or isinstance(demangled(hostile), str)


def test_repeated_substitutions_do_not_explode() -> None:
    name = "_Z1fISt4pairIiiE" + "".join(f"St4pairIS{_base36(n)}_S{_base36(n)}_E" for n in range(1, 60)) + "Evv"
    spelled = demangled(name)
    assert spelled is None or len(spelled) < 200_000


def _base36(number: int) -> str:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return digits[number] if number < 36 else digits[number // 36] + digits[number % 36]


def test_templates_are_taken_apart() -> None:
    spelled = read("void ns::f<4, ns::Op<float, 2>, 2ul>(int, float*)")
    assert spelled.path == "ns::f"
    assert spelled.arguments == ("4", "ns::Op<float, 2>", "2ul")
    assert spelled.parameters == ("int", "float*")
    assert parts("a, b<c, d>) rest", 0) == (("a", "b<c, d>"), 11)
    assert inside("x Mma<1, y<2>> z", "Mma<") == ("1", "y<2>")
    assert shape("cute::tuple<cute::C<64>, cute::_128, cute::Int<32>>") == (64, 128, 32)
    assert shape("cute::tuple<int, long>") == ()


def test_scalar_types_of_vllm() -> None:
    assert scalar_type(1125899906909960) == "bf16"
    assert scalar_type(562949953487106) == "fp4_e2m1"
    assert scalar_type(1125899906843648) == "uint4"
    assert scalar_type(99) is None


def test_what_plain_names_hold_is_what_the_search_asks_for_first() -> None:
    """`candidates` looks for them only in a text with one of these marks: a form without either would never be found."""
    inner = finding._PLAIN._source.partition("(?:")[2].rpartition(")[A-Za-z0-9_.$]*")[0]
    forms, depth = [""], 0
    for char in re.sub(r"\[[^]]*\]|\\w", "", inner):
        depth += (char == "(") - (char == ")")
        forms = [*forms, ""] if char == "|" and not depth else [*forms[:-1], forms[-1] + char]
    assert len(forms) > 15 and all("_" in form or "mhaSm" in form for form in forms), forms
    assert list(finding.candidates("launch of fmhaSm100 failed")) == ["fmhaSm100"]
