"""A late dataclass is what `dataclasses.dataclass` makes of the same class."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import ClassVar

import pytest
from pydantic import TypeAdapter

from engine.value import dataclass, field, fields, is_dataclass, replace


@dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    limit: ClassVar[int] = 9
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Named(Point):
    """A place with a name."""

    name: str = ""
    length: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.name))


def test_fields_are_there_before_and_after_the_first_instance() -> None:
    assert is_dataclass(Named)
    assert [each.name for each in fields(Named)] == ["x", "y", "names", "name", "length"]
    assert Named.__match_args__ == ("x", "y", "names", "name")
    assert Named.__slots__ == ("name", "length")
    value = Named(1, name="here")
    assert (value.y, value.names, value.length, value.limit) == (2, [], 4, 9)
    assert dataclasses.asdict(value) == {"x": 1, "y": 2, "names": [], "name": "here", "length": 4}


def test_what_is_said_compared_hashed_and_copied_is_as_usual() -> None:
    value = Point(1, names=["a"])
    assert repr(value) == "Point(x=1, y=2, names=['a'])"
    assert value == Point(1)
    assert hash(value) == hash(Point(1))
    assert value != Named(1)
    assert replace(value, x=3) == Point(3)
    assert copy.copy(value) == pickle.loads(pickle.dumps(value)) == value
    match value:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_it_is_frozen_and_has_no_room_for_more() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    assert not hasattr(Point(1), "__dict__")


def test_pydantic_reads_and_writes_it_as_a_dataclass() -> None:
    adapter = TypeAdapter(Point)
    assert adapter.validate_python({"x": "5"}) == Point(5)
    assert adapter.dump_python(Point(5)) == {"x": 5, "y": 2, "names": []}
