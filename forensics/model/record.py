"""`@record`: what `@dataclass(frozen=True, slots=True)` makes, at a fifth of its cost when a module is imported; `@draft`: what
`@dataclass(slots=True)` makes, for what is still being put together.

In: a class with annotated fields and defaults. Out: the class with slots, compared, hashed, shown and pickled by its fields.

    @record
    class Span:
        source: int
        first_line: int
    -> Span(0, 812), replace(Span(0, 812), source=1), Span(0, 812) == Span(0, 812)

    @draft
    class Group:
        members: list[Span] = field(default_factory=list)

A start on a small log defines more than a hundred records; the standard decorator compiles six methods for each, and its module
loads the parser of Python. Here only `__init__` is compiled, when it is called often; the others are shared. `dataclasses.replace`,
`fields` and `asdict` work.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field

T = TypeVar("T")


class _Default:
    """A default that is made anew for each instance."""

    __slots__ = ("default_factory",)

    def __init__(self, default_factory: Callable[[], Any]) -> None:
        self.default_factory = default_factory


_ABSENT: Any = object()
#: so many instances of a record cost as much as compiling its constructor
_FIRST = 24


def field(*, default_factory: Callable[[], T]) -> T:
    """The default of a field, made by a call for each instance."""
    made: Any = _Default(default_factory)
    return made  # type: ignore[no-any-return]


def replace(one: T, **changes: Any) -> T:
    """The same record with other values in some fields."""
    changed: T = one.__replace__(**changes)  # type: ignore[attr-defined]
    return changed


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """The class as a frozen record with slots. Fields of bases that are records come first."""
    return _made(cls, _FROZEN)


@dataclass_transform(field_specifiers=(field,))
def draft(cls: type[T]) -> type[T]:
    """The class with slots, compared and shown by its fields, which may change: so it has no hash."""
    return _made(cls, _CHANGING)


def _made(cls: type[T], shared: dict[str, Any]) -> type[T]:
    given = cls.__annotations__
    inherited = tuple(getattr(cls, "__match_args__", ()))
    own = tuple(name for name in given if name not in inherited)
    names = inherited + own
    defaults = {name: cls.__dict__[name] for name in own if name in cls.__dict__}
    space = {key: value for key, value in cls.__dict__.items() if key not in (*own, "__dict__", "__weakref__")}
    space |= {"__slots__": own, "__match_args__": names}
    kind: Any = type(cls)
    made = kind(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    kept = {**getattr(cls, "_defaults", {}), **defaults}
    made._defaults = kept
    made._values = _getter(names)
    made.__dataclass_fields__ = _Fields(names, given, kept)
    made.__init__ = _first_init(made, names, kept, frozen=shared is _FROZEN)
    for name, method in shared.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _getter(names: tuple[str, ...]) -> Any:
    """The values of an instance as a tuple."""
    if len(names) > 1:
        return staticmethod(attrgetter(*names))
    if names:
        one = attrgetter(names[0])
        return staticmethod(lambda self: (one(self),))
    return staticmethod(lambda self: ())


def _first_init(cls: Any, names: tuple[str, ...], defaults: dict[str, Any], *, frozen: bool) -> Any:
    """Makes the first instances as it can; compiles the real `__init__` when there come more: most starts make few of most records."""
    put, most, left = object.__setattr__, len(names), _FIRST
    factories = {
        name: make for name, one in defaults.items() if callable(make := getattr(one, "default_factory", None))
    }

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        given = {**dict(zip(names, args, strict=False)), **named}
        if left < 0 or len(args) + len(named) != len(given) or len(given) > most:
            real = cls.__init__ = _init(names, defaults, frozen)
            return real(self, *args, **named)  # type: ignore[no-any-return]
        for name in names:
            if name in given:
                put(self, name, given.pop(name))
            elif name in factories:
                put(self, name, factories[name]())
            elif name in defaults:
                put(self, name, defaults[name])
            else:
                return _init(names, defaults, frozen)(self, *args, **named)  # type: ignore[no-any-return]
        if given:
            _init(names, defaults, frozen)(self, *args, **named)
        return None

    return __init__


def _init(names: tuple[str, ...], defaults: dict[str, Any], frozen: bool) -> Any:
    """`__init__`, compiled. Names and defaults come from a class body, never from data."""
    space: dict[str, Any] = {"_set": object.__setattr__, "_absent": _ABSENT}
    parameters, lines = [], []
    for name in names:
        value = name
        if name in defaults:
            default = defaults[name]
            factory = getattr(default, "default_factory", None)
            if callable(factory):
                space[f"_make_{name}"] = factory
                parameters.append(f"{name}=_absent")
                value = f"_make_{name}() if {name} is _absent else {name}"
            else:
                space[f"_default_{name}"] = default
                parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        lines.append(f" _set(self,{name!r},{value})" if frozen else f" self.{name}={value}")
    exec(f"def __init__({', '.join(['self', *parameters])}):\n" + ("\n".join(lines) or " pass"), space)
    return space["__init__"]


class _Fields:
    """`__dataclass_fields__`, built when `dataclasses.replace`, `fields` or `asdict` ask for it."""

    def __init__(self, names: tuple[str, ...], given: dict[str, Any], defaults: dict[str, Any]) -> None:
        self.names, self.given, self.defaults = names, given, defaults

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        import dataclasses

        found = {}
        for name in self.names:
            default = self.defaults.get(name, dataclasses.MISSING)
            factory = getattr(default, "default_factory", None)
            one: Any = (
                dataclasses.field(default_factory=factory) if callable(factory) else dataclasses.field(default=default)
            )
            one.name, one.type, one._field_type = name, self.given.get(name, Any), dataclasses._FIELD  # type: ignore[attr-defined]
            found[name] = one
        owner.__dataclass_fields__ = found  # type: ignore[attr-defined]
        return found


def _repr(self: Any) -> str:
    pairs = zip(self.__match_args__, self._values(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def _eq(self: Any, other: Any) -> Any:
    return self._values(self) == self._values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _frozen(self: Any, name: str, value: object = None) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return type(self), self._values(self)


def _replaced(self: Any, **changes: Any) -> Any:
    return type(self)(**{**dict(zip(self.__match_args__, self._values(self), strict=True)), **changes})


_CHANGING: dict[str, Any] = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": None,
    "__reduce__": _reduce,
    "__replace__": _replaced,
}
_FROZEN = _CHANGING | {"__hash__": _hash, "__setattr__": _frozen, "__delattr__": _frozen}
