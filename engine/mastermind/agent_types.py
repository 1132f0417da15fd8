"""The closed set of agent types: what each is made of, and what its configuration may have.

Another type is one more row of `TYPES`; nothing else has to know of it. Source: mindX spec §5.3, §7 no. 71.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.domain import commands as cmd
from engine.domain.budgets import check_limits
from engine.domain.reasoning import REASONER
from engine.domain.running import HANDOFF, PROGRESS, RUN_TYPES, SPEC
from engine.domain.text import clean_line
from engine.sandbox.policy import PolicyError, SandboxPolicy


class CreationError(ValueError):
    """No agent was created and nothing is left of one; the message says why and what to do, in one line."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a configuration is checked against."""

    policy: SandboxPolicy = field(default_factory=SandboxPolicy)
    """The workspace's, which an agent's own may only tighten."""
    agents: tuple[str, ...] = ()
    thinkers: tuple[str, ...] = ("procedural", "claude")


Check = Callable[[Any, Allowed], str]
"""What is wrong with a setting's value, in one line; empty when it can be used."""


class Specified(Protocol):
    """What an agent is made from."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def description(self) -> str:
        """What it is, in words."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Its settings."""

    @property
    def goals(self) -> Sequence[str]:
        """Its goals, in their order."""


@dataclass(frozen=True, slots=True)
class AgentType:
    """One type of agent."""

    name: str
    about: str
    settings: Mapping[str, tuple[str, Check]]
    """What its configuration may have: what it means, and how it is checked."""
    construct: Callable[[Specified], tuple[cmd.Command, ...]]
    """The commands that make one, the one that creates it first."""
    check_goal: Callable[[str], str]
    """What is wrong with a goal, in one line; empty when it can be pursued."""
    needs: tuple[str, ...] = ()
    """Settings without which there is none."""
    aliases: tuple[str, ...] = ()
    example: str = ""


