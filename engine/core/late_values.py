"""A mapping whose values are read from text when they are first used."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

V = TypeVar("V")


class LateValues(UserDict[str, V]):
    """Values by name, in the order in which they came; a state of many old plans is there at once.

    Args:
        values: what is known already.
        texts: values as text, behind those.
        read: makes a value of its text.
    """

    def __init__(
        self,
        values: Mapping[str, V] | None = None,
        texts: Mapping[str, str] | None = None,
        read: Callable[[str], V] | None = None,
    ) -> None:
        # No value is a text itself.
        self.data: dict[str, Any] = {**(values or {}), **(texts or {})}
        self._read = read

    def copy(self) -> LateValues[V]:
        """Another mapping of the same values; those that are texts stay so in both."""
        return LateValues(texts=self.data, read=self._read)

    def texts(self) -> Iterator[tuple[str, V | str]]:
        """All values, those not read yet as they are written."""
        return iter(self.data.items())

    def __getitem__(self, key: str) -> V:
        value = self.data[key]
        if isinstance(value, str):
            assert self._read is not None
            value = self.data[key] = self._read(value)
        return value  # type: ignore[no-any-return]

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.data)
