"""Numbers of the system calls that the filter names, for x86_64 and aarch64."""

from __future__ import annotations

X86_64, AARCH64 = 0xC000003E, 0xC00000B7
"""AUDIT_ARCH of each, as a filter sees it."""
MACHINES = ("x86_64", "aarch64")

with open(f"{__file__.rpartition('.')[0]}.txt", encoding="ascii") as file:  # noqa: PTH123 - it is slow to load
    _ROWS = [line.split() for line in file if not line.startswith("#")]
NUMBERS = {
    name: tuple(None if number == "-" else int(number) for number in numbers) for name, *numbers, _ in _ROWS
}
"""None where an architecture has no such call."""


def named(rule: str) -> str:
    """The calls that the table has a rule for."""
    return " ".join(name for name, *_, of in _ROWS if of == rule)


class Numbers:
    """The numbers of one architecture."""

    def __init__(self, machine: str) -> None:
        """Choose by `os.uname().machine`; KeyError for one that has no table."""
        self.architecture, column = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1)}[machine]
        self._by_name = {name: numbers[column] for name, numbers in NUMBERS.items()}

    def of(self, names: str) -> list[int]:
        """The numbers of calls, named in one string; those that do not exist here are left out."""
        return [number for name in names.split() if (number := self._by_name[name]) is not None]
