"""Demangles C++ names of kernels. In: an Itanium-mangled name; out: the C++ spelling, or None where it cannot be read. Sample:

    demangled("_ZN7cutlass13device_kernelIN5flash18enable_sm90_or_laterIiEEEEvNT_6ParamsE")
    -> "void cutlass::device_kernel<flash::enable_sm90_or_later<int>>(flash::enable_sm90_or_later<int>::Params)"

Kernel names run to 20,000 characters and come out of logs, so this reads the part of the ABI that device code uses, with its
depth, steps and output bounded, instead of asking a C++ runtime. Expressions beyond literals and addresses are not read.
Grammar: https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling
"""

from __future__ import annotations

_MAX_NAME, _MAX_OUT, _MAX_DEPTH, _MAX_STEPS = 20_000, 60_000, 120, 60_000
_BUILTIN = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double",
    "g": "__float128", "z": "...",
}  # fmt: skip
_D_BUILTIN = {
    "Dn": "std::nullptr_t",
    "Da": "auto",
    "Dc": "decltype(auto)",
    "Di": "char32_t",
    "Ds": "char16_t",
    "Du": "char8_t",
    "Dh": "half",
}
_STD = {
    "t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::string", "i": "std::istream", "o": "std::ostream",
    "d": "std::iostream",
}  # fmt: skip
_OPERATORS = {
    "cl": "()", "ix": "[]", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=",
    "ge": ">=", "aS": "=", "pL": "+=", "mI": "-=", "ls": "<<", "rs": ">>", "nt": "!", "an": "&", "or": "|", "nw": " new", "dl": " delete",
}  # fmt: skip
_SUFFIX = {"i": "", "j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}


class _Unreadable(Exception):
    """What stands here is not read (never leaves this module)."""


def demangled(name: str) -> str | None:
    """The C++ spelling of a mangled name; None where it is none, is too long or uses what is not read here."""
    if not name.startswith("_Z") or len(name) > _MAX_NAME:
        return None
    try:
        return _Reader(name.split(".")[0], 2).encoding()
    except (_Unreadable, IndexError, ValueError, RecursionError):
        return None


class _Reader:
    """A position in a mangled name and what may be referred to."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.known: list[str] = []
        self.arguments: list[str] = []
        self.depth = self.steps = 0

    def peek(self, *texts: str) -> bool:
        return self.text.startswith(texts, self.at)

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            raise _Unreadable

    def remember(self, text: str) -> str:
        if len(text) > _MAX_OUT or len(self.known) > 4_000:
            raise _Unreadable
        self.known.append(text)
        return text

    def step(self) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS or self.depth > _MAX_DEPTH:
            raise _Unreadable

    def encoding(self) -> str:
        """A function or object with its parameter types; a template's return type stands first."""
        name = self.name()
        if self.at >= len(self.text) or self.peek("E"):
            return name
        returned = self.type() + " " if name.endswith(">") and not self._structor(name) else ""
        parameters = []
        while self.at < len(self.text) and not self.peek("E"):
            parameters.append(self.type())
        return f"{returned}{name}({', '.join(p for p in parameters if p != 'void')})"

    @staticmethod
    def _structor(name: str) -> bool:
        return name.rsplit("::", 1)[-1].startswith("~") or name.endswith("operator()")

    def name(self) -> str:
        """Where template parameters of a signature point to are the arguments of the last template read here."""
        self.step()
        if self.peek("N"):
            return self.nested()
        if self.peek("Z"):
            return self.local()
        if self.peek("S") and not self.peek("St"):
            base = self.substitution()
        else:
            base = ("std::" if self.take("St") else "") + self.unqualified()
            if self.peek("I"):
                self.remember(base)
        return base + self.template_arguments() if self.peek("I") else base

    def nested(self) -> str:
        self.need("N")
        while self.peek("K", "V", "r", "R", "O"):
            self.at += 1
        parts = ""
        while not self.take("E"):
            self.step()
            if self.peek("S") and not self.peek("St"):
                parts = self.substitution()
                continue
            if self.peek("I"):
                parts += self.template_arguments()
            elif self.peek("T"):
                parts = self.template_parameter()
            elif self.take("St"):
                parts = "std"
                continue
            elif self.peek("DT", "Dt"):
                parts = self.type()
            else:
                word = self.unqualified(parts)
                parts = f"{parts}::{word}" if parts else word
            if not self.peek("E"):
                self.remember(parts)
        return parts

    def local(self) -> str:
        self.need("Z")
        outer = self.encoding()
        self.need("E")
        if self.take("s"):
            self._discriminator()
            return outer + "::string literal"
        if self.take("d"):
            self._number()
            self.need("_")
        inner = self.name()
        self._discriminator()
        return f"{outer}::{inner}"

    def _discriminator(self) -> None:
        if self.take("__"):
            self._number()
            self.take("_")
        elif self.peek("_") and self.text[self.at + 1 : self.at + 2].isdigit():
            self.at += 2

    def _number(self) -> str:
        start = self.at
        self.take("n")
        while self.at < len(self.text) and self.text[self.at].isdigit():
            self.at += 1
        return self.text[start : self.at].replace("n", "-")

    def unqualified(self, inside: str = "") -> str:
        char = self.text[self.at]
        if char == "L":  # internal linkage
            self.at += 1
            char = self.text[self.at]
        if char.isdigit():
            word = self.source_name()
        elif self.take("Ut"):
            number = self._number()
            self.need("_")
            word = f"{{unnamed type#{int(number or -1) + 2}}}"
        elif self.take("Ul"):
            parameters = []
            while not self.take("E"):
                parameters.append(self.type())
            number = self._number()
            self.need("_")
            word = f"{{lambda({', '.join(p for p in parameters if p != 'void')})#{int(number or -1) + 2}}}"
        elif char in "CD" and self.text[self.at + 1] in "0123456":
            self.at += 2
            word = ("~" if char == "D" else "") + inside.split("<")[0].rsplit("::", 1)[-1]
        elif self.take("cv"):
            word = "operator " + self.type()
        elif (sign := self.text[self.at : self.at + 2]) in _OPERATORS:
            self.at += 2
            word = "operator" + _OPERATORS[sign]
        else:
            raise _Unreadable
        while self.take("B"):
            word += f"[abi:{self.source_name()}]"
        return word

    def source_name(self) -> str:
        length = int(self._number())
        word = self.text[self.at : self.at + length]
        if len(word) < length:
            raise _Unreadable
        self.at += length
        return "(anonymous namespace)" if word.startswith("_GLOBAL__N_") else word

    def substitution(self) -> str:
        self.need("S")
        char = self.text[self.at]
        if char in _STD:
            self.at += 1
            return _STD[char]
        return self.known[self._sequence()]

    def _sequence(self) -> int:
        """A base-36 number before "_", counted from 0 for none."""
        end = self.text.index("_", self.at)
        digits = self.text[self.at : end]
        self.at = end + 1
        return int(digits, 36) + 1 if digits else 0

    def template_parameter(self) -> str:
        self.need("T")
        end = self.text.index("_", self.at)
        index = int(self.text[self.at : end]) + 1 if end > self.at else 0
        self.at = end + 1
        return self.arguments[index] if index < len(self.arguments) else "auto"

    def template_arguments(self) -> str:
        """Arguments in angle brackets. They become what template parameters of the signature mean."""
        self.need("I")
        self.depth += 1
        self.step()
        found: list[str] = []
        while not self.take("E"):
            found.append(self.template_argument())
        self.depth -= 1
        self.arguments = found
        text = ", ".join(a for a in found if a)
        if len(text) > _MAX_OUT:
            raise _Unreadable
        return f"<{text}>"

    def template_argument(self) -> str:
        self.step()
        if self.peek("L"):
            return self.literal()
        if self.take("X"):
            word = self.expression()
            self.need("E")
            return word
        if self.take("J"):
            pack = []
            while not self.take("E"):
                pack.append(self.template_argument())
            return ", ".join(a for a in pack if a)
        return self.type()

    def expression(self) -> str:
        if self.take("ad"):
            return "&" + self.expression()
        if self.peek("L"):
            return self.literal()
        if self.peek("T"):
            return self.template_parameter()
        raise _Unreadable

    def literal(self) -> str:
        self.need("L")
        if self.take("_Z"):
            inner = _Reader(self.text, self.at)
            inner.known, inner.depth, inner.steps = self.known, self.depth + 1, self.steps
            inner.step()
            word = inner.encoding()
            self.at, self.steps = inner.at, inner.steps
        elif self.take("b"):
            word = "true" if self._number() == "1" else "false"
        else:
            kind = self.text[self.at]
            type_ = self.type()
            value = self._number()
            word = value + _SUFFIX[kind] if kind in _SUFFIX else f"({type_}){value}"
        self.need("E")
        return word

    def type(self) -> str:
        self.depth += 1
        self.step()
        word = self._type()
        self.depth -= 1
        return word

    def _type(self) -> str:
        char = self.text[self.at]
        two = self.text[self.at : self.at + 2]
        if char in _BUILTIN:
            self.at += 1
            return _BUILTIN[char]
        if two in _D_BUILTIN:
            self.at += 2
            return _D_BUILTIN[two]
        if char in "PRO":
            self.at += 1
            inner = self.type()
            mark = {"P": "*", "R": "&", "O": "&&"}[char]
            word = inner.replace(" (", f" ({mark})(", 1) if inner.endswith(")") and " (" in inner else inner + mark
            return self.remember(word)
        if char in "KVr":
            self.at += 1
            return self.remember(self.type() + {"K": " const", "V": " volatile", "r": " restrict"}[char])
        if char == "T" and self.text[self.at + 1] in "_0123456789":
            word = self.remember(self.template_parameter())
            return self.remember(word + self.template_arguments()) if self.peek("I") else word
        if char == "F":
            return self.remember(self._function())
        if char == "A":
            self.at += 1
            size = self._number()
            self.need("_")
            return self.remember(f"{self.type()} [{size}]")
        if two == "Dp":
            self.at += 2
            return self.type()
        if char == "S" and two != "St":
            word = self.substitution()
            return self.remember(word + self.template_arguments()) if self.peek("I") else word
        if char == "u":
            self.at += 1
            return self.remember(self.source_name())
        if char.isdigit() or char in "NZS":
            return self.remember(self._class())
        raise _Unreadable

    def _class(self) -> str:
        """A class type: its template arguments are its own, not what the signature's parameters mean."""
        outer = self.arguments
        word = self.name()
        self.arguments = outer
        return word

    def _function(self) -> str:
        self.need("F")
        returned = self.type()
        parameters = []
        while not self.take("E"):
            parameters.append(self.type())
        return f"{returned} ({', '.join(p for p in parameters if p != 'void')})"
