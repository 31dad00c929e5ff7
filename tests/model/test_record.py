"""`@record` behaves like a frozen dataclass with slots."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Mapping

import pytest

from forensics.model import Facts, Frame, Span
from forensics.model.record import draft, field, record, replace


@record
class Point:
    """Two numbers, a default and a factory."""

    x: int
    y: int = 2
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def sum(self) -> int:
        """x + y"""
        return self.x + self.y


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    """The same by the standard library."""

    x: int
    y: int = 2
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)


def test_it_is_made_like_a_dataclass() -> None:
    for one, two in (
        (Point(1), Twin(1)),
        (Point(1, 3), Twin(1, 3)),
        (Point(x=1, tags={"a": "b"}), Twin(x=1, tags={"a": "b"})),
    ):
        assert repr(one) == repr(two).replace("Twin", "Point")
        assert dataclasses.asdict(one) == dataclasses.asdict(two)  # type: ignore[call-overload]
    assert Point.__match_args__ == Twin.__match_args__
    assert [(f.name, f.default) for f in dataclasses.fields(Point)] == [
        (f.name, f.default) for f in dataclasses.fields(Twin)
    ]  # type: ignore[arg-type]
    assert Point(1).sum == 3
    assert Point(1).tags is not Point(1).tags


def test_wrong_arguments() -> None:
    for words, named in (((), {}), ((1, 2, {}, 4), {}), ((1,), {"z": 1})):
        with pytest.raises(TypeError):
            Point(*words, **named)


def test_frozen_and_slotted() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")


def test_equal_by_class_and_fields() -> None:
    assert Span(0, 1, 2) == Span(0, 1, 2) != Span(0, 1, 3)
    assert Span(0, 1, 2) != (0, 1, 2)
    assert len({Span(0, 1, 2), Span(0, 1, 2)}) == 1


def test_replace_copy_pickle() -> None:
    frame = Frame("mlp", "a.py", 3)
    assert dataclasses.replace(frame, line=4) == Frame("mlp", "a.py", 4)
    assert copy.copy(frame) == copy.deepcopy(frame) == pickle.loads(pickle.dumps(frame)) == frame
    assert dataclasses.replace(Facts(), engine="vllm").engine == "vllm"


def test_patterns() -> None:
    match Point(1, 5):
        case Point(1, y):
            assert y == 5
        case _:
            pytest.fail("no match")


def test_a_draft_may_change_and_has_no_hash() -> None:
    @draft
    class Group:
        name: str
        members: list[int] = field(default_factory=list)

    one, two = Group("a"), Group("a")
    assert one == two
    one.members.append(3)
    assert one != two
    two.name = "b"
    assert repr(two).endswith("Group(name='b', members=[])")
    assert replace(one, name="c").members is one.members
    with pytest.raises(TypeError):
        hash(one)
    with pytest.raises(AttributeError):
        one.other = 1  # type: ignore[attr-defined]
