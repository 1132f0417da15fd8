"""The board over all shards of a fleet: a row for each agent, from what the shards' engines answer.

Pure but for what it remembers: of an agent whose answer is the same no row is made again, so that ten
thousand of them can be looked at each second.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

from engine.core.text import clean_line
from engine.value import dataclass, field
from widgets.dialogs.fleet import FleetModel
from widgets.panes.fleet_grid import FleetRow, label_at

_STANDS = {
    "running": ("▶", "accent"),
    "paused": ("⏸", "text"),
    "waiting": ("?", "warning"),
    "ended": ("✗", "error"),
}
"""Mark and colour of a word; a dot for all others."""


@dataclass(frozen=True, slots=True)
class ShardView:
    """What the engine of a shard answered."""

    number: int
    name: str
    agents: Sequence[Mapping[str, Any]] = ()
    needs: Sequence[Mapping[str, Any]] = ()
    """What waits for the operator, the most urgent first."""
    trouble: str = ""
    """Why it did not answer; what it answered last is shown."""


_DIGITS = re.compile(r"(\d+)")
_Known = tuple[Mapping[str, Any], Mapping[str, Any] | None, FleetRow]


class _Part(NamedTuple):
    """What the board shows of a shard."""

    asking: list[FleetRow]
    """Of agents that need the operator, the most urgent first."""
    others: list[FleetRow]
    states: Counter[str]
    """How many agents are in which."""
    trouble: str


@dataclass(slots=True)
class ShardBoard:
    """Makes the board's models, and gives each agent the label that it keeps."""

    _known: dict[int, dict[str, _Known]] = field(default_factory=dict)
    """By shard, in the order of the agents' names: what was answered of each, and its row."""
    _parts: dict[int, _Part] = field(default_factory=dict)
    _labels: Iterator[int] = field(default_factory=count)

    def take(self, shard: ShardView) -> None:
        """Take up what a shard answered; `model` shows it."""
        needs: dict[str, Mapping[str, Any]] = {}
        for need in shard.needs:
            needs.setdefault(str(need["agent"]), need)
        known = self._rows_of(shard, needs)
        asking = [known[agent][2] for agent in needs if agent in known]
        others = [row for _, need, row in known.values() if need is None]
        states = Counter([row.state for row in asking]) + Counter([row.state for row in others])
        trouble = f"{shard.name}: {shard.trouble}" if shard.trouble else ""
        self._parts[shard.number] = _Part(asking, others, states, trouble)

    def model(self, message: str = "") -> FleetModel:
        """What the board shows: who needs the operator first, then all agents shard by shard."""
        parts = [self._parts[number] for number in sorted(self._parts)]
        rows = tuple(chain(*(part.asking for part in parts), *(part.others for part in parts)))
        counts = sum((part.states for part in parts), Counter[str]())
        said = [part.trouble for part in parts if part.trouble]
        said.append(f"{len(rows):,} agents on {len(parts)} shards")
        said += [f"{number:,} {word}" for word, number in counts.most_common(5)]
        return FleetModel(rows, clean_line(" · ".join(said), limit=400), message)

    def _rows_of(self, shard: ShardView, needs: Mapping[str, Mapping[str, Any]]) -> dict[str, _Known]:
        """What is known of a shard's agents; new rows are made of those whose answer is another."""
        known, new = self._known.setdefault(shard.number, {}), False
        for agent in shard.agents:
            name = str(agent["agent"])
            need, old = needs.get(name), known.get(name)
            if old is None or old[0] != agent or old[1] != need:
                label = old[2].label if old is not None else label_at(next(self._labels))
                row = _agent_row(f"{shard.number} {name}", label, shard, agent, need)
                known[name] = agent, need, row
                new |= old is None
        if len(known) != len(shard.agents):  # some are no longer there
            there = {str(agent["agent"]) for agent in shard.agents}
            known = {name: row for name, row in known.items() if name in there}
        if new:
            known = dict(sorted(known.items(), key=_place))
        self._known[shard.number] = known
        return known


def _place(item: tuple[str, _Known]) -> list[tuple[int, str]]:
    """Where an agent stands by its name, whose numbers count as such."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in _DIGITS.split(item[0])]


def _agent_row(
    key: str, label: str, shard: ShardView, agent: Mapping[str, Any], need: Mapping[str, Any] | None
) -> FleetRow:
    fault, run = str(agent.get("fault", "")), str(agent.get("run", ""))
    run = "idle" if run == "running" and not agent.get("goal") else run
    word = "ended" if fault else "waiting" if need is not None else run or "unknown"
    mark, style = _STANDS.get(word, ("·", "dim"))
    asks = f"{need['kind']}: {need['what']}" if need is not None else ""
    return FleetRow(
        key,
        clean_line(str(agent["agent"]), limit=40),
        mark,
        style,
        word,
        label,
        badge=f"s{shard.number}",
        used=f"${agent.get('cost_usd', 0.0):.2f}",
        work=clean_line(str(agent.get("goal", "")), limit=200),
        note=clean_line(fault or asks, limit=400),
        holder=str(agent.get("holder", "")),
    )
