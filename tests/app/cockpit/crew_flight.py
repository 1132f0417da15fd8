"""A crew under test in the cockpit: agents are registered, handed work and viewed, by scripted models."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from app.commands.settings import Settings
from engine.core import crew_commands as cc
from engine.crew.ontology.spec_parser import parse_spec
from engine.crew.state import CrewState, Handoff
from engine.models.choice import ModelChoice
from engine.models.endpoint import Endpoint, Retries
from tests.app.cockpit.flight import Flight, cockpit
from tests.messages_server import MessagesServer, Reply, object_call
from tests.messages_server.server import Seen
from widgets.dialogs.handoffs import HandoffsDialog

Script = Sequence[Reply | Callable[[Seen], Reply]] | Callable[[Seen], Reply]
SURVEY = "31 of 40 owners said they would pay. Nine asked for a refund after a month."
MOTION = "We build the pet translator this year."


def crew(flight: Flight) -> CrewState:
    state = flight.app.controllers.crew.state
    assert state is not None
    return state


def handoff(flight: Flight, name: str) -> Handoff:
    return crew(flight).handoffs[name]


async def register(flight: Flight, **spec: Any) -> None:
    """Take in an agent."""
    receipt = await flight.engine.submit(cc.RegisterAgent(spec=parse_spec(spec).model_dump(mode="json")))
    assert receipt.ok, receipt.message


async def handed(flight: Flight, to: str, task: str = "Look at the shop.", **more: Any) -> str:
    """Hand a task over; gives the handoff once it has a run."""
    receipt = await flight.engine.submit(cc.Delegate(to=to, task=task, **more))
    assert receipt.ok, receipt.message
    name = str(receipt.data["handoff"])
    await flight.until(lambda: flight.app.controllers.crew.state is not None, "the crew")
    await flight.until(lambda: handoff(flight, name).run, "its run")
    return name


async def viewed(flight: Flight, view: type, name: str) -> Any:
    """Open the view of a handoff from the timeline, by keys."""
    await flight.press("escape", "H")
    await flight.dialog(HandoffsDialog)
    timeline = flight.app.screen
    assert isinstance(timeline, HandoffsDialog)
    for _ in timeline.model.lines:
        if timeline.list.cursor == name:
            break
        await flight.press("down")
    await flight.press("enter")
    await flight.dialog(view)
    return flight.app.screen


@asynccontextmanager
async def staffed(
    workspace: Path, script: Script | None = None, *, size: tuple[int, int] = (120, 35)
) -> AsyncIterator[Flight]:
    """A cockpit whose crew thinks by a scripted model, or by none."""
    if script is None:
        async with cockpit(workspace, size=size) as flight:
            yield flight
        return
    replies = [script] if callable(script) else list(script)
    async with MessagesServer(replies, repeat=callable(script)) as server:
        model = ModelChoice(Endpoint(server.url), "claude-opus-4-6", retries=Retries(attempts=1))
        settings = Settings(home=workspace.parent / "home", model=model)
        async with cockpit(workspace, settings=settings, size=size) as flight:
            flight.server = server  # type: ignore[attr-defined]
            yield flight


# ------------------------------------------------------------------ a debate

_OPENINGS: dict[str, list[dict[str, Any]]] = {
    "A": [
        {"text": "Owners would pay for it.",
         "evidence": [{"source": "survey", "quote": "31 of 40 owners said they would pay."}]},
        {"text": "The market doubles every year.",
         "evidence": [{"source": "survey", "quote": "the market doubles"}]},
    ],
    "B": [
        {"text": "Those who paid do not stay.",
         "evidence": [{"source": "survey", "quote": "Nine asked for a refund after a month."}]},
        {"text": "No microphone tells one bark from another."},
    ],
}  # fmt: skip
_REPLIES: dict[str, list[dict[str, str]]] = {
    "A1": [{"claim": "B1", "kind": "refute", "text": "Nine of forty is fewer than any pet toy has."},
           {"claim": "A2", "kind": "concede", "text": "The survey does not say that."}],
    "B1": [{"claim": "A1", "kind": "undercut", "text": "Saying so costs nothing; nobody has paid."}],
    "A2": [{"claim": "B2", "kind": "refute", "text": "Two toys on sale do."},
           {"claim": "A1", "kind": "defend", "text": "Twelve paid in advance."}],
    "B2": [{"claim": "A1", "kind": "refute", "text": "Twelve is not 31."}],
}  # fmt: skip


OPEN = {"receives": {"requires_who": False, "requires_success": False, "min_clarity": 0.0}}
"""Takes work of which nothing is known."""


def debate_spec(**more: Any) -> dict[str, Any]:
    """An agent that has a motion argued from two sides."""
    sides = [
        {"label": "A", "agent_id": "pws-validation", "stance": "it is worth it"},
        {"label": "B", "agent_id": "devil", "stance": "it is not"},
    ]
    return {
        "id": "decision-debate",
        "name": "Decision debate",
        "type": "collaborative",
        "description": "argues a motion",
        "debate": {"sides": sides, "rounds": 2, **more},
        "model": {"thinking": "off"},
        "handoff": OPEN,
    }


def debaters(
    *, judge: tuple[tuple[str, float], tuple[str, float]] = (("B", 0.8), ("B", 0.7))
) -> Callable[[Seen], Reply]:
    """What both sides and the judge say, whoever is asked first.

    Args:
        judge: winner and confidence of the pass with A first, and of that with B first.
    """

    def answer(seen: Seen) -> Reply:
        system, said = json.dumps(seen.body["system"]), json.dumps(seen.body["messages"])
        if "You are Judge" in system or "You judge a debate" in system:
            winner, confidence = judge[0 if said.index("side A") < said.index("side B") else 1]
            reasons = {"evidence": f"{winner} quotes what was said", "fit": "it is about what is paid"}
            data: dict[str, Any] = {
                "winner": winner,
                "confidence": confidence,
                "decisive_claim_ids": ["B2"] if winner == "B" else [],
                "reasons": reasons,
            }
            return object_call("return_result", output="judged", data=data)
        side = "A" if "Side A" in system else "B"
        now = next((number for number in (1, 2, 3, 4) if f"Round {number} of" in said), 0)
        if now == 0:
            turn: dict[str, Any] = {
                "claims": _OPENINGS[side],
                "recommends": "build" if side == "A" else "wait",
            }
        else:
            turn = {
                "restated": "They say that owners do not stay." if side == "A" else "They say owners pay.",
                "replies": _REPLIES[f"{side}{min(now, 2)}"],
            }
        return object_call("return_result", output="my turn", data=turn)

    return answer


# ------------------------------------------------------------------ a build

SKILL = """---
name: pricing
description: A workflow for prices.
colour: red
---
# Pricing

Say what it costs and what is to be left. See [the table](table.md).
"""


def lay_skill(folder: Path) -> Path:
    """Write a skill of a few words."""
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL, encoding="utf-8")
    return folder
