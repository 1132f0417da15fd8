"""The arguments of commands about a crew: agents, handoffs, requests, ideas, tasks, and what is given with
work.

Ids that do not exist are answered with the three nearest, where the crew's state is known; else the crew's
manager answers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from app.commands.arguments import Choices, Rest, Setting, Word, pairs, priority
from app.commands.command import Argument, Context, Form, GrammarError, Run, Submit
from engine.core.command import Command as EngineCommand
from engine.core.text import StrictJsonError, read_json

if TYPE_CHECKING:
    from engine.crew.state import CrewState, Handoff


def _of_crew(pick: Callable[[CrewState], Iterable[tuple[str, str]]]) -> Choices:
    """Choices from what the crew knows; none where that is not known."""
    return lambda context: list(pick(context.crew)) if context.crew is not None else []


def agent_choices(*kinds: str, before: str = "") -> Choices:
    """Registered agents of these types, or all."""

    @_of_crew
    def choices(crew: CrewState) -> Iterable[tuple[str, str]]:
        for spec in (entry.spec for entry in crew.agents.values()):
            if not kinds or spec.type in kinds:
                yield f"{before}{spec.id}", f"{spec.type}: {spec.description[:60]}"

    return choices


def _handoff_choice(handoff: Handoff) -> tuple[str, str]:
    task = handoff.context.task_description[:50]
    return handoff.id, f"{handoff.agent} {handoff.state.words}: {task}"


def _newest(crew: CrewState) -> list[Handoff]:
    return list(crew.handoffs.values())[: -NEWEST - 1 : -1]


@_of_crew
def handoff_choices(crew: CrewState) -> Iterable[tuple[str, str]]:
    """The newest handoffs."""
    return map(_handoff_choice, _newest(crew))


@_of_crew
def step_mode_choices(crew: CrewState) -> Iterable[tuple[str, str]]:
    """Open handoffs that can halt after each part."""
    for handoff in crew.open():
        if handoff.halts:
            switch = "off" if handoff.as_running.steps else "on"
            yield f"{handoff.id} {switch}", f"{handoff.agent} {handoff.state.words}"


@_of_crew
def open_handoff_choices(crew: CrewState) -> Iterable[tuple[str, str]]:
    """Handoffs that have not ended."""
    return map(_handoff_choice, crew.open())


@_of_crew
def request_choices(crew: CrewState) -> Iterable[tuple[str, str]]:
    """What is asked of the operator."""
    return [(request.id, f"{request.agent_id}: {request.title}") for request in crew.open_requests()]


@_of_crew
def debate_agents(crew: CrewState) -> Iterable[tuple[str, str]]:
    """Registered agents that are debates."""
    specs = {name: entry.spec for name, entry in crew.agents.items()}
    return [(name, spec.description[:60]) for name, spec in specs.items() if spec.debate]


@_of_crew
def _guided_handoffs(crew: CrewState) -> Iterable[tuple[str, str]]:
    for handoff in crew.open():
        if handoff.spec is not None and handoff.spec.type == "guided":
            about = f"{handoff.agent} {handoff.state.words}"
            yield from ((f"resume {name}", about) for name in (handoff.agent, handoff.id))


@_of_crew
def _results(crew: CrewState) -> Iterable[tuple[str, str]]:
    for handoff in _newest(crew):
        if handoff.result is not None and handoff.result.output:
            yield handoff.id, f"what {handoff.agent} returned"


def _sources(context: Context) -> Iterable[tuple[str, str]]:
    files = [(path, "a file of the sandbox") for path in context.paths if not path.endswith("/")]
    return [*files, *_results(context)]


def guided_choices(context: Context) -> Iterable[tuple[str, str]]:
    """What can be begun or resumed of guided agents."""
    return [*agent_choices("guided", before="start ")(context), *_guided_handoffs(context)]


NEWEST = 60
"""Handoffs that are offered."""
STEP_MODE = "step_mode"
STEP = "step"
"""Whether a debate or a pipeline halts after each part, from the beginning."""


def nearest_ids(typed: str, known: Collection[str]) -> str:
    """The three ids that are most like one, in words."""
    nearest = difflib.get_close_matches(typed, list(known), n=3, cutoff=0.0)
    return f"the nearest: {', '.join(nearest)}" if nearest else "there is none yet"


def parse_agent(name: str, context: Context) -> str:
    """The id of a registered agent, in any case; the crew is left to know those of other engines."""
    crew, agent = context.crew, name.lower()
    if crew is not None and agent not in crew.agents and not crew.remote:
        raise GrammarError(f"no agent '{name[:40]}' is registered; {nearest_ids(agent, crew.agents)}")
    return agent


def parse_id(what: str, name: str, known: Mapping[str, Any] | None) -> str:
    """The id that begins like this; None for `known` leaves it to the crew."""
    if known is None or name in known:
        return name
    matches = [each for each in known if each.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise GrammarError(f"'{name[:40]}' begins several: {', '.join(matches[:3])}")
    raise GrammarError(f"there is no {what} '{name[:40]}'; {nearest_ids(name, known)}")


def parse_handoff(name: str, context: Context) -> str:
    """The id of a handoff, by a unique beginning."""
    return parse_id("handoff", name, context.crew.handoffs if context.crew is not None else None)


def parse_request(name: str, context: Context) -> str:
    """The id of a request, by a unique beginning."""
    return parse_id("request", name, context.crew.requests if context.crew is not None else None)


def parse_task(rest: str, _context: Context | None = None) -> str:
    """What is left of a line as the task, without quotes around all of it."""
    quoted = len(rest) > 1 and rest[0] in "\"'" and rest.find(rest[0], 1) == len(rest) - 1
    task = rest[1:-1].strip() if quoted else rest
    if not task:
        raise GrammarError("the task is missing")
    return task


def parse_sources(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is given with work, as fields of its command: JSON where it looks like it, else the text."""
    fields: dict[str, Any] = {}
    if given := str(settings.get("given") or "").strip():
        fields["given"] = given
        if given[0] in "{[":
            try:
                fields["given"] = read_json(given)
            except StrictJsonError as error:
                raise GrammarError(f"given= looks like JSON and is none: {error}") from None
    if settings.get("sources") is not None:
        names = tuple(dict.fromkeys(filter(None, map(str.strip, settings["sources"].split(",")))))
        if not names:
            raise GrammarError("sources= names files of the sandbox or handoffs: sources=a.md,h-12")
        fields["sources"] = names
    if (settings.get(STEP) or "off") not in ("on", "off"):
        raise GrammarError("step= is on or off")
    if settings.get(STEP) == "on":
        fields["metadata"] = {STEP_MODE: True}
    return fields


