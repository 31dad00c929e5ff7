"""C++ names: demangled by the run time, shortened for people, bounded."""

from __future__ import annotations

import pytest

from forensics.parse.cxxnames import demangle, shorten_cpp


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZN13llama_context6decodeERK11llama_batch", "llama_context::decode(llama_batch const&)"),
        ("__ZN13llama_context6decodeERK11llama_batch", "llama_context::decode(llama_batch const&)"),
        ("ncclGroupEnd", "ncclGroupEnd"),
        ("_Zgarbage", "_Zgarbage"),
        ("_Z" + "N1a" * 3_000, "_Z" + "N1a" * 3_000),
        ("", ""),
    ],
)
def test_demangle(mangled: str, name: str) -> None:
    assert demangle(mangled) == name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)",
            "at::native::vectorized_elementwise_kernel<4, …>",
        ),
        ("c10::Error::Error(c10::SourceLocation, std::__cxx11::basic_string<char>)", "c10::Error::Error"),
        ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"),
        ("tensorrt_llm::common::throwRuntimeError(char const*, int)", "tensorrt_llm::common::throwRuntimeError"),
        ("foo<bar>::baz<a, b>::operator<(int)", "foo<bar>::baz<a, …>::operator<"),
        ("_ZN13llama_context6decodeERK11llama_batch", "llama_context::decode"),
        ("ncclGroupEnd", "ncclGroupEnd"),
        ("main", "main"),
    ],
)
def test_shorten(name: str, short: str) -> None:
    assert shorten_cpp(name) == short


@pytest.mark.parametrize("name", ["a<" * 5_000, "a<b>::" * 5_000, "(" * 5_000, ">" * 5_000, "operator<" * 2_000])
def test_hostile_names_stay_short(name: str) -> None:
    assert len(shorten_cpp(name)) <= 80
