"""What the words for a crew do, with and without a screen: work is followed to its end, lists are told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.crew_verbs import RUNS, VERSIONS
from app.verb import Local
from engine.agents.context import ORCHESTRATOR
from engine.agents.kinds import ErrorCode, HandoffState
from engine.agents.prompting import to_prompt
from engine.crew.crew import Crew
from engine.crew.graphing import GraphSelect
from engine.crew.material import read
from engine.crew.parts import HandoffError
from engine.crew.state import CrewState, Handoff, Idea
from engine.domain import crew_commands as cc
from engine.domain.text import clean, clean_line
from engine.engine import Engine
from engine.mcp import ServerState
from engine.selection import GraphFault, GraphUnavailable, Selection, Signal, signal_in
from engine.selection.values import MOST_ROWS

Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""
RESTS = (HandoffState.WAITING_HUMAN, HandoffState.PAUSED)
_AT_ONCE = cc.CancelHandoff | cc.SetPriority | cc.StepMode
"""What is done when it is said; nothing is waited for."""
CANDIDATES = 8
"""Agents that are told of a selection."""


# ------------------------------------------------------------------ commands


async def do_command(engine: Engine, command: cc.ForCrew) -> Answer:
    """Carry a command out without a screen; work that it begins is waited for.

    Exit code 0 when it ended well, 1 when not, 3 when it waits for the operator. Being cut off cancels it.
    """
    crew = await engine.crew()
    asked = set(crew.state.requests)
    receipt = await engine.submit(command, operator="cli")
    answer = {**receipt.data, "ok": receipt.ok, "message": receipt.message, "event": receipt.event}
    handoff, group = str(receipt.data.get("handoff", "")), str(receipt.data.get("group", ""))
    if not receipt.ok or not (handoff or group) or isinstance(command, _AT_ONCE):
        refused = crew.state.handoffs.get(handoff) if not receipt.ok else None
        waits = refused is not None and _wants_leave(crew.state, refused)
        return (0 if receipt.ok else 3 if waits else 1), answer, receipt.message
    try:
        await _settled(crew, handoff, group)
    except asyncio.CancelledError:
        for name in [handoff] if handoff else crew.state.groups[group].handoffs:
            cancel = cc.CancelHandoff(handoff=name, reason="cut off at the command line")
            await asyncio.shield(engine.submit(cancel, operator="cli"))
        raise
    return _ended(crew.state, handoff, group, asked, answer)


async def _settled(crew: Crew, handoff: str, group: str) -> None:
    """Wait until work is over, or nothing of it can go on without the operator."""
    while True:
        news = asyncio.create_task(crew.spine.changed())
        try:
            if _at_rest(crew.state, handoff, group):
                return
            await news
        finally:
            news.cancel()


def _at_rest(state: CrewState, handoff: str, group: str) -> bool:
    if group:
        found = state.groups[group]
        members = [state.handoffs[one] for one in found.handoffs if one in state.handoffs]
        # Between two members of a sequence none is open.
        waits = any(one.open for one in members) and all(_rests(state, one) for one in members)
        return bool(found.ended) or waits
    return _rests(state, state.handoffs[handoff])


def _rests(state: CrewState, one: Handoff) -> bool:
    """Whether a handoff is over, or it and all that it handed over wait for the operator."""
    if not one.open or one.state in RESTS:
        return True
    below = [each for each in state.children(one.id) if each.open]
    return bool(below) and all(_rests(state, each) for each in below)


def _ended(state: CrewState, handoff: str, group: str, asked: set[str], answer: dict[str, Any]) -> Answer:
    lines = [str(answer["message"])]
    waits = [one for one in state.open_requests() if one.id not in asked]
    if group:
        found = state.groups[group]
        members = [state.handoffs[one] for one in found.handoffs if one in state.handoffs]
        lines += [result_text(one) for one in members]
        lines += [found.message, found.output] if found.ended else []
        code = (0 if found.ok else 1) if found.ended else 3
        code = 3 if code and any(_wants_leave(state, one) for one in members) else code
        results = [one.result.model_dump(mode="json") for one in members if one.result is not None]
        answer |= {"results": results, "output": found.output, "code": found.code}
    else:
        one = state.handoffs[handoff]
        lines.append(result_text(one))
        code = (0 if one.state is HandoffState.COMPLETED else 1) if not one.open else 3
        code = 3 if code and _wants_leave(state, one) else code
        answer["state"] = one.state.value
        if one.result is not None:
            answer["result"] = one.result.model_dump(mode="json")
    for request in waits:
        options = "  ".join(f"{at} {option.label}" for at, option in enumerate(request.options, 1))
        lines.append(f"? {request.id} {request.agent_id}: {request.question} {options}".rstrip())
    answer |= {"ok": code == 0, "requests": [one.model_dump(mode="json") for one in waits]}
    return code, answer, clean("\n".join(filter(None, lines)))


def _wants_leave(state: CrewState, one: Handoff) -> bool:
    """Whether a handoff was refused because a server that it needs waits for the operator's leave."""
    if one.result is None or one.result.error_code is not ErrorCode.TOOL_UNAVAILABLE or one.spec is None:
        return False
    needed = (state.servers.get(use.server) for use in one.spec.tools.mcp_servers if use.required)
    return any(server is not None and server.state == ServerState.WAITING for server in needed)


