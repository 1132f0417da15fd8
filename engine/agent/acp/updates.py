"""What a program tells of its session: words, its plan, tool calls of its own, what can be chosen, costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from engine.core.text import clean_line
from engine.models.messages import Piece, PieceKind
from engine.value import dataclass, field

CALLS_KEPT, DIFFS_KEPT, ENTRIES_MOST = 500, 16, 100
"""Tool calls that are remembered, those whose diffs are, and entries of a plan that are shown."""
SAID = 20_000
"""Characters that are kept of what it said in a turn."""
LINE = 120
"""Characters of an entry or a title."""

ENDED = ("completed", "failed")
"""Statuses of a tool call that is over."""


@dataclass(eq=False, slots=True)
class ToolCall:
    """A tool call of the program's own, as it tells of it."""

    title: str = ""
    kind: str = "other"
    status: str = ""
    content: str = ""
    diff: tuple[str, str | None, str] | None = None
    """Path, text before and text after of what it changes first."""
    path: str = ""
    """The first path that it names."""
    command: str | list[Any] = ""
    """What it runs."""
    asked: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class Taken:
    """What the program says it took of models so far."""

    tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended."""

    reason: str
    """The protocol's reason, such as `end_turn`; `failed` where the program did not say one."""
    text: str = ""
    """What the program said last, or what went wrong."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A session that the program may still know."""

    session: str = ""
    """The program's own id of it; empty for none."""
    forked: bool = False
    """Whether it is the session of the agent that this one is a fork of."""


