"""A numbered case of sandbox spec §6, and what can come of an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Column(StrEnum):
    """Under which jail and by which user a case was tried."""

    NO_JAIL = "no jail"
    FULL_USER = "FULL user"
    FULL_ROOT = "FULL root"
    KERNEL_USER = "KERNEL user"
    KERNEL_ROOT = "KERNEL root"

    @property
    def tier(self) -> str:
        """FULL, KERNEL, or PATHS for no jail."""
        return "PATHS" if self is Column.NO_JAIL else self.value.partition(" ")[0]

    @property
    def root(self) -> bool:
        """Whether root tried it."""
        return self.value.endswith("root")


class Outcome(StrEnum):
    """What came of one attempt."""

    STOPPED = "stopped"
    THROUGH = "through"
    WORKS = "works"
    BROKEN = "broken"
    """What must work did not."""
    ABSENT = "n.a."


@dataclass(frozen=True, slots=True)
class Result:
    """One attempt in one column."""

    name: str
    outcome: Outcome
    said: str = ""
    """The error that stopped it, why it could not be tried, or what got through."""
    allowed: bool = False
    """Whether it may get through here: what KERNEL cannot hide, and everything without a jail."""

    @property
    def bad(self) -> bool:
        """Whether this must not be."""
        return self.outcome is Outcome.BROKEN or (self.outcome is Outcome.THROUGH and not self.allowed)


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the catalogue: what is attempted, what must come of it, and the checks that try it."""

    number: int
    title: str
    attempted: str
    full: str = "refused"
    """What must come of it in the tier FULL, and in KERNEL too unless that says otherwise."""
    kernel: str = ""
    inside: tuple[str, ...] = ()
    """Attempts made in the jail, by name in `tests.security.inside`; they must be stopped."""
    seen: tuple[str, ...] = ()
    """Attempts of the same kind that KERNEL may let through and FULL must stop."""
    works: tuple[str, ...] = ()
    """What must work in the jail."""
    native: tuple[str, ...] = ()
    """Attacks on the file commands, by name in `tests.security.native`."""
    race: tuple[str, ...] = ()
    """Verbs raced against swapped links in `tests.security.race`."""
    tests: tuple[str, ...] = ()
    """Tests of this repository, by node id without parameters."""
    absent: tuple[str, ...] = ()
    """Parts that are not tried here, each with the reason; shown in every run."""
