"""Rewinding, adopting, undoing and forking: previews, carrying it out, and the results of forks.

Rates have Wilson's interval at 95 % and the number of runs; a fork that has not ended does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import mean
from typing import Any

from app.commands.command import Answer, CommandHost, GrammarError, Values, answer_message, chosen_agent
from app.commands.comparison import Line, Part, parts_text, state_changes
from app.commands.headless import EXIT_CODES, Status
from app.commands.missions import is_idle, wait_until
from app.commands.time import CONFIRM, ForkRequest, RewindRequest
from app.projection.event_lines import call_text
from engine.agent.steering.rewind_preview import RewindError, RewindPreview
from engine.agent.steering.undo import UndoError
from engine.api.workspace_engine import WorkspaceEngine
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.goals import GoalStatus
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.sandbox.snapshots.entry import Restoration
from engine.value import asdict, dataclass, replace

WORDS = 200
"""Characters of a line that a preview shows."""
OUTSIDE = "programs may have reached further than the files; what they did to files comes back"
LISTED = 500
"""Lines of one part that a preview shows."""


async def preview_rewind(
    engine: WorkspaceEngine, agent: str, request: RewindRequest, here: int | None = None
) -> RewindPreview:
    """What a rewind would do.

    Raises:
        RewindError: it cannot be gone back there.
        JournalError: the journal cannot be read.
    """
    version = await engine.time_travel.place_of(agent, request.place, here)
    return await engine.time_travel.preview(agent, version, request.scope, request.paths)


def rewind_command(preview: RewindPreview) -> cmd.Rewind:
    """The command that carries a preview out."""
    return cmd.Rewind.model_validate(
        {"agent": preview.agent, "to": preview.to, "scope": preview.scope.value, "paths": preview.paths}
    )


def rewind_title(preview: RewindPreview) -> str:
    """Where a rewind leads, in a line."""
    moved = "" if preview.asked == preview.to else f" ({preview.asked} is in the middle of something)"
    what = {"both": "state and files", "files": "files only", "state": "state only"}[preview.scope.value]
    return f"Rewind {preview.agent} to event {preview.to}{moved}: {what}, {preview.after.events} events back"


def rewind_parts(preview: RewindPreview) -> tuple[Part, ...]:
    """A preview in parts, the most important first."""
    lasting = tuple(("!", _words(line)) for line in preview.lasting[:LISTED])
    note = OUTSIDE if preview.after.outside else ""
    parts = [Part("Cannot be undone", lasting, note)]
    if preview.scope.value != "state":
        parts.append(_files(preview))
    if preview.scope.value != "state" and preview.others:
        lost = tuple(("!", _words(line)) for line in preview.others[:LISTED])
        parts.append(Part("Changed by others since, and lost", lost))
    if preview.scope.value != "files":
        changed = state_changes(preview.now, preview.then)
        parts += [replace(part, lines=part.lines[:LISTED]) for part in changed]
    return tuple(parts)


def _files(preview: RewindPreview) -> Part:
    if preview.trouble:
        return Part("Files", (("!", _words(f"cannot be brought back: {preview.trouble}")),))
    note = preview.files.note if preview.files is not None else ""
    sure = "" if preview.files is None or preview.files.exact else "NOT CERTAIN: "
    done = preview.restoration
    lines = tuple(_restored(done))[:LISTED] if done is not None else ()
    return Part("Files", lines, _words(sure + note))


def _restored(done: Restoration) -> Iterator[Line]:
    for sign, paths, what in (
        ("-", done.removed, "goes"),
        ("+", done.made, "directory made"),
        ("~", done.written, "written"),
        ("~", done.mode_changed, "permissions"),
    ):
        yield from ((sign, f"{_words(path)}: {what}") for path in paths)
    if done.more:
        yield "~", f"and {done.more} more"


def adopted_parts(preview: Restoration) -> tuple[Part, ...]:
    """What taking over a fork's files would do."""
    left = tuple(("!", f"{_words(each.path)}: {_words(each.why)}") for each in preview.left[:LISTED])
    return (
        Part("Files", tuple(_restored(preview))[:LISTED], "the files of now are saved first"),
        Part("Not taken over", left),
    )


