"""Packing a context package into a budget: valid JSON always, and what matters most stays.

First lists are cut to what is to be shown of them, then long texts to their beginnings and ends, then whole
parts go, the last of `Part` first. Where even the situation alone is too long, its texts are cut with a mark
and its plan to the steps that come next.
Source: spec master-loop-and-memory §3.7, §3.16 W20 and W21, §5 item 39.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from engine.domain.plan import PlanStep
from engine.journal.event import canonical
from engine.memory.context_parts import ends, head
from engine.memory.package import OF_MEMORIES, SHOW, ContextPackage, Item, Part, Section

CHARACTERS_PER_TOKEN = 4
"""The rule of thumb where nobody counts (seed AML, token estimation)."""
MINIMUM_TOKENS = 400
"""Smallest budget; the situation with all its texts cut fits into it."""

Estimate = Callable[[str], int]
"""Tokens that a block's text will take in the prompt."""

TEXTS = (2_000, 1_000, 500)
"""Characters that stay of each text of an entry, before whole parts go."""
_UNCUT = 1_000_000_000

_CUTS: tuple[tuple[int, int], ...] = (
    (100, 8_000),
    (60, 4_000),
    (40, 2_000),
    (20, 1_000),
    (12, 500),
    (8, 250),
    (5, 120),
    (3, 60),
    (1, 24),
    (1, 8),
)
"""How far the situation is cut: steps of the plan and errors that stay, characters of each text."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text, four characters a token, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """One part as it stands in a prompt."""

    part: Part
    text: str
    """JSON."""
    tokens: int
    omitted: int = 0
    """Entries that were read and are not shown."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """What of a package is shown."""

    package: ContextPackage
    shrunk: frozenset[Part] = frozenset()
    """Lists that are cut to what is to be shown of them."""
    texts: int = _UNCUT
    """Characters of each text of an entry."""
    dropped: tuple[Part, ...] = ()
    situation: tuple[int, int] = (_UNCUT, _UNCUT)
    """Steps of the plan, and characters of each text."""


@dataclass(slots=True)
class _Told:
    """In which part each memory is told, so that it is told once."""

    where: dict[str, Part] = field(default_factory=dict)

    def entry(self, part: Part, item: Item) -> Item:
        """An entry, or where it stands already."""
        if part not in OF_MEMORIES:
            return item
        ident = str(item.get("id", ""))
        before = self.where.setdefault(ident, part)
        if before is part:
            return item
        link = {"link": item["link"]} if "link" in item else {}
        return {"id": ident, "see": str(before), **link}


def pack(
    package: ContextPackage, budget_tokens: int, estimate: Estimate = estimate_tokens
) -> tuple[PackedBlock, ...]:
    """The package as blocks of JSON whose tokens are within a budget, in the order of the parts.

    Args:
        package: what was gathered.
        budget_tokens: tokens that all blocks together may take, at least `MINIMUM_TOKENS`.
        estimate: tokens of a block's text, with whatever stands around it in the prompt.

    Raises:
        ValueError: the budget is too small for the situation alone, however much of it is cut.
    """
    if budget_tokens < MINIMUM_TOKENS:
        raise ValueError(f"the budget is {budget_tokens} tokens and must be at least {MINIMUM_TOKENS}")
    # Most parts stay as they are from one cut to the next.
    estimated = cache(estimate)
    for cut in _cuts(package):
        blocks = _rendered(cut, estimated)
        if sum(block.tokens for block in blocks) <= budget_tokens:
            return blocks
    raise ValueError(f"not even the situation fits into {budget_tokens} tokens: allow more")


def shown_tokens(package: ContextPackage, estimate: Estimate = estimate_tokens) -> dict[Part, int]:
    """Tokens of each part with all lists cut to what is to be shown of them, nothing dropped."""
    blocks = _rendered(_Cut(package, frozenset(SHOW)), estimate)
    return {block.part: block.tokens for block in blocks}


def _cuts(package: ContextPackage) -> Iterator[_Cut]:
    """Ways of showing a package, each smaller than the one before."""
    yield _Cut(package)
    shrunk: frozenset[Part] = frozenset()
    for part in _last_first():
        if part in SHOW:
            shrunk |= {part}
            yield _Cut(package, shrunk)
    for texts in TEXTS:
        yield _Cut(package, shrunk, texts)
    dropped: tuple[Part, ...] = ()
    for part in _last_first():
        dropped = (*dropped, part)
        yield _Cut(package, shrunk, texts, dropped)
    for situation in _CUTS:
        yield _Cut(package, shrunk, texts, dropped, situation)


def _last_first() -> Iterator[Part]:
    """The parts that may go, in the order in which they do."""
    return (part for part in reversed(Part) if part is not Part.SITUATION)


def _rendered(cut: _Cut, estimate: Estimate) -> tuple[PackedBlock, ...]:
    situation = canonical(_situation(cut))
    blocks = [PackedBlock(Part.SITUATION, situation, estimate(situation))]
    told = _Told()
    for section in cut.package.sections:
        shown = section.items or section.digest
        if section.part is Part.SITUATION or section.part in cut.dropped or not shown:
            continue
        value, omitted = _section(section, cut, told)
        text = canonical(value)
        blocks.append(PackedBlock(section.part, text, estimate(text), omitted))
    return tuple(blocks)


def _section(section: Section, cut: _Cut, told: _Told) -> tuple[dict[str, Any], int]:
    """A part as JSON, and how many of its entries are not shown."""
    value: dict[str, Any] = {"retrieved_at": section.retrieved_at}
    if section.stale:
        value["stale"] = "this could not be read again and may be out of date"
    if section.digest is not None:
        value["summary"] = section.digest.text
        value["of"] = section.digest.of
        value["by"] = "counted, no model wrote it" if section.digest.computed else "a model's summary"
        return value, 0
    items = section.items[: SHOW[section.part]] if section.part in cut.shrunk else section.items
    value["items"] = [_shortened(told.entry(section.part, item), cut.texts) for item in items]
    omitted = len(section.items) - len(items)
    if omitted:
        value["omitted"] = omitted
    return value, omitted


def _shortened(value: Any, limit: int) -> Any:
    """An entry whose texts are cut to their beginnings and ends."""
    if isinstance(value, str):
        return ends(value, limit)
    if isinstance(value, Mapping):
        return {name: _shortened(inner, limit) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shortened(inner, limit) for inner in value]
    return value


def _situation(cut: _Cut) -> dict[str, Any]:
    """The current goal, what is planned and what went wrong; and what the prompt does not tell."""
    package, (count, limit) = cut.package, cut.situation
    asked = package.question.situation
    value: dict[str, Any] = {
        "retrieved_at": package.gathered_at,
        "goal": head(asked.goal, limit),
        "last_error": head(asked.last_error, limit),
        "next_step": head(asked.next_step, limit),
    }
    steps, before, after = _window(asked.plan, count)
    value["plan"] = [_step(step, limit) for step in steps]
    value |= {name: number for name, number in (("done_before", before), ("more_steps", after)) if number}
    lost = [section.part for section in package.sections if section.part in cut.dropped and section.items]
    if lost:
        value["left_out_for_length"] = [str(part) for part in lost]
    if package.errors:
        value["not_readable"] = [
            {"part": str(one.part), "error": head(one.error, min(limit, 200))}
            for one in package.errors[:count]
        ]
    return value


def _window(plan: tuple[PlanStep, ...], count: int) -> tuple[tuple[PlanStep, ...], int, int]:
    """So many steps from the first open one on, as many before it as there is room for; the rest counted."""
    if len(plan) <= count:
        return plan, 0, 0
    first = next((place for place, step in enumerate(plan) if not step.status.terminal), len(plan) - 1)
    start = max(0, min(first, len(plan) - count))
    return plan[start : start + count], start, len(plan) - start - count


def _step(step: PlanStep, limit: int) -> Mapping[str, Any]:
    call = f"{step.tool} {step.command}".strip()
    told = {
        "id": head(step.id, limit),
        "does": head(step.description or call, limit),
        "status": str(step.status),
        "summary": head(step.summary, limit),
    }
    return {name: value for name, value in told.items() if value}
