"""Frozen slotted dataclasses whose methods are generated when the first instance is made.

`dataclasses.dataclass` compiles six methods for each class, 0.8 ms a class; a start imports some three
hundred such classes and makes instances of a few dozen. Here a class costs 0.03 ms at import, and what it is
afterwards is the same: `fields`, `replace`, `match`, copying, pickling and pydantic treat it as a dataclass.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import FrozenInstanceError as FrozenInstanceError
from dataclasses import asdict as asdict
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import is_dataclass as is_dataclass
from dataclasses import replace as replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, **options):
        """As `dataclasses.dataclass`, late where it is asked for `frozen=True, slots=True` and no more."""
        if frozen and slots and not options:
            return _late if cls is None else _late(cls)
        decorate = dataclasses.dataclass(frozen=frozen, slots=slots, **options)
        return decorate if cls is None else decorate(cls)


@dataclasses.dataclass(frozen=True, slots=True)
class _Example:
    """Has what is the same for every frozen slotted dataclass."""


def _set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _stub(name: str) -> Any:
    """Stands for a method until it is called."""

    def late(self: Any, *args: Any, **named: Any) -> Any:
        _generate(type(self), name, late)
        return getattr(self, name)(*args, **named)

    return late


_SHARED = {
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _Example.__getstate__,
    "__setstate__": _Example.__setstate__,  # type: ignore[attr-defined]
    "__dataclass_params__": _Example.__dataclass_params__,  # type: ignore[attr-defined]
}
_FIELDS = "__dataclass_fields__"
_OF_CLASS = re.compile(r"(\w+\.)?(ClassVar|InitVar)\b")
"""Annotations of what is no field."""
_GENERATED = {name: _stub(name) for name in ("__init__", "__eq__", "__hash__", "__repr__")}


class _Fields:
    """Stands for the fields of a late class until they are first read."""

    def __init__(self, written: type[Any]) -> None:
        self._written = written

    def __get__(self, _instance: object, owner: type[Any]) -> dict[str, dataclasses.Field[Any]]:
        holder = next(parent for parent in owner.__mro__ if _FIELDS in vars(parent))
        # Its own fields are read from a class without parents: dataclasses refuse to mix frozen and others.
        own: Any = type(holder.__name__, (), {**vars(self._written), "__slots__": ()})
        dataclasses.dataclass(init=False, repr=False, eq=False)(own)
        fields: dict[str, dataclasses.Field[Any]] = {}
        for parent in holder.__mro__[:0:-1]:
            fields |= getattr(parent, _FIELDS) if _FIELDS in vars(parent) else {}
        fields |= vars(own)[_FIELDS]
        setattr(holder, _FIELDS, fields)
        return fields


def _late(cls: type[Any]) -> type[Any]:
    """The class with slots, and with fields and methods that are generated when they are first needed."""
    written = set(vars(cls))
    if "__eq__" in written and vars(cls).get("__hash__") is None:
        written.discard("__hash__")  # Python itself put None there
    kinds = vars(cls).get("__annotations__", {}).items()
    own = [name for name, kind in kinds if not _OF_CLASS.match(str(kind))]
    namespace = {
        name: value
        for name, value in vars(cls).items()
        if name not in own and name not in ("__dict__", "__weakref__")
    }
    places = [name for parent in cls.__mro__[:0:-1] for name in vars(parent).get("__match_args__", ())]
    places += [name for name in own if getattr(vars(cls).get(name), "init", True)]
    shared = {"__slots__": tuple(own), "__match_args__": tuple(dict.fromkeys(places)), _FIELDS: _Fields(cls)}
    namespace |= shared
    namespace |= {name: value for name, value in (_SHARED | _GENERATED).items() if name not in written}
    make: Any = type(cls)
    fresh: type[Any] = make(cls.__name__, cls.__bases__, namespace)
    fresh.__qualname__ = cls.__qualname__
    return fresh


def _generate(cls: type[Any], name: str, stub: Any) -> None:
    """Put the real method in the place of the stub, unless another thread has done so.

    It is what `dataclasses` would write, which can only write all methods at once.
    """
    holder = next((parent for parent in cls.__mro__ if vars(parent).get(name) is stub), None)
    if holder is None:
        return
    known: dict[str, Any] = {"_set": object.__setattr__, "_absent": dataclasses.MISSING}
    fields = dataclasses.fields(holder)
    compared = [each.name for each in fields if each.compare]
    mine, theirs = ("".join(f"{one}.{each}, " for each in compared) for one in ("self", "other"))
    if name == "__init__":
        text = _initialiser(holder, known)
    elif name == "__eq__":
        same = "NotImplemented if other.__class__ is not self.__class__ else"
        text = f"def __eq__(self, other):\n  return {same} ({mine}) == ({theirs})"
    elif name == "__hash__":
        text = f"def __hash__(self):\n  return hash(({mine}))"
    else:
        shown = ", ".join(
            f"{each.name}={{self.{each.name}!r}}" for each in dataclasses.fields(holder) if each.repr
        )
        text = f"def __repr__(self):\n  return f'{{self.__class__.__qualname__}}({shown})'"
    exec(compile(text, f"<{holder.__qualname__}>", "exec"), known)
    known[name].__qualname__ = f"{holder.__qualname__}.{name}"
    setattr(holder, name, known[name])


def _initialiser(holder: type[Any], known: dict[str, Any]) -> str:
    """The text of `__init__`; defaults are put among what it knows."""
    taken, lines = ["self"], ["  pass"]
    for each in dataclasses.fields(holder):
        name, made = each.name, each.default_factory is not dataclasses.MISSING
        known[usual := f"_usual_{name}"] = each.default_factory if made else each.default
        value = f"{usual}()" if made else usual
        if each.init and known[usual] is dataclasses.MISSING:
            taken.append(name)
            value = name
        elif each.init:
            taken.append(f"{name}={'_absent' if made else usual}")
            value = f"{value} if {name} is _absent else {name}" if made else name
        elif known[usual] is dataclasses.MISSING:
            continue
        lines.append(f"  _set(self, {name!r}, {value})")
    if hasattr(holder, "__post_init__"):
        lines.append("  self.__post_init__()")
    return "\n".join((f"def __init__({', '.join(taken)}):", *lines))


def fields_of(source: object, *names: str) -> dict[str, Any]:
    """Some fields of a value by their names."""
    return {name: getattr(source, name) for name in names}
