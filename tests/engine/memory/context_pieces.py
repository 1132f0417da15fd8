"""Parts made by hand and by hypothesis, without a memory behind them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from engine.memory.context import Item, PackedBlock, Part

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


@st.composite
def gathered(draw: st.DrawFn) -> dict[Part, list[Item]]:
    return {part: draw(st.lists(ITEMS, min_size=1, max_size=12)) for part in Part if draw(st.booleans())}


def entry(ident: str, size: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": ident, "type": "fact", "content": f"{ident} says " + "x" * size, **more}


def parts_of(counts: dict[Part, int], *, size: int = 400) -> dict[Part, list[Item]]:
    """So many entries of each part, each so many characters long, no two alike."""
    return {
        part: [entry(f"{part}-{n}", size) for n in range(counts[part])] for part in Part if part in counts
    }


FULL = {
    Part.WORKING: 20,
    Part.CORE: 1,
    Part.IMPORTANT: 7,
    Part.THOUGHTS: 7,
    Part.LINKS: 5,
    Part.PROACTIVE: 5,
    Part.PROCEDURES: 3,
}


def read(blocks: tuple[PackedBlock, ...]) -> dict[Part, Any]:
    """The blocks' JSON by part; a number that is none, or text that is no JSON, is an error."""

    def refused(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    return {block.part: json.loads(block.text, parse_constant=refused) for block in blocks}