def result_text(one: Handoff) -> str:
    """How a handoff stands, and what came of it."""
    head = f"{one.state.glyph} {one.id} {one.agent} {one.state.words}"
    result = one.result
    if result is None:
        return f"{head} {one.note}".rstrip()
    if result.error is not None:
        head = f"{head} {result.error_code or ''}: {result.error}"
    return "\n".join(filter(None, (head, result.output, *(f"- {each}" for each in result.key_findings))))


async def sources_told(engine: Engine, command: cc.Bringing) -> tuple[str, str]:
    """Why the sources of work cannot be read, or each with its length."""
    try:
        texts = await read(command.sources, (await engine.crew()).state, engine.root)
    except HandoffError as error:
        return error.message, ""
    return "", ", ".join(f"{clean_line(name)} ({len(text):,} characters)" for name, text in texts.items())


# ------------------------------------------------------------------ answers


async def answered(engine: Engine, intent: Local) -> Answer:
    """Tell what the crew knows.

    Raises:
        JournalError: its stream cannot be read.
    """
    crew = await engine.crew()
    state = crew.state
    match intent.action:
        case "ideas":
            return _ideas(state, intent.argument)
        case "select":
            return await _selection(crew, intent.argument)
        case "handoffs" | "handoff":
            return _handoffs(state, intent.argument)
        case "takeover":
            return 2, {}, f"write the text behind it: takeover {intent.argument} TEXT"
    return _agents(state, versions=intent.argument == VERSIONS, runs=intent.argument == RUNS)


def _agents(state: CrewState, *, versions: bool, runs: bool) -> Answer:
    rows, lines = [], []
    for name, one in state.agents.items():
        spec = one.spec
        rows.append(
            {
                "id": name,
                "type": spec.type.value,
                "version": spec.version,
                "versions": list(one.versions),
                "enabled": one.enabled,
                "floor": state.holder == name,
                "successes": one.successes,
                "runs": one.runs,
                "source": one.source,
            }
        )
        used = f"{one.successes}/{one.runs}" if one.runs else "-"
        told = ", ".join(one.versions) if versions else clean_line(spec.description, limit=80)
        off = "" if one.enabled else "off · "
        floor = "◆" if state.holder == name else " "
        lines.append(f"{floor} {name:<24} {spec.type.badge} {spec.version:<9} {used:>7} {off}{told}")
    answer: dict[str, Any] = {
        "agents": rows,
        "floor": state.holder if state.holder != ORCHESTRATOR else "",
    }
    worked = [one for one in state.handoffs.values() if one.run and not one.proof]
    if runs:
        answer["runs"] = [
            {"id": one.run, "agent": one.agent, "handoff": one.id, "state": one.state.value} for one in worked
        ]
        lines += [f"  {one.run:<31} {one.state.glyph} {one.state.words:<10} {one.id}" for one in worked]
    elif over := sum(not one.open for one in worked):
        lines.append(f"{over:,} ended run{'' if over == 1 else 's'}: agents {RUNS}, or handoffs")
    return 0, answer, "\n".join(lines) or "no agent is registered yet"


