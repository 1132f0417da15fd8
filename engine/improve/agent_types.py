"""The types of agents that an operator can create, and what the configuration of each may have.

Another type is one more row of `TYPES`. Types that work on a handoff are created by the crew alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from engine.agent.acp.settings import read_acp
from engine.agent.reasoner.actions import read_config, read_goal
from engine.agent.settings import read_recovery, read_settings
from engine.agent.steering.rules import policy_of
from engine.bdi.errors import ProgramError
from engine.core import commands as cmd
from engine.core.agents import ACP_AGENT, RUN_TYPES
from engine.core.budgets import check_limits
from engine.core.reasoner import REASONER
from engine.core.text import clean_line
from engine.improve.ports import JobRefused
from engine.memory.metacognition.schedule import read_metacognition
from engine.memory.metacognition.stuck import read_stuck
from engine.models.choice import read_repairs
from engine.sandbox.policy import PolicyError, SandboxPolicy
from engine.value import dataclass, field


class CreationError(JobRefused):
    """No agent was created and nothing is left of one; the message says why and what to do, in one line."""


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a configuration is checked against."""

    policy: SandboxPolicy = field(default_factory=SandboxPolicy)
    """The workspace's, which an agent's own may only tighten."""
    agents: tuple[str, ...] = ()
    thinkers: tuple[str, ...] = ("procedural", "claude")


Check = Callable[[Any, CheckContext], str]
"""What is wrong with a setting's value, in one line; empty when it can be used."""


@dataclass(frozen=True, slots=True)
class AgentType:
    """One type of agent."""

    name: str
    about: str
    settings: Mapping[str, tuple[str, Check]]
    """What its configuration may have: what it means, and how it is checked."""
    check_goal: Callable[[str], str]
    """What is wrong with a goal, in one line; empty when it can be pursued."""
    needs: tuple[str, ...] = ()
    """Settings without which there is none."""
    aliases: tuple[str, ...] = ()
    example: str = ""


def type_of(text: str) -> AgentType:
    """The type of this name or alias, in any case.

    Raises:
        CreationError: there is none; the message lists the types.
    """
    name = text.casefold().replace("-", "_")
    names = {known: kind for kind in TYPES for known in (kind.name, *kind.aliases)}
    if name in names:
        return names[name]
    if name in RUN_TYPES:
        made = "as its SKILL.md says" if name == "role" else f"--type {name}"
        raise CreationError(
            f"agents of type {name} are built of a folder with a SKILL.md: build FOLDER {made}".rstrip()
        )
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    known = ", ".join(kind.name for kind in TYPES)
    raise CreationError(f"there is no agent type '{clean_line(text, limit=40)}'; {hint}types: {known}")


