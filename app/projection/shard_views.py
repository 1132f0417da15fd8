"""The board over all shards of a fleet: a row for each agent, from what the shards' engines answer.

Pure but for what it remembers: of an agent whose answer is the same no row is made again, so that ten
thousand of them can be looked at each second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from engine.core.text import clean_line
from engine.value import dataclass, field, replace
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


_Place = tuple[bool, int, str]
_Known = tuple[Mapping[str, Any], Mapping[str, Any] | None, _Place, FleetRow]


@dataclass(slots=True)
class ShardBoard:
    """Makes the board's models, and gives each agent the label that it keeps."""

    _known: dict[str, _Known] = field(default_factory=dict)

    def model(self, shards: Sequence[ShardView], message: str = "") -> FleetModel:
        """What the board shows: who needs the operator first, then all agents shard by shard."""
        placed: list[tuple[_Place, FleetRow]] = []
        for shard in shards:
            needs = {str(need["agent"]): need for need in reversed(shard.needs)}
            for agent in shard.agents:
                placed.append(self._row(shard, agent, needs.get(str(agent["agent"]))))
        placed.sort(key=lambda pair: pair[0])
        rows = tuple(row for _, row in placed)
        counts = Counter(row.state for row in rows)
        parts = [f"{len(rows):,} agents on {len(shards)} shards"]
        parts += [f"{count:,} {word}" for word, count in counts.most_common(5)]
        parts += [f"{shard.name}: {shard.trouble}" for shard in shards if shard.trouble]
        return FleetModel(rows, clean_line(" · ".join(parts), limit=400), message)

    def _row(
        self, shard: ShardView, agent: Mapping[str, Any], need: Mapping[str, Any] | None
    ) -> tuple[_Place, FleetRow]:
        key = f"{shard.number} {agent['agent']}"
        known = self._known.get(key)
        if known is not None and known[0] == agent and known[1] == need:
            return known[2], known[3]
        label = known[3].label if known is not None else label_at(len(self._known))
        row = replace(_agent_row(key, shard, agent, need), label=label)
        place = (need is None, shard.number, str(agent["agent"]))
        self._known[key] = (agent, need, place, row)
        return place, row


def _agent_row(
    key: str, shard: ShardView, agent: Mapping[str, Any], need: Mapping[str, Any] | None
) -> FleetRow:
    fault, run = str(agent.get("fault", "")), str(agent.get("run", ""))
    word = "ended" if fault else "waiting" if need is not None else run or "unknown"
    mark, style = _STANDS.get(word, ("·", "dim"))
    asks = f"{need['kind']}: {need['what']} (enter opens it)" if need is not None else ""
    return FleetRow(
        key,
        clean_line(str(agent["agent"]), limit=40),
        mark,
        style,
        word,
        badge=f"s{shard.number}",
        used=f"${agent.get('cost_usd', 0.0):.2f}",
        work=clean_line(str(agent.get("goal", "")), limit=200),
        note=clean_line(fault or asks, limit=400),
        holder=str(agent.get("holder", "")),
    )
