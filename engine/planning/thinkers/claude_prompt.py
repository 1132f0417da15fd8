"""The prompts by which a model is asked for a plan, or one decision: named blocks, the stable ones first."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib.resources import files

from engine.core.journal import canonical
from engine.core.text import RULE, fence, visible
from engine.core.thinking import BELIEF_LIMIT, DecisionRequest, PlanRequest, RecentAction
from engine.models.messages import Message, Text
from engine.models.model_table import Capabilities
from engine.models.prompt_parts import DECIDING, PLANNING, Parts
from engine.planning.plan_notation import PLAN_LIMIT
from engine.planning.thinkers.offered import Command
from engine.value import dataclass


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """How much of each kind a prompt may hold."""

    commands: int
    """Commands that a plan's prompt lists; all where there are no more."""
    candidates: int
    """Commands of which a decision chooses."""
    examples: int
    """Worked examples from the plan library."""
    material: int
    """Characters of beliefs, and of each piece that is brought back; four times that of newest actions."""
    memory: int
    """Tokens of what memory has."""
    steps: int = PLAN_LIMIT
    """Most steps of a plan."""
    short: bool = False
    """Whether rules that a small model does not follow anyway are left out."""


_BUDGETS = {
    "tiny": PromptBudget(12, 5, 2, 700, 250, 12, short=True),
    "standard": PromptBudget(24, 18, 2, 4_000, 1_500),
    "large": PromptBudget(100, 100, 0, 15_000, 6_000),
}
ANSWER_SHARE = 4
"""The part of a context that is kept for the answer is one by this."""


def budget_for(known: Capabilities) -> PromptBudget:
    """What a model's context has room for."""
    return _BUDGETS[known.profile]


def _prompt(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").removesuffix("\n")


_PROMPTS = files("engine.planning.thinkers") / "prompts"
ROLE, DECIDER = _prompt("planning"), _prompt("deciding")
"""The built-in words of the parts `planning` and `deciding`."""
_SHORT_DECIDER = _prompt("deciding_short")
NOTATION, _LOOK_UP = _prompt("notation"), f"\n{_prompt('look_up')}"
_NOTATION_MORE = f"\n{_prompt('notation_more').replace('{limit}', str(PLAN_LIMIT))}"
EXAMPLES: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    each["goal"]: tuple((step["command"], step["args"]) for step in each["steps"])
    for each in tomllib.loads((_PROMPTS / "examples.toml").read_text(encoding="utf-8"))["example"]
}
"""Goals with plans for them: commands of the sandbox with their arguments."""

_ANEW = (
    "An earlier plan for this goal did not get through. Plan only what remains to be done of it, by a way "
    "that does not meet the same trouble; do not begin with the call that failed."
)
_BUILT_IN = Parts()
_IN_SESSION = ("session.cwd", "session.venv")
_REST = "The steps that were still to come are planned anew: plan only what remains to be done of the goal."


def system_blocks(
    commands: Sequence[Command], budget: PromptBudget, *, more: bool = False, parts: Parts = _BUILT_IN
) -> tuple[Text, ...]:
    """What is asked of every plan; where all commands are listed the endpoint may cache it up to its end.

    Args:
        commands: those that are listed.
        budget: how much there may be.
        more: whether there are others, which can be asked about.
        parts: the workspace's own words.
    """
    notation = NOTATION + ("" if budget.short else _NOTATION_MORE) + (_LOOK_UP if more else "")
    listed = "\n".join(command.line for command in commands)
    return (
        Text(f"{parts.words(PLANNING, ROLE)}\n\n{RULE}", "role"),
        Text(notation, "notation"),
        Text(f"The commands with their arguments:\n{listed}", "tools", cache=not more),
    )


def question(
    request: PlanRequest, budget: PromptBudget, recalled: tuple[Text, ...] = (), examples: Sequence[str] = ()
) -> Message:
    """What is asked now: session, beliefs and what went wrong before as material, then the goal."""
    shown = (Text("Examples:\n" + "\n".join(examples), "examples"),) if examples else ()
    session = f"directory: {request.session.cwd}\nvirtual environment: {request.session.venv or 'none'}"
    return Message(
        "user",
        (
            Text(fence("the agent's session", session), "session"),
            *_beliefs(request, budget),
            *recalled,
            *restored_blocks(request),
            *_before(request, budget),
            *shown,
            *_told(request),
            Text(f"The goal to plan for:\n{request.goal.text}", "goal"),
        ),
    )


def decider_blocks(budget: PromptBudget, parts: Parts = _BUILT_IN) -> tuple[Text, ...]:
    """What is the same for every decision; the tools stand before it."""
    words = parts.words(DECIDING, _SHORT_DECIDER if budget.short else DECIDER)
    return (Text(f"{words}\n\n{RULE}", "role", cache=True),)


def situation(
    request: DecisionRequest, budget: PromptBudget, recalled: tuple[Text, ...] = (), *, all_done: bool = False
) -> Message:
    """What is to be decided now: where the agent stands as material, then the goal and the step.

    Args:
        request: what is to be decided.
        budget: how much there may be.
        recalled: what memory brought up.
        all_done: whether each step was done that recipes have for the goal.
    """
    session = f"directory: {request.session.cwd}\nvirtual environment: {request.session.venv or 'none'}"
    blocks = [
        Text(fence("the agent's session", session), "session"),
        *_beliefs(request, budget),
        Text(fence("the plan so far", "\n".join(request.plan) or "nothing has been done yet"), "plan"),
        *recalled,
        *restored_blocks(request),
    ]
    if request.recent:
        done = "\n\n".join(_done(action) for action in request.recent)
        title = "what was done lately, oldest first, with results"
        # The newest count most.
        limit = 4 * budget.material
        blocks.append(Text(fence(title, done[-limit:], limit=limit), "recent"))
    if request.trouble:
        title = "what went wrong and is not settled, oldest first"
        wrong = fence(title, "\n".join(request.trouble)[-budget.material :])
        blocks.append(Text(f"{wrong}\n{request.advice}".rstrip(), "trouble"))
    blocks.extend(_told(request))
    blocks.append(Text(_wanted(request) + (_ALL_DONE if all_done else ""), "goal"))
    return Message("user", tuple(blocks))


_ALL_DONE = (
    "\nEach step that this goal is known to need was done: call `finish`, unless something is missing."
)


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


def _before(request: PlanRequest, budget: PromptBudget) -> tuple[Text, ...]:
    """What an earlier plan for the goal did, and why it did not get through; nothing the first time."""
    been = "\n".join(request.done)[-budget.material :] or "nothing"
    done = fence("what has been done for the goal already", been)
    wrong = fence("what went wrong, oldest first", "\n".join(request.trouble)[-budget.material :])
    if request.trouble:
        anew = f"{wrong}\n{_ANEW} {request.advice}".rstrip()
        return Text(done, "done"), Text(anew, "trouble")
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


def _beliefs(request: PlanRequest | DecisionRequest, budget: PromptBudget) -> tuple[Text, ...]:
    # Where it is stands in the session already.
    known = sorted((key, value) for key, value in request.beliefs.items() if key not in _IN_SESSION)
    lines = "\n".join(f"{key} = {_cut(canonical(value))}" for key, value in known)
    return (Text(fence("what the agent believes", lines or "nothing yet", limit=budget.material), "beliefs"),)


def _cut(text: str) -> str:
    return text if len(text) <= BELIEF_LIMIT else f"{text[:BELIEF_LIMIT]}…"
