"""The prompts by which a model is asked for a plan, or one decision: named blocks, the stable ones first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.core.journal import canonical
from engine.core.text import RULE, fence, visible
from engine.core.thinking import BELIEF_LIMIT, DecisionRequest, PlanRequest, RecentAction
from engine.models.messages import Message, Text
from engine.models.prompt_parts import DECIDING, PLANNING, Parts
from engine.planning.plan_notation import PLAN_LIMIT
from engine.tools.registry import ToolRegistry

RECENT_LIMIT = 60_000
"""Characters of the newest actions with their answers."""

ROLE = """You are the planner of an agent that works in a sandboxed directory while an operator watches.
You never act: you propose the steps, the agent checks them and runs them one after the other, and the
operator can change or stop each of them. Propose the fewest steps that do all of what the goal asks, in
the order they are to run, and nothing that it does not ask."""
"""The built-in words of the part `planning`."""

NOTATION = f"""A plan is a list of up to {PLAN_LIMIT} actions. Each action is an object:
  {{"type": "EXECUTE_TOOL", "id": "1", "description": "what it does, in a few words",
   "params": {{"tool_id": "a tool's id", "command": "one of its commands", "args": {{}}}},
   "depends_on": []}}
* There are no other tools, commands or arguments than those listed.
* What can only be decided once earlier steps are done is a step {{"type": "THINK", "id", "description"}}: you
  are asked again then. Use none where the actions can be named now.
* All arguments stand under `args`, by name, each once and of the type its schema says.
* `id` is different in each action. `depends_on` lists the ids of actions that must be done before;
  actions may not wait for each other in a circle.
* Paths are relative to the directory the agent is in when the action runs, so a change of directory counts
  for all that come after it.
* What cannot be planned with these tools goes into `uncovered` instead: the words of the goal as they
  stand there, and in a sentence why. Never plan something else in its place."""


DECIDER = """You decide what an agent does next. It works in a sandboxed directory while an operator watches,
who sees each decision before it is carried out and can change or stop it. Each time you are asked you make
exactly one decision, by calling one tool: one command of the sandbox or of memory, or one of the others. Its
outcome is shown to you when you are asked again; nothing else of this exchange is remembered, so write down
what you will need as a thought or a memory.
* Do what the goal asks and nothing more. Look before you change something that you have not seen.
* When something failed, find out why before you try again, and never repeat a call that failed unchanged.
* Call `finish` as soon as you have seen that the goal is reached; never claim what you have not seen.
* When it cannot be done call `give_up`; when only a person can say how to go on call `ask_operator`."""
"""The built-in words of the part `deciding`."""

_ANEW = (
    "An earlier plan for this goal did not get through. Plan only what remains to be done of it, by a way "
    "that does not meet the same trouble; do not begin with the call that failed."
)
_BUILT_IN = Parts()
_REST = "The steps that were still to come are planned anew: plan only what remains to be done of the goal."


def system_blocks(registry: ToolRegistry, parts: Parts = _BUILT_IN) -> tuple[Text, ...]:
    """What stays the same from goal to goal; the endpoint may cache it up to its end."""
    return (
        Text(f"{parts.words(PLANNING, ROLE)}\n\n{RULE}", "role"),
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


def question(request: PlanRequest, recalled: tuple[Text, ...] = ()) -> Message:
    """What is asked now: session, beliefs and what went wrong before as material, then the goal."""
    session = f"directory: {request.session.cwd}\nvirtual environment: {request.session.venv or 'none'}"
    return Message(
        "user",
        (
            Text(fence("the agent's session", session), "session"),
            Text(fence("what the agent believes", _beliefs(request.beliefs)), "beliefs"),
            *recalled,
            *restored_blocks(request),
            *_before(request),
            *_told(request),
            Text(f"The goal to plan for:\n{request.goal.text}", "goal"),
        ),
    )


def decider_blocks(parts: Parts = _BUILT_IN) -> tuple[Text, ...]:
    """What is the same for every decision; the tools stand before it."""
    return (Text(f"{parts.words(DECIDING, DECIDER)}\n\n{RULE}", "role", cache=True),)


def situation(request: DecisionRequest, recalled: tuple[Text, ...] = ()) -> Message:
    """What is to be decided now: where the agent stands as material, then the goal and the step."""
    session = f"directory: {request.session.cwd}\nvirtual environment: {request.session.venv or 'none'}"
    blocks = [
        Text(fence("the agent's session", session), "session"),
        Text(fence("what the agent believes", _beliefs(request.beliefs)), "beliefs"),
        Text(fence("the plan so far", "\n".join(request.plan) or "nothing has been done yet"), "plan"),
        *recalled,
        *restored_blocks(request),
    ]
    if request.recent:
        done = "\n\n".join(_done(action) for action in request.recent)
        title = "what was done lately, oldest first, with results"
        blocks.append(Text(fence(title, done, limit=RECENT_LIMIT), "recent"))
    if request.trouble:
        wrong = fence("what went wrong and is not settled, oldest first", "\n".join(request.trouble))
        blocks.append(Text(f"{wrong}\n{request.advice}".rstrip(), "trouble"))
    blocks.extend(_told(request))
    blocks.append(Text(_wanted(request), "goal"))
    return Message("user", tuple(blocks))


def _wanted(request: DecisionRequest) -> str:
    goal = request.goal
    above = "".join(f"\nIt serves the goal: {text}" for text in reversed(request.above))
    listed = "\n".join(f"{number}. {text}" for number, text in enumerate(goal.criteria, 1))
    criteria = f"\nIt is reached when these are shown to hold:\n{listed}" if listed else ""
    muse = "" if request.may_muse else "\nYou have thought long enough: do something now."
    return f"The goal:\n{goal.text}{above}{criteria}\nTo be decided now: {request.step.description}{muse}"


def _done(action: RecentAction) -> str:
    result = "succeeded" if action.ok else "FAILED"
    call = f"{action.step}: {action.tool} {action.command} {_cut(canonical(action.args))}"
    return f"{call}\n{result}: {action.answer}"


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


def restored_blocks(request: PlanRequest | DecisionRequest) -> tuple[Text, ...]:
    """What the operator brought back, as material."""
    return tuple(
        Text(fence(f"brought back by the operator: {each.about}", each.text, limit=len(each.text)), each.what)
        for each in request.restored
    )


def _told(request: PlanRequest | DecisionRequest) -> tuple[Text, ...]:
    """What looking back has found, as material, and what the operator says, which counts like the goal."""
    findings_text = fence("what looking back on the work has found", "\n".join(request.findings))
    message = "\n".join(f"* {visible(line)}" for line in request.guidance)
    return (
        *((Text(findings_text, "findings"),) if request.findings else ()),
        *((Text(f"The operator says:\n{message}", "guidance"),) if request.guidance else ()),
    )


def _beliefs(beliefs: Mapping[str, Any]) -> str:
    lines = [f"{key} = {_cut(canonical(value))}" for key, value in sorted(beliefs.items())]
    return "\n".join(lines) or "nothing yet"


def _cut(text: str) -> str:
    return text if len(text) <= BELIEF_LIMIT else f"{text[:BELIEF_LIMIT]}…"