class Updates:
    """Takes updates in.

    Args:
        hear: takes pieces of what the program says and thinks.
        changed: called when there is a new plan.
        shorten: takes what stands before the workspace's paths out of a text.
    """

    def __init__(
        self, hear: Callable[[Piece], None], changed: Callable[[], None], shorten: Callable[[str], str] = str
    ) -> None:
        self._hear, self._changed, self._shorten = hear, changed, shorten
        self._speaking: PieceKind | None = None
        """What the message is a piece of that is not over: `text` or `thinking`."""
        self.options: dict[str, dict[str, Any]] = {}
        """What can be chosen, by id: `name`, `value`, `values`."""
        self.plan: tuple[tuple[str, str], ...] | None = None
        """The program's plan where it changed since somebody took it: entries with their status."""
        self.taken = Taken()
        self.calls: dict[str, ToolCall] = {}
        self.said = ""
        """The end of what it said in this turn."""
        self.count = 0
        """Updates of this turn."""

    def take_options(self, given: Mapping[str, Any]) -> None:
        """Take what can be chosen in the session, of both forms that the protocol has."""
        for name, listed, ident in (
            ("mode", "availableModes", "id"),
            ("model", "availableModels", "modelId"),
        ):
            if isinstance(known := given.get(f"{name}s"), dict):
                values = [str(each.get(ident))[:200] for each in dicts(known.get(listed))]
                current = known.get(f"current{name.title()}Id")
                self.options[name] = {"name": name, "value": current, "values": values, "own": True}
        for option in dicts(given.get("configOptions")):
            groups = dicts(option.get("options"))
            leaves = [leaf for group in groups for leaf in (dicts(group.get("options")) or [group])]
            ident = str(option.get("id"))[:60]
            self.options[ident] = {
                "name": clean_line(str(option.get("name", ident)), limit=60),
                "value": option.get("currentValue"),
                "values": [str(leaf.get("value"))[:200] for leaf in leaves][:200],
            }

    def take(self, update: Any) -> None:
        """Take one update; what is none of the protocol's counts and is left alone."""
        self.count += 1
        if not isinstance(update, dict):
            return
        match update.get("sessionUpdate"):
            case "agent_message_chunk" | "agent_thought_chunk" as kind:
                content = update.get("content")
                text = content.get("text") if isinstance(content, dict) else None
                if isinstance(text, str):
                    spoken = kind == "agent_message_chunk"
                    self.said = (self.said + text)[-SAID:] if spoken else self.said
                    self._speaking = "text" if spoken else "thinking"
                    self._hear(Piece(self._speaking, text))
            case "tool_call" | "tool_call_update" as kind:
                if kind == "tool_call" and self._speaking:  # what it says next is another message
                    self.said = f"{self.said.rstrip()}\n\n" if self.said else ""
                    self._hear(Piece(self._speaking, "\n\n"))
                    self._speaking = None
                self.take_call(update)
            case "plan":
                entries = dicts(update.get("entries"))[:ENTRIES_MOST]
                lines = (
                    (clean_line(self._shorten(str(e.get("content", ""))), limit=LINE), e.get("status"))
                    for e in entries
                )
                self.plan = tuple((text, str(status)) for text, status in lines if text)
                self._changed()
            case "current_mode_update" if "mode" in self.options:
                self.options["mode"]["value"] = str(update.get("currentModeId"))[:200]
            case "config_option_update":
                self.take_options(update)
            case "usage_update":
                cost = update.get("cost")
                amount = (
                    cost.get("amount") if isinstance(cost, dict) and cost.get("currency") == "USD" else None
                )
                if isinstance(amount, int | float) and 0 <= amount < 1e6:
                    self.taken.usd = float(amount)

    def take_end(self, answer: Any, label: str) -> TurnEnd:
        """How a turn ended by the program's answer to its prompt."""
        known = answer if isinstance(answer, dict) else {}
        usage, reason = known.get("usage"), known.get("stopReason")
        if isinstance(usage, dict) and isinstance(total := usage.get("totalTokens"), int) and total >= 0:
            self.taken.tokens += total
        if not isinstance(reason, str):
            return TurnEnd("failed", f"{label} ended its turn without a reason")
        return TurnEnd(reason, self.said)

    def take_call(self, told: Mapping[str, Any]) -> ToolCall:
        """Take what the program tells of one of its tool calls."""
        ident = str(told.get("toolCallId"))[:200]
        call = self.calls.setdefault(ident, ToolCall())
        again = told.get("sessionUpdate") != "tool_call_update" and told.get("status") not in ENDED
        if call.over.is_set() and again:
            call = self.calls[ident] = ToolCall()  # the name is used once more
        for name in ("title", "kind", "status"):
            if isinstance(value := told.get(name), str):
                setattr(call, name, self._shorten(value[:1_000]))
        self._take_details(call, told)
        texts = [part.get("content") for part in dicts(told.get("content")) if part.get("type") == "content"]
        if said := "\n".join(str(text.get("text", "")) for text in texts if isinstance(text, dict)):
            call.content = said[:100_000]
        if call.status in ENDED and not call.over.is_set():
            call.over.set()
            if not call.asked:
                what = clean_line(f"{call.kind} {call.title}", limit=LINE)
                self._hear(Piece("tool_input", f"{what}: {call.status}, not asked about\n"))
        if len(self.calls) > CALLS_KEPT:
            self.calls.pop(next(iter(self.calls)))
        return call

    def _take_details(self, call: ToolCall, told: Mapping[str, Any]) -> None:
        """Take what a call changes or runs, which not every program says once more where it asks leave."""
        for part in dicts(told.get("content")):
            path, old, new = part.get("path"), part.get("oldText"), part.get("newText")
            if part.get("type") == "diff" and isinstance(path, str) and isinstance(new, str):
                call.diff = (path, old if isinstance(old, str) else None, new)
                for forgotten in list(self.calls.values())[:-DIFFS_KEPT]:
                    forgotten.diff = None
                break
        paths = [place.get("path") for place in dicts(told.get("locations"))]
        call.path = next((path for path in paths if isinstance(path, str) and path), call.path)
        raw = told.get("rawInput")
        command = raw.get("command") if isinstance(raw, dict) else None
        call.command = command if isinstance(command, str | list) and command else call.command


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; of anything else nothing."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
