"""The scripted strong model: it knows the right answer to every task of the shipped suite."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from app.cli.evaluation import Task, load_suite
from tests.messages_server import Reply, Seen, object_call, plan_call

GOALS = {task.goal: task for task in load_suite("levels").tasks if task.solution}
RULES = (files("engine.tools.worlds") / "answers" / "listing-5.8.txt").read_text(encoding="utf-8")
JOB = "When I wait for my train, I want bread that is fresh, so I can have breakfast on the way"
JOBS = [
    {"kind": kind, "statement": JOB, "importance": 8, "satisfaction": 4}
    for kind in ("functional", "emotional", "social")
]
PILLARS = {
    name: {"score": 20, "evidence": ["64 of 212 would order"]}
    for name in ("problem", "solution", "business_case", "people")
}
PYRAMID = {
    "situation": "The bakery bakes once a day, in the night.",
    "complication": "After two o'clock much of what was baked lies there unsold.",
    "question": "How can less of it be left?",
    "answer": "Bake twice a day, and take orders before noon.",
    "reasons": [
        {"text": "Bread of the second baking sells in the evening.", "support": "assumption"},
        {"text": "Orders tell how much is wanted.", "support": "64 of 212 would order"},
    ],
}
DONE: dict[str, tuple[str, dict[str, Any]]] = {
    "Jobs to be done": ("Fresh bread on the way is what they want.", {"jobs": JOBS}),
    "PWS validation": ("It is worth it: GO.", {"pillars": PILLARS, "verdict": "GO", "total": 80}),
    "Synthesizer": ("Both [jtbd] and [pws-validation] say that it is worth it.", {}),
    "Minto pyramid": ("\n\n".join(f"## {name}\n{text}" for name, text in PYRAMID.items()), PYRAMID),
}
OTHERS = {"A": "B", "B": "A", "for": "against", "against": "for"}
"""The sides of a debate, by their labels."""


def turn(side: str, now: int) -> Reply:
    """A turn of a debate that answers the other side's first claim."""
    data: dict[str, Any] = {"claims": [{"text": f"claim of {side}"}]} if not now else {}
    if now:
        other = f"{OTHERS[side]}1"
        replies = [
            {"claim": other, "kind": "refute", "text": "it is not so"},
            {"claim": f"{side}1", "kind": "defend", "text": "it stands"},
        ]
        data |= {"restated": f"{other} says so", "replies": replies}
    return object_call("return_result", output="my turn", data=data)


def strong(seen: Seen) -> Reply:
    """The right answer."""
    system = json.dumps(seen.body.get("system", ""), ensure_ascii=False)
    said = json.dumps(seen.body["messages"][-1], ensure_ascii=False)
    if side := re.search(r"You are Side (\w+)", system):
        now = next((n for n in (1, 2, 3, 4) if f"Round {n} of" in said), 0)
        return turn(side[1], now)
    if "You are Judge" in system:
        winner = "A" if "Side A" in said else "for"
        reasons = {"decisive_claim_ids": [f"{winner}1"], "reasons": {"evidence": "x"}}
        data = {"winner": winner, "confidence": 0.8, **reasons}
        return object_call("return_result", output=f"{winner} has it", data=data)
    if name := next((each for each in DONE if f"You are {each}:" in system), ""):
        output, data = DONE[name]
        return object_call("return_result", output=output, data=data)
    if "reach(home)" in said:
        return Reply(text=RULES)
    goals = [goal for goal in GOALS if json.dumps(goal, ensure_ascii=False)[1:-1] in said]
    task = GOALS[max(goals, key=len)]
    if not all(memory in said for memory in task.memories):
        return Reply(text="I remember nothing of it.")
    return plan_call(*planned(task))


def planned(task: Task) -> list[dict[str, Any]]:
    """The task's solution as a plan."""
    return [
        {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": command, "args": args}}
        for step in task.solution
        for command, args in step.items()
    ]


def lazy(seen: Seen) -> Reply:
    """A model that only ever looks."""
    if any(tool["name"] == "return_result" for tool in seen.body.get("tools", ())):
        return object_call("return_result", output="looked", data={})
    look = {"type": "EXECUTE_TOOL", "params": {"tool_id": "simple_coder", "command": "ls", "args": {}}}
    return plan_call(look)
