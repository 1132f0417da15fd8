"""A mapping whose values are read from text when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

V = TypeVar("V")


class LateValues(MutableMapping[str, V]):
    """Values by name, in the order in which they came; a state of many old plans is there at once.

    Args:
        values: what is known already.
        texts: values as text, behind those.
        read: makes a value of its text.
    """

    __slots__ = ("_read", "_values")

    def __init__(
        self,
        values: Mapping[str, V] | None = None,
        texts: Mapping[str, str] | None = None,
        read: Callable[[str], V] | None = None,
    ) -> None:
        # No value is a text itself.
        self._values: dict[str, Any] = {**(values or {}), **(texts or {})}
        self._read = read

    def copy(self) -> LateValues[V]:
        """Another mapping of the same values; those that are texts stay so in both."""
        return LateValues(texts=self._values, read=self._read)

    def texts(self) -> Iterator[tuple[str, V | str]]:
        """All values, those not read yet as they are written."""
        return iter(self._values.items())

    def __getitem__(self, key: str) -> V:
        value = self._values[key]
        if isinstance(value, str):
            assert self._read is not None
            value = self._values[key] = self._read(value)
        return value  # type: ignore[no-any-return]

    def __setitem__(self, key: str, value: V) -> None:
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"LateValues({dict(self)!r})"
