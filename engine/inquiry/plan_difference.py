"""What changed between two revisions of a plan: steps added, removed, changed and moved.

Steps are paired by id, then by what they do, as a plan made anew gives new ids to steps that stayed the same.
Source: spec steering §6 idea 10 (a re-plan arrives as a diff).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from engine.domain.plan import PlanStep
from engine.journal.event import canonical

_FIELDS = ("op", "tool", "command", "args", "depends_on", "group", "description")


@dataclass(frozen=True, slots=True)
class Changed:
    """A step that does something else than before."""

    old: PlanStep
    new: PlanStep
    fields: tuple[str, ...]
    """What of it changed: names of `PlanStep`'s fields."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A step whose place among the steps that stayed is another one."""

    step: PlanStep
    """As it is now."""
    was: int
    """Its place before, from 1."""
    now: int
    """Its place now, from 1."""


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """How a revision differs from the one before."""

    added: tuple[PlanStep, ...] = ()
    removed: tuple[PlanStep, ...] = ()
    changed: tuple[Changed, ...] = ()
    moved: tuple[Moved, ...] = ()
    kept: int = 0
    """Steps that do the same as before, moved ones among them."""

    @property
    def empty(self) -> bool:
        """True when both revisions do the same in the same order."""
        return not (self.added or self.removed or self.changed or self.moved)


def difference(old: Sequence[PlanStep], new: Sequence[PlanStep]) -> PlanDifference:
    """What changed from one list of steps to another; how far a step has got is no change.

    Args:
        old: the steps before.
        new: the steps after.
    """
    pairs = _pairs(old, new)
    taken = set(pairs.values())
    names = {old[before].id: new[after].id for after, before in pairs.items()}
    changes = {after: _changes(old[before], new[after], names) for after, before in pairs.items()}
    stay = _in_order([pairs[after] for after in sorted(pairs)])
    return PlanDifference(
        added=tuple(step for at, step in enumerate(new) if at not in pairs),
        removed=tuple(step for at, step in enumerate(old) if at not in taken),
        changed=tuple(
            Changed(old[pairs[after]], new[after], changes[after])
            for after in sorted(pairs)
            if changes[after]
        ),
        moved=tuple(
            Moved(new[after], pairs[after] + 1, after + 1)
            for after in sorted(pairs)
            if pairs[after] not in stay
        ),
        kept=sum(not changed for changed in changes.values()),
    )


def _pairs(old: Sequence[PlanStep], new: Sequence[PlanStep]) -> dict[int, int]:
    """Places of steps that are the same step, new to old."""
    found: dict[int, int] = {}
    by: tuple[Callable[[PlanStep], Hashable], ...] = (
        lambda step: step.id,
        lambda step: (step.op, step.tool, step.command, _text(step.args), step.description),
        lambda step: (step.op, step.tool, step.command, _text(step.args)),
        lambda step: (step.op, step.tool, step.command, _target(step)),
    )
    for key in by:
        free: dict[Hashable, list[int]] = {}
        taken = set(found.values())
        for at, step in enumerate(old):
            if at not in taken:
                free.setdefault(key(step), []).append(at)
        for at, step in enumerate(new):
            if at not in found and (places := free.get(key(step))):
                found[at] = places.pop(0)
    return found


def _text(args: object) -> str:
    return canonical(args)


def _target(step: PlanStep) -> Hashable:
    """What a call is about: its path or first argument; a step without arguments is like no other."""
    first = step.args.get("path", next(iter(sorted(step.args.items())), None))
    return step.id if first is None else str(first)


def _changes(old: PlanStep, new: PlanStep, names: dict[str, str]) -> tuple[str, ...]:
    """The fields that differ; dependencies count by the steps that they mean, not by their ids."""
    changed = []
    for name in _FIELDS:
        before, after = getattr(old, name), getattr(new, name)
        if name == "depends_on":
            before = {names[one] for one in before if one in names}
            after = {one for one in after if one in names.values()}
        if before != after:
            changed.append(name)
    return tuple(changed)


def _in_order(places: Sequence[int]) -> set[int]:
    """A longest run of places that are in their old order; what is not in it has moved."""
    ends: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for at, place in enumerate(places):
        reach = bisect_left(ends, place)
        before.append(tails[reach - 1] if reach else -1)
        if reach == len(ends):
            ends.append(place)
            tails.append(at)
        else:
            ends[reach], tails[reach] = place, at
    stay: set[int] = set()
    at = tails[-1] if tails else -1
    while at >= 0:
        stay.add(places[at])
        at = before[at]
    return stay
