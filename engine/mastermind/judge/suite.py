"""What a candidate is judged by: checks in three splits, material for the box, and a measure.

A suite says what is asked and what is right; the judge decides how it is asked, so a suite holds no rule of
the judging. Trees that it is shown stand for the workspace's directory: the paths in them are those of
`Component.paths` and `Proposal.files`. Source: steering spec §3 idea 13, mindX spec §6.4.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


class Split(StrEnum):
    """Who may know of a check."""

    WORK = "work"
    """Proposers see it and work with it: a project's own tests."""
    CHOOSE = "choose"
    """Candidates are compared with each other by it; proposers do not see it."""
    SEALED = "sealed"
    """Asked only when the judge decides; nobody else sees it or its answers."""


VISIBLE = (Split.WORK, Split.CHOOSE)
"""What is asked before a decision is due."""


class Outcome(StrEnum):
    """What came of a check in one tree."""

    HOLDS = "holds"
    FAILS = "fails"
    """It ran and was wrong; an error and a limit that was reached are wrong, too."""
    SKIPPED = "skipped"
    """It was there and did not run."""
    MISSING = "missing"
    """Nobody reported it: its process ended without a word."""


class Measured(StrEnum):
    """How the cost of a check is taken."""

    TIME = "time"
    """Processor time, by the kernel, from outside of the candidate's process; no two runs are alike."""
    STEPS = "steps"
    """Lines of Python that were run, in a run apart; the same in each run, blind to work inside of C."""
    REPORTED = "reported"
    """`Report.cost`, as the suite's own `examine` says; of use where no candidate code runs."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a better candidate has more or less of."""

    unit: str
    """`processor time`, `steps`, `goals achieved`."""
    better: str = "less"
    """`less` or `more`."""
    how: Measured = Measured.REPORTED
    relative: bool = False
    """Whether differences count in percent of what it was before; always so for time."""
    least: float = 0.0
    """The gain that its interval has to exceed, in the unit or in percent. Time needs some: where code lies
    in memory moves it by a percent or so without anything being better."""

    def __post_init__(self) -> None:
        if self.better not in ("less", "more"):
            raise ValueError(f"a measure is better with less or more, not with {self.better!r}")

    @classmethod
    def time(cls, least: float = 2.0) -> Measure:
        """Processor time, in percent saved."""
        return cls("% of processor time saved", "less", Measured.TIME, relative=True, least=least)

    @classmethod
    def steps(cls, least: float = 0.0) -> Measure:
        """Lines run, in percent saved."""
        return cls("% of steps saved", "less", Measured.STEPS, relative=True, least=least)


@dataclass(frozen=True, slots=True)
class Call:
    """A question to candidate code: call this with that."""

    target: str
    """`module:name` or `module:Class.name`, as the box's import path finds it."""
    args: tuple[Any, ...] = ()
    """Plain values: None, bool, int, float, complex, str, bytes, tuple, list, set, frozenset, dict."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Right:
    """The right answer to a call: a value, or the name of an exception's class."""

    value: Any = None
    raises: str = ""
    """`ValueError`; empty where a value is right."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is asked of a tree, in a process of its own.

    Exactly one of `calls`, `test` and `data` says what: calls of candidate code in the box, a test of the
    material that pytest runs in the box, or anything that the suite's `examine` understands.
    """

    id: str
    """Unique in the suite; a word for people: `stats.mean of 3 numbers`, `tests/test_stats.py::test_mean`."""
    split: Split
    calls: tuple[Call, ...] = ()
    test: str = ""
    """A node of pytest, from the suite's root: `tests/test_stats.py::test_mean[3]`."""
    data: Any = None
    expected: tuple[Right, ...] = ()
    """The right answer to each call. Without any, what the tree before answers is right: the same values, the
    same exceptions, the same changes to the arguments."""
    family: str = ""
    """What it has in common with others, such as the function that is asked: a candidate that gets every
    visible one of a family right and most of the sealed ones wrong has learned the answers by heart."""
    measured: bool = False
    """Whether its cost counts for the gain. It is then asked in alternating pairs."""
    tolerance: float = 1e-9
    """By how much numbers may differ, relative to the larger."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one check in one tree."""

    check: str
    outcome: Outcome
    text: str = ""
    """What was wrong, in a line or a few; not cleaned."""
    answers: tuple[Any, ...] = ()
    """As the box told them, in JSON."""
    cost: float | None = None
    """In the measure's unit; None where nothing was measured."""


class Suite(Protocol):
    """What is asked of one component."""

    @property
    def key(self) -> str:
        """A hash of all that it asks and of its material: the same verdict may be given again under it."""

    @property
    def measure(self) -> Measure | None:
        """What its measured checks count; None when it only has right and wrong."""

    def checks(self, split: Split) -> Sequence[Check]:
        """The checks of a split, in any order."""

    def owns(self, path: str) -> bool:
        """Whether a file, from the workspace's directory, is the suite's: no candidate may touch it."""


@runtime_checkable
class Boxed(Protocol):
    """A suite whose checks run candidate code; the judge runs it in a jail (`calls` and `test`)."""

    @property
    def root(self) -> str:
        """The project's directory, from the workspace's (`.` for itself), where its code and pytest run."""

    @property
    def imports(self) -> tuple[str, ...]:
        """Directories below the root that modules are found in: `(".",)`, `("src",)`."""

    @property
    def packages(self) -> tuple[Path, ...]:
        """Directories of this machine with packages that it needs, pytest's among them; read only."""

    @property
    def plugins(self) -> tuple[str, ...]:
        """Modules of pytest's plugins that its tests need, such as `pytest_asyncio.plugin`."""

    def material(self, split: Split) -> Mapping[str, bytes]:
        """Files of the suite that a split needs in the box, by path from the workspace's directory.

        They are laid over both trees alike. Tests are among them, expected answers are not.
        """


@runtime_checkable
class Examining(Protocol):
    """A suite that runs no candidate code, for the candidate is data: it examines the tree by itself."""

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """What comes of a check (`data`) in a tree. It has to be the same for the same arguments."""


def divided(
    items: Iterable[T], seed: int, *, work: float = 0.4, choose: float = 0.2
) -> dict[Split, tuple[T, ...]]:
    """Items split by chance into work, choose and sealed, the same for the same seed.

    Args:
        items: what is to be split, in an order that is always the same.
        seed: of the campaign.
        work: share that proposers see.
        choose: share by which candidates are chosen; the rest is sealed.
    """
    shuffled = list(items)
    random.Random(f"split {seed}").shuffle(shuffled)
    first, second = round(len(shuffled) * work), round(len(shuffled) * (work + choose))
    return {
        Split.WORK: tuple(shuffled[:first]),
        Split.CHOOSE: tuple(shuffled[first:second]),
        Split.SEALED: tuple(shuffled[second:]),
    }


def placed(check: Check, split: Split) -> Check:
    """The check in a split."""
    return replace(check, split=split)