def type_of(wanted: str) -> AgentType:
    """The type of this name or alias, in any case.

    Raises:
        CreationError: there is none; the message lists the types.
    """
    name = wanted.casefold().replace("-", "_")
    for one in TYPES:
        if name in (one.name, *one.aliases):
            return one
    known = ", ".join(one.name for one in TYPES)
    near = difflib.get_close_matches(name, [n for one in TYPES for n in (one.name, *one.aliases)], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise CreationError(f"there is no agent type '{clean_line(wanted, limit=40)}'; {hint}types: {known}")


def check_settings(kind: AgentType, config: Mapping[str, Any], allowed: Allowed) -> tuple[str, ...]:
    """Everything that is wrong with a configuration, one line each.

    Args:
        kind: the type that it is for.
        config: the settings by name.
        allowed: what they are checked against.
    """
    found = []
    for name, value in config.items():
        if name not in kind.settings:
            near = difflib.get_close_matches(str(name), kind.settings, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has: {', '.join(kind.settings)}"
            found.append(f"a {kind.name} has no setting '{clean_line(str(name), limit=40)}'; {hint}")
        elif why := kind.settings[name][1](value, allowed):
            found.append(clean_line(why, limit=500))
    found += [f"a {kind.name} needs '{name}': {kind.example}" for name in kind.needs if name not in config]
    return tuple(found)


# ------------------------------------------------------------------ checks


def _text(name: str, most: int) -> Check:
    def check(value: Any, _allowed: Allowed) -> str:
        right = isinstance(value, str) and len(value) <= most
        return "" if right else f"{name}: a text of up to {most:,} characters is expected"

    return check


def _flag(name: str) -> Check:
    return lambda value, _allowed: "" if isinstance(value, bool) else f"{name}: true or false is expected"


def _one_of(name: str, *words: str) -> Check:
    said = f"{name}: one of {', '.join(words)} is expected"
    return lambda value, _allowed: "" if value in words and isinstance(value, str) else said


def _count(name: str, least: int, most: int) -> Check:
    def check(value: Any, _allowed: Allowed) -> str:
        right = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return "" if right else f"{name}: a whole number from {least:,} to {most:,} is expected"

    return check


def _thinker(value: Any, allowed: Allowed) -> str:
    if value in allowed.thinkers and isinstance(value, str):
        return ""
    return f"there is no thinker {str(value)[:40]!r} here; thinkers: {', '.join(allowed.thinkers)}"


def _parent(value: Any, allowed: Allowed) -> str:
    if not isinstance(value, str):
        return "parent: the id of an agent is expected"
    known = ", ".join(allowed.agents) or "none yet"
    return "" if value in allowed.agents else f"parent: there is no agent '{value[:40]}'; agents: {known}"


def _budget(value: Any, _allowed: Allowed) -> str:
    return check_limits(value)


def _sandbox(value: Any, allowed: Allowed) -> str:
    if not isinstance(value, Mapping):
        return 'sandbox policy: it is a JSON object of fields, such as {"network": "off"}'
    try:
        allowed.policy.check_narrowing(value)
    except PolicyError as error:
        return str(error)
    return ""


def _read_by(read: Callable[[Mapping[str, Any]], object], key: str) -> Check:
    """A check by whoever reads the setting from a configuration; its errors are sentences."""

    def check(value: Any, _allowed: Allowed) -> str:
        try:
            read({key: value})
        except ValueError as error:
            return str(error)
        return ""

    return check


def _approvals(value: Any, _allowed: Allowed) -> str:
    from engine.steering.policies import policy_of
    from engine.steering.rules import RuleError

    try:
        policy_of({"approvals": value})
    except RuleError as error:
        return str(error)
    return ""


def _meta(value: Any, allowed: Allowed) -> str:
    from engine.metacognition import read_metacognition

    return _read_by(read_metacognition, "metacognition")(value, allowed)


def _stuck(value: Any, allowed: Allowed) -> str:
    from engine.metacognition import read_stuck

    return _read_by(read_stuck, "stuck")(value, allowed)


def _repairs(value: Any, allowed: Allowed) -> str:
    from engine.models.repairs import read_repairs

    return _read_by(read_repairs, "repairs")(value, allowed)


def _processing(value: Any, allowed: Allowed) -> str:
    from engine.parameters import read_settings

    return _read_by(read_settings, "parameter_processing")(value, allowed)


def _recovery(value: Any, allowed: Allowed) -> str:
    from engine.recovery import read_recovery

    return _read_by(read_recovery, "recovery")(value, allowed)


def _program(value: Any, _allowed: Allowed) -> str:
    from engine.reasoner import ReasonerError, read_config

    try:
        read_config({"program": value})
    except ReasonerError as error:
        return str(error)
    return ""


def _of_reasoner(name: str) -> Check:
    def check(value: Any, _allowed: Allowed) -> str:
        from engine.reasoner import ReasonerError, read_config

        try:
            read_config({"program": "", name: value})
        except ReasonerError as error:
            return str(error)
        return ""

    return check


def _brief(name: str) -> Check:
    """A part of a run's brief; how the parts fit together is said where it is created."""

    def check(value: Any, _allowed: Allowed) -> str:
        from engine.agents.context import HandoffContext
        from engine.agents.spec import AgentSpec

        if not isinstance(value, Mapping):
            return f"{name}: a JSON object is expected"
        if name == PROGRESS:
            return ""
        read = AgentSpec.read if name == SPEC else HandoffContext.read
        return _read_by(lambda given: read(given[name], name), name)(value, _allowed)

    return check


def _goal_of_plans(text: str) -> str:
    most = cmd.GOAL_LIMIT
    return "" if 0 < len(text.strip()) <= most else f"a goal is a text of up to {most:,} characters"


def _goal_of_reasoner(text: str) -> str:
    from engine.bdi.problems import ProgramError
    from engine.reasoner.inputs import read_goal

    try:
        read_goal(text)
    except ProgramError as error:
        return f"this is no goal of an AgentSpeak(L) agent, such as reach(home): {error}"
    return _goal_of_plans(text)


# ------------------------------------------------------------------ the table


def _constructed(agent_type: str) -> Callable[[Specified], tuple[cmd.Command, ...]]:
    def construct(said: Specified) -> tuple[cmd.Command, ...]:
        created = cmd.CreateAgent(
            agent=said.id, agent_type=agent_type, description=said.description, config=dict(said.config)
        )
        return (created, *(cmd.AdoptGoal(agent=said.id, text=text) for text in said.goals))

    return construct


_EVERY: dict[str, tuple[str, Check]] = {
    "description": ("what it is, in words", _text("description", 4_000)),
    "parent": ("the agent that it works for, on whose budget it draws", _parent),
    "budget": ("what is set aside for it, by kind: usd, tokens, calls, actions, seconds", _budget),
    "sandbox": ("how its policy is tighter than the workspace's", _sandbox),
    "approvals": ("what it asks about: a preset, or a table with rules", _approvals),
    "metacognition": ("when it looks back", _meta),
    "stuck": ("what being stuck leads to: tell, hold or off", _stuck),
    "repairs": ("how often its model may put right an answer that cannot be used", _repairs),
    "core": ("whether the workspace needs it, so that it cannot be deleted", _flag("core")),
}
_RUNS = {
    "role": "an agent that talks with the operator for a handoff",
    "operator": "an agent that does one task of a handoff",
    "collaborative": "an agent that puts views of several together, or has a motion debated",
    "pipeline": "an agent that goes through phases with checkpoints",
    "guided": "an agent that goes through steps with the operator",
}


def _run(name: str, about: str) -> AgentType:
    """The row of a type that works on a handoff; the crew makes these, and hardly anybody else."""
    return AgentType(
        name,
        about,
        {
            **_EVERY,
            SPEC: ("its specification, whole", _brief(SPEC)),
            HANDOFF: ("what is handed to it", _brief(HANDOFF)),
            PROGRESS: ("how far an earlier one came", _brief(PROGRESS)),
            "parameter_processing": ("which stages its parameters go through", _processing),
            "recovery": ("how many failures in a row it bears", _recovery),
        },
        _constructed(name),
        _goal_of_plans,
        needs=(SPEC, HANDOFF),
        example="delegate AGENT TASK makes one of a registered agent",
    )


TYPES: tuple[AgentType, ...] = (
    AgentType(
        "bdi_agent",
        "an agent with goals, beliefs and plans of steps",
        {
            **_EVERY,
            "thinker": ("who plans: procedural, or claude where there is a model", _thinker),
            "style": ("how a model thinks: plan, or decide", _one_of("style", "plan", "decide")),
            "parameter_processing": ("which stages its parameters go through", _processing),
            "recovery": ("how many failures in a row it bears", _recovery),
        },
        _constructed("bdi_agent"),
        _goal_of_plans,
        aliases=("bdi", "agent"),
        example="agent_create bdi_agent tester that runs the tests, with a budget of $2",
    ),
    AgentType(
        REASONER,
        "an agent that an AgentSpeak(L) program runs",
        {
            **_EVERY,
            "program": ("its program", _program),
            "source": ("what the program is called in messages", _text("source", 300)),
            "semantics": ("jason or compat", _one_of("semantics", "jason", "compat")),
            "own_goals": ("whether the program's goals are adopted at once", _flag("own_goals")),
            "tracing": ("whether every change of its mind is journaled", _flag("tracing")),
            "world": ("the small world that it lives in", _of_reasoner("world")),
            "seed": ("of the world", _count("seed", -(2**31), 2**31 - 1)),
            "generation": ("how plans that it lacks are generated", _of_reasoner("generation")),
            "thinker": ("stays procedural", _one_of("thinker", "procedural")),
            "parameter_processing": ("which stages its parameters go through", _processing),
            "recovery": ("how many failures in a row it bears", _recovery),
        },
        _constructed(REASONER),
        _goal_of_reasoner,
        needs=("program",),
        aliases=("asl", "agentspeak", "reasoner"),
        example="agent_create asl_agent robot file=PROGRAM.asl",
    ),
    *(_run(name, _RUNS[name]) for name in RUN_TYPES),
)
"""Every type that can be created; `type_of` finds one."""