def _words(text: str) -> str:
    return clean_line(text, limit=WORDS)


# ------------------------------------------------------------------ without a screen


async def run_rewind(host: CommandHost, values: Values) -> Answer:
    """Show what a rewind would do, and do it where `--yes` is given."""
    request = values["request"]
    try:
        preview = await preview_rewind(host.engine, chosen_agent(host), request)
    except RewindError as error:
        raise GrammarError(str(error)) from None
    title, parts = rewind_title(preview), rewind_parts(preview)
    return await _apply(host, rewind_command(preview), title, parts, sure=request.yes)


async def run_adopt(host: CommandHost, values: Values) -> Answer:
    """Show what taking over a fork's files would do, and do it where `--yes` is given."""
    agent, fork = host.context.agent, values["fork"]
    try:
        preview = await host.engine.time_travel.adopt_preview(agent, fork)
    except (RewindError, KeyError) as error:
        raise GrammarError(str(error)) from None
    title, parts = f"{agent} takes over the files of {fork}", adopted_parts(preview)
    return await _apply(host, cmd.AdoptFork(agent=agent, fork=fork), title, parts, sure=bool(values["yes"]))


async def _apply(
    host: CommandHost, command: cmd.Command, title: str, parts: Sequence[Part], *, sure: bool
) -> Answer:
    """Send what was previewed where the operator is sure, else say how that is said."""
    text, facts = parts_text(title, parts), {"title": title, "parts": list(map(asdict, parts))}
    if not sure:
        hint = f"nothing was changed; add {CONFIRM} to do it"
        return 0, {"ok": True, "applied": False, **facts}, f"{text}\n\n{hint}"
    code, answer, message = await host.submit(command)
    return code, {**answer, "applied": code == 0, **facts}, f"{text}\n\n{message}"


async def run_undo(host: CommandHost, values: Values) -> Answer:
    """Undo the newest change, or redo it; with `--dry-run` only say what that would be."""
    agent, again, dry = chosen_agent(host), values["again"], values["dry_run"]
    try:
        offer = await host.engine.time_travel.undo_offer(agent, again=again)
    except UndoError as error:
        return answer_message(False, str(error))
    what = {"of": offer.of, "by": offer.by, "does": offer.words}
    text = f"{'redo' if again else 'undo'} of {offer.of} ({offer.by}): {clean_line(offer.words)}"
    if isinstance(offer.command, cmd.Rewind) and not values["yes"]:
        dry, text = True, f"{text}; what comes with it: rewind {offer.command.to}, and {CONFIRM} does it"
    if dry:
        return 0, {"ok": True, "applied": False, **what}, text
    code, answer, message = await host.submit(offer.as_command(agent))
    return code, {**answer, "applied": code == 0, **what}, f"{text}\n{message}"


# ------------------------------------------------------------------ forks

ID_LETTERS = 32
Z = 1.959964
"""Of the standard normal distribution, for 95 %."""
_STEERS = (cmd.Run, cmd.Pause, cmd.Step, cmd.Stop)
"""Commands that change nothing of what a run is about."""


@dataclass(frozen=True, slots=True)
class ForkResult:
    """The result of one agent since a fork's event."""

    agent: str
    parent: str
    """The event that it began at; empty for the original."""
    edits: str
    """What the operator changed in it, in words; empty where it is as the original was."""
    ended: str
    """`achieved`, `failed`, or `open` while goals of the event are."""
    actions: int
    failed_actions: int
    tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval at 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ForkGroup:
    """Forks from one event with the same changes."""

    parent: str
    edits: str
    runs: tuple[ForkResult, ...]

    @property
    def over(self) -> tuple[ForkResult, ...]:
        """The runs that have ended."""
        return tuple(run for run in self.runs if run.ended != "open")

    @property
    def rate(self) -> Interval | None:
        """Part of the ended runs that achieved its goals; None before one has ended."""
        over = self.over
        return wilson_interval(sum(run.ended == "achieved" for run in over), len(over)) if over else None