def check_settings(kind: AgentType, config: Mapping[str, Any], allowed: CheckContext) -> tuple[str, ...]:
    """Everything that is wrong with a configuration, one line each."""
    problems = []
    for name, value in config.items():
        if name not in kind.settings:
            near = difflib.get_close_matches(str(name), kind.settings, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has: {', '.join(kind.settings)}"
            problems.append(f"a {kind.name} has no setting '{clean_line(str(name), limit=40)}'; {hint}")
        elif why := kind.settings[name][1](value, allowed):
            problems.append(clean_line(why, limit=500))
    problems += [f"a {kind.name} needs '{name}': {kind.example}" for name in kind.needs if name not in config]
    return tuple(problems)


# ------------------------------------------------------------------ checks


def _expected(fits: Callable[[Any], bool], message: str) -> Check:
    return lambda value, _allowed: "" if fits(value) else message


def _text(name: str, most: int) -> Check:
    message = f"{name}: a text of up to {most:,} characters is expected"
    return _expected(lambda value: isinstance(value, str) and len(value) <= most, message)


def _flag(name: str) -> Check:
    return _expected(lambda value: isinstance(value, bool), f"{name}: true or false is expected")


def _one_of(name: str, *words: str) -> Check:
    message = f"{name}: one of {', '.join(words)} is expected"
    return _expected(lambda value: isinstance(value, str) and value in words, message)


def _count(name: str, least: int, most: int) -> Check:
    message = f"{name}: a whole number from {least:,} to {most:,} is expected"
    return _expected(lambda value: type(value) is int and least <= value <= most, message)


def _thinker(value: Any, allowed: CheckContext) -> str:
    if value in allowed.thinkers and isinstance(value, str):
        return ""
    return f"there is no thinker {str(value)[:40]!r} here; thinkers: {', '.join(allowed.thinkers)}"


def _parent(value: Any, allowed: CheckContext) -> str:
    if not isinstance(value, str):
        return "parent: the id of an agent is expected"
    known = ", ".join(allowed.agents) or "none yet"
    return "" if value in allowed.agents else f"parent: there is no agent '{value[:40]}'; agents: {known}"


def _sandbox(value: Any, allowed: CheckContext) -> str:
    if not isinstance(value, Mapping):
        return 'sandbox policy: it is a JSON object of fields, such as {"network": "off"}'
    try:
        allowed.policy.check_narrowing(value)
    except PolicyError as error:
        return str(error)
    return ""


def _read_by(read: Callable[[Mapping[str, Any]], object], key: str, **beside: Any) -> Check:
    """A check by the function that reads the setting from a configuration; its errors are sentences."""

    def check(value: Any, _allowed: CheckContext) -> str:
        try:
            read({**beside, key: value})
        except ValueError as error:
            return str(error)
        return ""

    return check


def _of_program(key: str) -> Check:
    """A check of one setting of another program; those that need each other are checked when it is made."""
    program = {} if key in ("command", "preset") else {"command": "program"}
    return _read_by(read_acp, key, network="on", **program)


def _goal_of_plans(text: str) -> str:
    most = cmd.GOAL_LIMIT
    return "" if 0 < len(text.strip()) <= most else f"a goal is a text of up to {most:,} characters"


def _goal_of_reasoner(text: str) -> str:
    try:
        read_goal(text)
    except ProgramError as error:
        return f"this is no goal of an AgentSpeak(L) agent, such as reach(home): {error}"
    return _goal_of_plans(text)


# ------------------------------------------------------------------ the table

_EVERY: dict[str, tuple[str, Check]] = {
    "description": ("what it is, in words", _text("description", 4_000)),
    "parent": ("the agent that it works for, on whose budget it draws", _parent),
    "budget": (
        "what is set aside for it, by kind: usd, tokens, calls, actions, seconds",
        lambda value, _allowed: check_limits(value),
    ),
    "sandbox": ("how its policy is tighter than the workspace's", _sandbox),
    "approvals": ("what it asks about: a preset, or a table with rules", _read_by(policy_of, "approvals")),
    "metacognition": ("when it looks back", _read_by(read_metacognition, "metacognition")),
    "stuck": ("what being stuck leads to: tell, hold or off", _read_by(read_stuck, "stuck")),
    "repairs": (
        "how often its model may put right an answer that cannot be used",
        _read_by(read_repairs, "repairs"),
    ),
    "core": ("whether the workspace needs it, so that it cannot be deleted", _flag("core")),
    "parameter_processing": (
        "which stages its parameters go through",
        _read_by(read_settings, "parameter_processing"),
    ),
    "recovery": ("how many failures in a row it bears", _read_by(read_recovery, "recovery")),
}
TYPES: tuple[AgentType, ...] = (
    AgentType(
        "bdi_agent",
        "an agent with goals, beliefs and plans of steps",
        {
            **_EVERY,
            "thinker": ("who plans: procedural, or claude where there is a model", _thinker),
            "style": ("how a model thinks: plan, or decide", _one_of("style", "plan", "decide")),
        },
        _goal_of_plans,
        aliases=("bdi", "agent"),
        example="agent_create bdi_agent tester budget.usd=2 run the tests",
    ),
    AgentType(
        REASONER,
        "an agent that an AgentSpeak(L) program runs",
        {
            **_EVERY,
            "program": ("its program", _read_by(read_config, "program")),
            "source": ("what the program is called in messages", _text("source", 300)),
            "semantics": ("jason or compat", _one_of("semantics", "jason", "compat")),
            "own_goals": ("whether the program's goals are adopted at once", _flag("own_goals")),
            "tracing": ("whether every change of its mind is journaled", _flag("tracing")),
            "world": ("the small world that it lives in", _read_by(read_config, "world", program="")),
            "seed": ("of the world", _count("seed", -(2**31), 2**31 - 1)),
            "generation": (
                "how plans that it lacks are generated",
                _read_by(read_config, "generation", program=""),
            ),
            "thinker": ("stays procedural", _one_of("thinker", "procedural")),
        },
        _goal_of_reasoner,
        needs=("program",),
        aliases=("asl", "agentspeak", "reasoner"),
        example="agent_create asl_agent robot file=PROGRAM.asl",
    ),
    AgentType(
        ACP_AGENT,
        "an agent of another program, such as OpenCode, by the Agent Client Protocol",
        {
            **_EVERY,
            "command": ("the program with its arguments, such as opencode acp", _of_program("command")),
            "preset": ("a program that is known by name, in place of a command", _of_program("preset")),
            "network": ("what it may reach: off, ports or on", _of_program("network")),
            "ports": ("TCP ports for the network `ports`; 443 by itself", _of_program("ports")),
            "env": ("names of variables that are passed on to it", _of_program("env")),
            "read": ("directories that it may read besides the sandbox", _of_program("read")),
            "mode": ("the mode of its session", _of_program("mode")),
            "model": ("the model of its session", _of_program("model")),
            "options": ("further options of its session, by id", _of_program("options")),
            "quiet_s": ("seconds without a request after which its turn is ended", _of_program("quiet_s")),
        },
        _goal_of_plans,
        aliases=("acp",),
        example="agent_create acp_agent dev command='opencode acp'",
    ),
)
"""Every type that can be created; `type_of` finds one."""
