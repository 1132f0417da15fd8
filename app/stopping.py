"""Stops and their receipts in words, for the cockpit and the command line alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.domain.stopping import StopGrade, StopItem, StopReceipt
from engine.domain.text import clean_line
from engine.engine import Engine

GRADES: dict[StopGrade, tuple[str, str]] = {
    StopGrade.AFTER: ("after this step", "let the present step end, then hold"),
    StopGrade.HOLD: ("hold now", "start nothing new; what runs ends by itself"),
    StopGrade.CUT: ("cut the model", "hold, and cut the model's answer off"),
    StopGrade.CANCEL: ("cancel the tool", "hold, and cancel the call; its step runs again"),
    StopGrade.FREEZE: ("freeze", "hold, and stop all processes where they are"),
    StopGrade.KILL: ("kill", "end all: calls, jobs, your shell, whole trees"),
}
"""The grades with a name and what each does, from the least."""
SCOPES = {"agent": "this agent", "children": "and its children", "all": "all agents"}
_DONE = {
    StopGrade.AFTER: "held after this step",
    StopGrade.HOLD: "held",
    StopGrade.CUT: "held, the model cut off",
    StopGrade.CANCEL: "held, the tool cancelled",
    StopGrade.FREEZE: "frozen",
    StopGrade.KILL: "stopped",
}
NAMES_SHOWN = 4


def headline(receipt: StopReceipt) -> str:
    """What came of a stop, in a line."""
    agent = clean_line(receipt.agent, limit=40)
    if not receipt.complete:
        return f"{agent} is being stopped: not all is dead after {receipt.took_ms} ms"
    if not receipt.changed:
        return f"{agent}: nothing changed, all of this was stopped already"
    return f"{agent} {_DONE[receipt.grade]}, seen after {receipt.took_ms} ms"


def item_line(item: StopItem) -> str:
    """One thing that a stop met, in a line."""
    name = f"{item.kind} {clean_line(item.name, limit=40)}".strip()
    took = f", {item.took_ms} ms" if item.took_ms else ""
    return f"{item.fate}: {name} {clean_line(item.what, limit=80)}{_processes(item)}{took}"


def _processes(item: StopItem) -> str:
    if not item.processes:
        return ""
    names = [clean_line(name, limit=24) for name in item.names]
    shown = list(dict.fromkeys(names))[:NAMES_SHOWN]
    more = " …" if len(set(names)) > NAMES_SHOWN or item.processes > len(names) else ""
    count = f"{item.processes} process{'es' * (item.processes != 1)}"
    named = f" ({', '.join(shown)}{more})" if shown else ""
    return f" · {count}{named}"


def rows(receipt: StopReceipt) -> list[tuple[str, str]]:
    """The receipt line by line, each with the style of its line (see `widgets.line_pane`)."""
    fine = "warning" if not receipt.complete else "strong"
    found = [(fine, headline(receipt))]
    found += [("success", f"  ■ {item_line(item)}") for item in receipt.stopped]
    if receipt.running:
        found += [("warning", f"  ▶ still runs, {item_line(item)}") for item in receipt.running]
    else:
        found.append(("dim", "    still runs: nothing"))
    return found


def receipt_text(receipts: Iterable[StopReceipt]) -> str:
    """Receipts as plain text."""
    return "\n".join(text for receipt in receipts for _, text in rows(receipt))


async def stop_answer(engine: Engine, data: dict[str, Any], message: str) -> tuple[dict[str, Any], str]:
    """The last receipts of a stop as JSON and as text, once all is dead that was to die."""
    await engine.stopped()
    agents = [one["agent"] for one in data["receipts"]]
    found: Sequence[StopReceipt] = [
        receipt for agent in agents if (receipt := (await engine.view(agent)).stop_receipt) is not None
    ]
    answer = {
        "changed": any(one.changed for one in found),
        "complete": all(one.complete for one in found),
        "receipts": [as_json(one) for one in found],
    }
    return answer, f"{message}\n{receipt_text(found)}"


def as_json(receipt: StopReceipt) -> dict[str, Any]:
    """A receipt as JSON."""
    from engine.journal import events as ev

    return dict(ev.StopObserved(receipt=receipt).model_dump(mode="json")["receipt"])
