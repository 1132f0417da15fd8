"""A small crew for pictures, and the script that its model speaks by."""

from __future__ import annotations

from typing import Any

from engine.api.engine import Engine
from engine.core import crew_commands as cc
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

PROBLEM = {
    "what": "Small teams lose two days a month on expense reports",
    "who": "finance leads of companies with 20 to 80 people",
    "success": "a report takes under 10 minutes within a quarter",
}
BLOCKS = ("Customer segments", "Value proposition", "Channels", "Revenue streams", "Cost structure")
AGENTS: tuple[dict[str, Any], ...] = (
    {"id": "larry", "type": "role", "description": "Clarifies a problem, one question at a time.",
     "handoff": {"routing": {"can_delegate_to": ["minto-pyramid", "jtbd"]}}},
    {"id": "minto-pyramid", "type": "operator", "description": "Situation, complication, question, answer.",
     "triggers": {"keywords": ["structure", "scqa"]},
     "handoff": {"routing": {"can_delegate_to": ["pws-validation", "jtbd"]}},
     "chaining": {"precedes": [{"id": "pws-validation", "weight": 0.9}]}},
    {"id": "pws-validation", "type": "operator", "description": "Is it worth solving? Four pillars of 25.",
     "triggers": {"keywords": ["validate", "opportunity"]},
     "chaining": {"precedes": [{"id": "devil", "weight": 0.7}]}},
    {"id": "jtbd", "type": "operator", "description": "Functional, emotional and social jobs.",
     "triggers": {"keywords": ["jobs", "needs"]},
     "instructions": {"quality_criteria": [
         {"check": "regex", "pattern": "emotional", "message": "find an emotional job, too"}]}},
    {"id": "devil", "type": "operator", "description": "Attacks a proposal from five sides.",
     "triggers": {"keywords": ["challenge", "validate"]}},
    {"id": "scenario-analysis", "type": "operator", "description": "Four scenarios on two axes.",
     "triggers": {"keywords": ["future", "uncertainty"]}},
    {"id": "bmc-wizard", "type": "guided", "description": "A business model canvas, block by block.",
     "steps": [{"id": f"b{at}", "title": one, "prompt": f"{one}: who or what?", "required": at < 2}
               for at, one in enumerate(BLOCKS)]},
)  # fmt: skip


async def register(engine: Engine) -> None:
    """Register the crew, each with a word by which the script knows it."""
    for one in AGENTS:
        instructions = {**one.get("instructions", {}), "system": f"You are {one['id']}."}
        spec = {"name": one["id"].replace("-", " ").title(), **one, "instructions": instructions}
        receipt = await engine.submit(cc.RegisterAgent(spec=spec))
        assert receipt.ok, receipt.message


def answer(seen: Seen) -> Reply:
    """What the model says, by who asks; the devil goes on thinking."""
    said = seen.said()
    who = next((one["id"] for one in AGENTS if f"You are {one['id']}." in said), "")
    slow = {"first_byte_delay_ms": 900}
    if who == "larry":
        return Reply(text="What do the finance leads do today on the day a report is due?")
    if who == "minto-pyramid" and "PIVOT" not in said:
        return object_call("delegate", to="pws-validation", task="Is the opportunity worth it?")
    if who == "minto-pyramid":
        return _result("Automate capture first: it removes most of the two days.", 0.71)
    if who == "pws-validation":
        return _result("22 + 18 + 20 + 12 = 72: PIVOT. Business case is the weak pillar.", 0.72, **slow)
    if who == "jtbd":
        return _result("When a month ends, I want to close the books, so I can report.", 0.5)
    return Reply(text="Steelman first: the pain is real and", silent=True)


def _result(output: str, confidence: float, **how: Any) -> Reply:
    reply = object_call("return_result", output=output, key_findings=[output], confidence=confidence)
    return Reply(tool=reply.tool, tool_input=reply.tool_input, **how)
