"""What may stand in lines about a crew: agents, handoffs, requests, ideas, from what there is now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from app.verb import Choices, Context

if TYPE_CHECKING:
    from engine.crew.state import CrewState


def _each(context: Context, pick: Callable[[CrewState], Iterable[tuple[str, str]]]) -> list[tuple[str, str]]:
    return list(pick(context.crew)) if context.crew is not None else []


def agents(*kinds: str, before: str = "") -> Choices:
    """Registered agents of these types, or all."""

    def choices(context: Context) -> Iterable[tuple[str, str]]:
        return _each(
            context,
            lambda crew: (
                (f"{before}{one.spec.id}", f"{one.spec.type}: {one.spec.description[:60]}")
                for one in crew.agents.values()
                if not kinds or one.spec.type in kinds
            ),
        )

    return choices


def handoffs(context: Context) -> Iterable[tuple[str, str]]:
    """The newest handoffs."""
    return _each(
        context,
        lambda crew: (
            (one.id, f"{one.agent} {one.state.words}: {one.context.task_description[:50]}")
            for one in reversed(list(crew.handoffs.values())[-60:])
        ),
    )


def halting(context: Context) -> Iterable[tuple[str, str]]:
    """Open handoffs that can halt after each part."""
    return _each(
        context,
        lambda crew: (
            (f"{one.id} {'off' if one.as_running.steps else 'on'}", f"{one.agent} {one.state.words}")
            for one in crew.open()
            if one.halts
        ),
    )


def opened(context: Context) -> Iterable[tuple[str, str]]:
    """Handoffs of which something can still come."""
    return _each(
        context,
        lambda crew: ((one.id, f"{one.agent} {one.state.words}: {one.context.task_description[:50]}")
                      for one in crew.open()),
    )  # fmt: skip


def requests(context: Context) -> Iterable[tuple[str, str]]:
    """What is asked of the operator."""
    return _each(
        context, lambda crew: ((one.id, f"{one.agent_id}: {one.title}") for one in crew.open_requests())
    )


def ideas(context: Context) -> Iterable[tuple[str, str]]:
    """What can be done with each idea that waits."""
    return _each(
        context,
        lambda crew: (
            (f"{how} {one.id}", f"{one.agent}: {one.text[:60]}")
            for one in crew.parked()
            for how in ("take", "drop")
        ),
    )


def anybody(context: Context) -> Iterable[tuple[str, str]]:
    """Agents of the engine, and registered ones."""
    mine = [(name, "an agent of the engine: it becomes a goal") for name in context.agents]
    return [*mine, *agents()(context)]


def _sources(context: Context) -> Iterable[tuple[str, str]]:
    files = [(path, "a file of the sandbox") for path in context.paths if not path.endswith("/")]
    done = _each(
        context,
        lambda crew: (
            (one.id, f"what {one.agent} returned")
            for one in reversed(list(crew.handoffs.values())[-60:])
            if one.result is not None and one.result.output
        ),
    )
    return [*files, *done]


def of_work(context: Context) -> Mapping[str, Iterable[tuple[str, str]]]:
    """Values of what is given with work."""
    on_off = [("on", "it asks you after each phase or round"), ("off", "it goes through")]
    return {"sources=": _sources(context), "step=": on_off}


def of_debate(context: Context) -> Mapping[str, Iterable[tuple[str, str]]]:
    """Values of the settings of a debate."""
    anybody = list(agents()(context))
    debates = _each(
        context,
        lambda crew: (
            (name, one.spec.description[:60]) for name, one in crew.agents.items() if one.spec.debate
        ),
    )
    rounds = [(str(number), "rounds after the openings") for number in (1, 2, 3, 4)]
    named = {"for=": anybody, "against=": anybody, "judge=": anybody, "agent=": debates, "rounds=": rounds}
    return {**named, **of_work(context)}


def guided(context: Context) -> Iterable[tuple[str, str]]:
    """What can be begun or gone on with of guided agents."""
    waiting = _each(
        context,
        lambda crew: (
            (f"resume {name}", f"{one.agent} {one.state.words}")
            for one in crew.open()
            if one.spec is not None and one.spec.type == "guided"
            for name in (one.agent, one.id)
        ),
    )
    return [*agents("guided", before="start ")(context), *waiting]