def wilson_interval(successes: int, runs: int) -> Interval:
    """A rate with Wilson's score interval (Wilson 1927), which holds for few runs as well."""
    rate, square = successes / runs, Z * Z
    middle = (rate + square / (2 * runs)) / (1 + square / runs)
    half = Z / (1 + square / runs) * sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs))
    return Interval(rate, max(0.0, middle - half), min(1.0, middle + half))


async def run_fork(
    engine: WorkspaceEngine, agent: str, request: ForkRequest, operator: str, here: int | None = None
) -> tuple[list[str], cmd.Receipt]:
    """Make the forks, change them, and let them run where several are wanted; their ids, and the last answer.

    Raises:
        RewindError: the place is none.
    """
    version = await engine.time_travel.place_of(agent, request.place, here)
    made: list[str] = []
    receipt = cmd.Receipt(ok=True, message="")
    for _ in range(max(1, request.times)):
        name = request.name or await free_fork_name(engine, agent)
        receipt = await engine.submit(cmd.ForkAgent(agent=agent, to=version, name=name), operator=operator)
        if not receipt.ok:
            return made, receipt
        made.append(name)
        for key, value in request.beliefs:
            changed = await engine.submit(cmd.Believe(agent=name, key=key, value=value), operator=operator)
            if not changed.ok:
                return made, changed
    if request.times:
        for name in made:
            receipt = await engine.submit(cmd.Run(agent=name, ask=False), operator=operator)
            if not receipt.ok:
                return made, receipt
    return made, receipt


async def free_fork_name(engine: WorkspaceEngine, agent: str) -> str:
    """An id for a fork that no agent has had: `pilot-1-f1`, `pilot-1-f2`, …"""
    taken = await engine.store.streams()
    number = 1
    while (name := f"{agent[: ID_LETTERS - 5]}-f{number}") in taken:
        number += 1
    return name


async def fork_results(
    engine: WorkspaceEngine, agent: str
) -> tuple[ForkResult | None, tuple[ForkGroup, ...]]:
    """The results of an agent and of its forks.

    Raises:
        JournalError: the journal cannot be read.
    """
    states = [await engine.view(name) for name in engine.agents]
    forks = [each for each in states if each.forked is not None and each.forked.agent == agent]
    original = next((each for each in states if each.agent_id == agent), None)
    groups: dict[tuple[str, str], list[ForkResult]] = {}
    for state in forks:
        assert state.forked is not None
        edits = await _edits(engine, state.agent_id)
        then = await engine.view(agent, int(state.forked.parent.rpartition(":")[2]))
        result = _result(state, then, state.forked.parent, edits)
        groups.setdefault((result.parent, edits), []).append(result)
    first = _result(original, original, "", "") if original is not None else None
    return first, tuple(ForkGroup(*key, tuple(runs)) for key, runs in groups.items())


def _result(state: AgentState, then: AgentState, parent: str, edits: str) -> ForkResult:
    """How the root goals ended that were open when it began."""
    goals = [goal.id for goal in then.root_goals() if not parent or not goal.status.terminal]
    ends = [state.goals[goal].status if goal in state.goals else GoalStatus.DROPPED for goal in goals]
    ended = "open" if not ends or any(not status.terminal for status in ends) else "failed"
    if ends and all(status is GoalStatus.ACHIEVED for status in ends):
        ended = "achieved"
    counts = (state.actions, state.failed_actions, state.tokens, state.cost_usd)
    return ForkResult(state.agent_id, parent, edits, ended, *counts)