# ------------------------------------------------------------------ arguments

NORMAL_TO_URGENT = priority("[1-3]", "priorities are !1 normal, !2 high, !3 urgent")


def handoff_id() -> Word:
    """A handoff, by a unique beginning."""
    return Word("handoff", "a handoff", parse=parse_handoff, offers=handoff_choices)


def of_handoff(run: Run | type[EngineCommand], *arguments: Argument) -> Form:
    """The form of a command that is about a handoff."""
    run = Submit(run) if isinstance(run, type) else run
    return Form(run, (handoff_id(), *arguments), when="h-", needs="crew")


def agent_id(name: str = "to", *kinds: str, optional: bool = False) -> Word:
    """A registered agent."""
    return Word(
        name, "an agent", optional, "AGENT", parse_agent, agent_choices(*kinds), "" if optional else None
    )


def several_agents(text: str, context: Context) -> tuple[tuple[str, ...], str]:
    """`a,b,c TASK`: the agents, each once, and the task."""
    match = re.match(r"([^\s,]+(?:\s*,\s*[^\s,]+)*)\s*(.*)", text, re.S)
    if match is None:
        raise GrammarError("agents are missing: a,b,c")
    names = [name for name in re.split(r"[\s,]+", match[1]) if name]
    return tuple(dict.fromkeys(parse_agent(name, context) for name in names)), parse_task(match[2])


TASK = Rest("task", "the task", parse=parse_task)
SOURCES = (Setting("given", '"…"'), Setting("sources", "A,B", _sources))
STEPS = Setting(
    "step", "on", pairs(("on", "it asks you after each phase or round"), ("off", "it goes through"))
)


RUNS = "--all"
"""The option of `agents` that lists ended runs."""
