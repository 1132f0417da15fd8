"""Packages made by hand and by hypothesis, without a memory behind them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from engine.domain.goal import Goal
from engine.domain.plan import PlanStep, StepStatus
from engine.memory.package import ContextPackage, ContextQuestion, Digest, Part, PartError, Section, Situation
from engine.memory.packing import PackedBlock

STAMP = "2027-01-15T08:00:00.000000Z"
READ = tuple(part for part in Part if part is not Part.SITUATION)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=6,
)
LONG = st.builds(lambda text, times: text * times, st.text(max_size=20), st.integers(1, 200))
ITEMS = st.fixed_dictionaries(
    {"id": st.sampled_from(["m1", "m2", "m3", "a1"]), "content": LONG, "type": st.text(max_size=5)},
    optional={"link": JSON, "status": st.text(max_size=5), "args": JSON},
)
DIGESTS = st.none() | st.builds(
    Digest, LONG, computed=st.booleans(), of=st.integers(0, 20), source=st.just("0" * 64)
)


@st.composite
def sections(draw: st.DrawFn) -> tuple[Section, ...]:
    parts = [part for part in READ if draw(st.booleans())]
    return tuple(
        Section(
            part,
            tuple(draw(st.lists(ITEMS, max_size=12))),
            STAMP,
            stale=draw(st.booleans()),
            digest=draw(DIGESTS),
        )
        for part in parts
    )


STEPS = st.builds(
    PlanStep,
    id=LONG,
    description=LONG,
    tool=st.text(max_size=9),
    status=st.sampled_from(StepStatus),
    summary=LONG,
)
SITUATIONS = st.builds(
    Situation, LONG, plan=st.lists(STEPS, max_size=30).map(tuple), next_step=LONG, last_error=LONG
)
ERRORS = st.lists(st.builds(PartError, st.sampled_from(Part), LONG, st.just(STAMP)), max_size=9).map(tuple)
PACKAGES = st.builds(
    ContextPackage, st.builds(ContextQuestion, st.just("w1"), SITUATIONS), st.just(STAMP), sections(), ERRORS
)


def entry(ident: str, size: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": ident, "type": "fact", "content": f"{ident} says " + "x" * size, **more}


def package(
    counts: dict[Part, int],
    *,
    size: int = 400,
    situation: Situation | None = None,
    errors: tuple[PartError, ...] = (),
) -> ContextPackage:
    """A package with so many entries of each part, each so many characters long, no two alike."""
    found = tuple(
        Section(
            part, tuple(entry(f"{part}-{number}", size) for number in range(counts.get(part, 0))), STAMP, 1
        )
        for part in Part
    )
    return ContextPackage(ContextQuestion("w1", situation or Situation("go")), STAMP, found, errors)


FULL = {
    Part.GOALS: 6,
    Part.WORKING: 20,
    Part.CORE: 1,
    Part.ACTIONS: 10,
    Part.IMPORTANT: 7,
    Part.THOUGHTS: 7,
    Part.LINKS: 5,
    Part.PROACTIVE: 5,
    Part.PROCEDURES: 3,
}


def above(number: int) -> tuple[Goal, ...]:
    return tuple(Goal(f"g{n}", f"goal {n}") for n in range(number))


def read(blocks: tuple[PackedBlock, ...]) -> dict[Part, Any]:
    """The blocks' JSON by part; a number that is none, or text that is no JSON, is an error."""

    def refused(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    return {block.part: json.loads(block.text, parse_constant=refused) for block in blocks}
