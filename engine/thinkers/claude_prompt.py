"""The prompt by which a model is asked for a plan: named blocks, the stable ones first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.domain.thinking import PlanRequest
from engine.generation.notation import PLAN_LIMIT
from engine.journal.event import canonical
from engine.models import Message, Text, fence
from engine.models.fence import RULE, visible
from engine.tools.registry import ToolRegistry

BELIEF_LIMIT = 600
"""Characters of one belief's value that are shown."""

ROLE = f"""You are the planner of an agent that works in a sandboxed directory while an operator watches.
You never act: you propose the steps, the agent checks them and runs them one after the other, and the
operator can change or stop each of them. Propose the fewest steps that do all of what the goal asks, in
the order they are to run, and nothing that it does not ask.

{RULE}"""

NOTATION = f"""A plan is a list of up to {PLAN_LIMIT} actions. Each action is an object:
  {{"type": "EXECUTE_TOOL", "id": "1", "description": "what it does, in a few words",
   "params": {{"tool_id": "a tool's id", "command": "one of its commands", "args": {{}}}},
   "depends_on": []}}
* `type` is always EXECUTE_TOOL. There are no other tools, commands or arguments than those listed.
* All arguments stand under `args`, by name, each once and of the type its schema says.
* `id` is different in each action. `depends_on` lists the ids of actions that must be done before;
  actions may not wait for each other in a circle.
* Paths are relative to the directory the agent is in when the action runs, so a change of directory counts
  for all that come after it.
* What cannot be planned with these tools goes into `uncovered` instead: the words of the goal as they
  stand there, and in a sentence why. Never plan something else in its place."""


_ANEW = (
    "An earlier plan for this goal did not get through. Plan only what remains to be done of it, by a way "
    "that does not meet the same trouble; do not begin with the call that failed."
)
_REST = "The steps that were still to come are planned anew: plan only what remains to be done of the goal."


def system_blocks(registry: ToolRegistry) -> tuple[Text, ...]:
    """What stays the same from goal to goal; the endpoint may cache it up to its end."""
    return (
        Text(ROLE, "role"),
        Text(NOTATION, "notation"),
        Text(_tools(registry), "tools", cache=True),
    )


def _tools(registry: ToolRegistry) -> str:
    lines = [
        canonical(
            {
                "tool_id": entry["tool"],
                "command": entry["command"],
                "description": entry["description"],
                "args": entry["input_schema"],
            }
        )
        for entry in registry.schemas()
    ]
    return "The tools and their commands, with the JSON Schema of their arguments:\n" + "\n".join(lines)


def question(request: PlanRequest) -> Message:
    """What is asked now: session, beliefs and what went wrong before as material, then the goal."""
    session = f"directory: {request.session.cwd}\nvirtual environment: {request.session.venv or 'none'}"
    return Message(
        "user",
        (
            Text(fence("the agent's session", session), "session"),
            Text(fence("what the agent believes", _beliefs(request.beliefs)), "beliefs"),
            *_before(request),
            *_told(request),
            Text(f"The goal to plan for:\n{request.goal.text}", "goal"),
        ),
    )


def _before(request: PlanRequest) -> tuple[Text, ...]:
    """What an earlier plan for the goal did, and why it did not get through; nothing the first time."""
    done = fence("what has been done for the goal already", "\n".join(request.done) or "nothing")
    wrong = fence("what went wrong, oldest first", "\n".join(request.trouble))
    if request.trouble:
        return (
            Text(done, "done"),
            Text(f"{wrong}\n{_ANEW}{f' {request.advice}' if request.advice else ''}", "trouble"),
        )
    return (Text(f"{done}\n{_REST}", "done"),) if request.done else ()


def _told(request: PlanRequest) -> tuple[Text, ...]:
    """What looking back has found, as material, and what the operator says, which counts like the goal."""
    found = fence("what looking back on the work has found", "\n".join(request.findings))
    said = "\n".join(f"* {visible(one)}" for one in request.guidance)
    return (
        *((Text(found, "findings"),) if request.findings else ()),
        *((Text(f"The operator says, for this plan:\n{said}", "guidance"),) if request.guidance else ()),
    )


def _beliefs(beliefs: Mapping[str, Any]) -> str:
    lines = [f"{key} = {_cut(canonical(value))}" for key, value in sorted(beliefs.items())]
    return "\n".join(lines) or "nothing yet"


def _cut(text: str) -> str:
    return text if len(text) <= BELIEF_LIMIT else f"{text[:BELIEF_LIMIT]}…"