async def _edits(engine: WorkspaceEngine, fork: str) -> str:
    """The operator's commands that make a fork another run than the original's, in words."""
    commands = []
    for event in await engine.store.last(50, fork, kind=ev.CommandReceived.kind):
        payload = ev.payload_of(event)
        assert isinstance(payload, ev.CommandReceived)
        command = cmd.parse_command(payload.command)
        if not isinstance(command, _STEERS):
            args = {name: value for name, value in payload.command.items() if name not in cmd.NOT_TOLD}
            commands.append(call_text(command.do, args))
    return clean_line("; ".join(commands), limit=200)


def _summary(group: ForkGroup) -> str:
    rate, over = group.rate, group.over
    if rate is None:
        return f"none of {len(group.runs)} has ended"
    waits = f"; {len(group.runs) - len(over)} still open" if len(over) < len(group.runs) else ""
    cost, actions = mean(run.cost_usd for run in over), mean(run.actions for run in over)
    ended = f"achieved {rate.value:.0%} [{rate.low:.0%}, {rate.high:.0%}] of n = {len(over)}{waits}"
    return f"{ended}; on average ${cost:.4f} and {actions:.1f} actions"


def _origin(group: ForkGroup) -> str:
    return f"from {group.parent}{f' with {group.edits}' if group.edits else ' as it was'}"


def _signed(result: ForkResult) -> tuple[str, str]:
    sign = {"achieved": "+", "failed": "-"}.get(result.ended, "~")
    spent = f"{result.failed_actions} failed, {result.tokens} tokens, ${result.cost_usd:.4f}"
    return sign, f"{result.agent}: {result.ended}, {result.actions} actions, {spent}"


# ------------------------------------------------------------------ without a screen


async def run_fork_command(host: CommandHost, values: Values) -> Answer:
    """Make forks; where they are to run, wait until they rest and give their results."""
    engine, agent, request = host.engine, chosen_agent(host), values["request"]
    if request.times and (refusal := engine.sandbox(agent).refusal):
        return EXIT_CODES[Status.NO_JAIL], {"ok": False, "message": refusal}, refusal
    try:
        forks, receipt = await run_fork(engine, agent, request, host.operator)
    except RewindError as error:
        raise GrammarError(str(error)) from None
    answer: dict[str, Any] = {"ok": receipt.ok, "message": receipt.message, "agents": forks}
    if not receipt.ok or not request.times:
        return int(not receipt.ok), answer, receipt.message
    await asyncio.gather(*(wait_until(engine, name, is_idle) for name in forks))
    code, results, text = await show_results(host, {"agent": agent})
    return code, {**answer, **results}, text


async def show_results(host: CommandHost, values: Values) -> Answer:
    """The results of an agent and of its forks, as a table."""
    state = host.context.state
    # Asked of a fork, it shows all forks of the same agent.
    own = state.forked.agent if state is not None and state.forked is not None else chosen_agent(host)
    original, groups = await fork_results(host.engine, values["agent"] or own)
    lines = [f"{'agent':<24} {'ended':<9} {'actions':>7} {'failed':>6} {'tokens':>8} {'cost':>8}"]
    lines += map(_row, filter(None, [original]))
    for group in groups:
        lines += ["", f"forks {_origin(group)}", *map(_row, group.runs), f"  {_summary(group)}"]
    if not groups:
        lines.append("no forks yet: fork EVENT makes one, fork EVENT x5 five that run at once")
    answer = {
        "original": asdict(original) if original is not None else None,
        "groups": [
            {
                **asdict(group),
                "n": len(group.over),
                "achieved": asdict(group.rate) if group.rate is not None else None,
            }
            for group in groups
        ],
    }
    return 0, answer, "\n".join(lines)


def _row(result: ForkResult) -> str:
    counts = f"{result.actions:>7} {result.failed_actions:>6} {result.tokens:>8}"
    return f"{result.agent:<24} {result.ended:<9} {counts} {f'${result.cost_usd:.4f}':>8}"
