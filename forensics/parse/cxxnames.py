"""C++ names for people. In: a mangled or demangled name; out: the demangled or shortened one. Sample:

    demangle("_ZN13llama_context6decodeERK11llama_batch") -> "llama_context::decode(llama_batch const&)"
    shorten_cpp("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, …)")
    -> "at::native::vectorized_elementwise_kernel<4, …>"

Demangling asks the C++ runtime itself (libstdc++ or libc++ through ctypes, else the cxxfilt package), loaded when first needed.
Names longer than MAX_MANGLED are left alone: log text is hostile, and a demangler recurses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

MAX_MANGLED = 2_000
#: characters of a demangled name kept in a frame
MAX_NAME = 600

_RETURN_TYPES = ("void ", "bool ", "int ", "float ", "double ", "unsigned int ", "long ", "auto ", "decltype(auto) ")


@lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """The C++ name behind an Itanium-mangled one (`_Z…`, `__Z…`); anything else, and what cannot be decoded, as it is."""
    mangled = name[1:] if name.startswith("__Z") else name
    if not mangled.startswith("_Z") or len(mangled) > MAX_MANGLED or not mangled.isascii():
        return name
    decoded = _demangler()(mangled)
    return decoded[:MAX_NAME] if decoded else name


@lru_cache(maxsize=1)
def _demangler() -> Callable[[str], str | None]:
    import ctypes

    for library in ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib"):
        try:
            runtime = ctypes.CDLL(library)
            return _by_runtime(runtime, ctypes)
        except (OSError, AttributeError):
            continue
    try:
        import cxxfilt
    except ImportError:
        return lambda mangled: None

    def by_cxxfilt(mangled: str) -> str | None:
        try:
            return str(cxxfilt.demangle(mangled))
        except cxxfilt.Error:
            return None

    return by_cxxfilt


def _by_runtime(runtime: object, ctypes: object) -> Callable[[str], str | None]:
    """`__cxa_demangle` of a loaded C++ runtime; the buffer it returns is freed."""
    import ctypes as c

    function = runtime.__cxa_demangle  # type: ignore[attr-defined]
    function.restype = c.c_void_p
    function.argtypes = (c.c_char_p, c.c_void_p, c.c_void_p, c.POINTER(c.c_int))
    free = c.CDLL(None).free
    free.argtypes = (c.c_void_p,)

    def by_runtime(mangled: str) -> str | None:
        status = c.c_int(0)
        address = function(mangled.encode(), None, None, c.byref(status))
        if not address:
            return None
        text = c.string_at(address).decode("utf-8", "replace") if status.value == 0 else None
        free(address)
        return text

    return by_runtime


@lru_cache(maxsize=4096)
def shorten_cpp(name: str, width: int = 80) -> str:
    """A C++ name, mangled or not, as people say it: no return type, no parameters, ABI namespaces dropped, template arguments cut to
    the first short one. width: characters the result may have. Names that are not C++ come back unchanged (cut to width)."""
    text = demangle(name)[: MAX_NAME * 4]
    if "::" not in text and "<" not in text and "(" not in text:
        return text[:width]
    for noise in ("std::__cxx11::", "std::__1::", "(anonymous namespace)::", "{anonymous}::", "absl::lts_20230802::"):
        text = text.replace(noise, "std::" if noise.startswith("std") else "")
    text = _without_parameters(text)
    for kind in _RETURN_TYPES:
        if text.startswith(kind):
            text = text[len(kind) :]
            break
    text = _short_templates(text).strip()
    return text if len(text) <= width else text[: width - 1] + "…"


def _without_parameters(text: str) -> str:
    """Cuts the parameter list: the first "(" outside of templates that is not operator() or a lambda's."""
    depth = 0
    for at, char in enumerate(text):
        if char == "<" and not text.startswith("operator<", at - 8):
            depth += 1
        elif char == ">" and depth and text[at - 1] != "-":
            depth -= 1
        elif char == "(" and depth == 0 and at > 0 and not text.endswith("operator", 0, at) and text[at - 1] != "{":
            return text[:at]
    return text


def _short_templates(text: str) -> str:
    """foo<4, bar<float>, 7>::baz -> foo<4, …>::baz."""
    out: list[str] = []
    depth = 0
    inner = ""
    for char in text:
        if char == "<" and not "".join(out[-8:]).endswith("operator"):
            depth += 1
            if depth == 1:
                inner = ""
                continue
        elif char == ">" and depth:
            depth -= 1
            if depth == 0:
                out.append(_abbreviated(inner))
                continue
        if depth == 0:
            out.append(char)
        elif len(inner) < 400:
            inner += char
    return "".join(out) + (_abbreviated(inner) if depth else "")


def _abbreviated(inner: str) -> str:
    first = inner.split("<", 1)[0].split(",", 1)[0].strip()
    if first == inner.strip() and len(first) <= 24:
        return f"<{first}>"
    return f"<{first}, …>" if first and len(first) <= 24 else "<…>"