def _ideas(state: CrewState, agent: str) -> Answer:
    found = [one for one in state.ideas.values() if agent in ("", one.agent)]
    rows = [
        {"id": one.id, "agent": one.agent, "handoff": one.handoff, "text": one.text, "at": one.at,
         "state": one.state, "to": one.to}
        for one in found
    ]  # fmt: skip
    lines = [idea_text(one) for one in found if one.state == "parked"]
    lines += [idea_text(one) for one in found if one.state != "parked"]
    none = f"{agent or 'nobody'} has parked no idea" if agent else "no idea is parked"
    return 0, {"ideas": rows}, "\n".join(lines) or none


def idea_text(one: Idea) -> str:
    """An idea, and what became of it."""
    became = "" if one.state == "parked" else f" [{one.state}{f': {one.to}' if one.to else ''}]"
    return f"{one.id} {one.agent}{became}: {clean_line(one.text, limit=2_000)}"


def _handoffs(state: CrewState, wanted: str) -> Answer:
    found = [
        one for name, one in state.handoffs.items() if name.startswith(wanted) and (wanted or not one.proof)
    ]
    if wanted and len(found) == 1:
        one = found[0]
        answer = {
            "handoff": one.id,
            "state": one.state.value,
            "context": one.context.model_dump(mode="json"),
            "prompt": to_prompt(one.context),
            "result": one.result.model_dump(mode="json") if one.result is not None else None,
        }
        return 0, answer, result_text(one)
    rows = [
        {"id": one.id, "agent": one.agent, "state": one.state.value, "parent": one.context.parent_id}
        for one in found
    ]
    lines = [
        f"{one.id:<16} {one.agent:<24} {one.state.glyph} {one.state.words:<10} "
        f"{clean_line(one.context.task_description, limit=80)}"
        for one in found
    ]
    return 0, {"handoffs": rows}, "\n".join(lines) or "nothing was handed over yet"


# ------------------------------------------------------------------ who would be selected


@dataclass(frozen=True, slots=True)
class Explained:
    """Who would be selected for a text, and why."""

    signal: Signal
    """What of the text counted."""
    found: Selection
    seeds: Mapping[str, float]
    """What the seed's own query would have scored, by agent; those that it does not find are missing."""

    @property
    def standing(self) -> str:
        """What counted, and where the text goes."""
        words = ", ".join(self.signal.triggers) or "no trigger"
        done = f"; finished: {', '.join(self.signal.previous)}" if self.signal.previous else ""
        found = self.found
        where = f"nothing fits: {found.route} clarifies" if found.clarify else f"it goes to {found.route}"
        return clean_line(f"{words}{done} · {where}")


async def explained(crew: Crew, text: str) -> Explained:
    """Ask the selection graph itself, as the manager does, by both ways of scoring.

    Raises:
        GraphFault: it cannot be asked.
        JournalError: the journal that it follows cannot be read.
    """
    select = crew.selective.select
    if not isinstance(select, GraphSelect):
        raise GraphUnavailable(crew.selection_trouble or "There is no selection graph in this workspace.")
    await select.caught_up()
    able = (one.spec.id for one in crew.state.agents.values() if one.enabled and one.spec.selectable)
    signal = await signal_in(
        text, select.graph, previous=crew.state.finished(), available=tuple(able), limit=CANDIDATES
    )
    found = await select.graph.select(signal)
    literal = await select.graph.select(replace(signal, limit=MOST_ROWS), policy="literal")
    return Explained(signal, found, {one.id: one.score for one in literal.rows})


async def _selection(crew: Crew, text: str) -> Answer:
    try:
        told = await explained(crew, text)
    except GraphFault as error:
        return 1, {"ok": False, "message": clean_line(str(error))}, clean_line(str(error))
    lines, rows = [told.standing], []
    for one in told.found.rows:
        seed = told.seeds.get(one.id)
        parts = {"T": one.T, "P": one.P, "C": one.C, "R": one.R}
        rows.append({"agent": one.id, "score": one.score, **parts, "literal": seed, "why": list(one.why)})
        shown = "  ".join(f"{name} {value:g}" for name, value in parts.items())
        by_seed = f"{seed:g}" if seed is not None else "-"
        lines.append(f"{one.score:<9g} {one.id:<24} {shown}  (seed {by_seed})  {' '.join(one.why)}")
    lost = [{"agent": one.candidate.id, "reason": one.reason} for one in told.found.lost]
    lines += [f"{'-':<9} {one['agent']:<24} {one['reason']}" for one in lost]
    answer = {"rows": rows, "lost": lost, "route": told.found.route, "triggers": list(told.signal.triggers)}
    return 0, answer, "\n".join(lines)
