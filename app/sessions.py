"""`pilothouse sessions`: the journal read as sessions, verified, and replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.exporting import ExportError, export, unpacked
from app.headless import EXIT_CODES, Status
from app.lines import line_of
from app.report import write_report
from engine.domain.goal import GoalStatus
from engine.domain.ports import Ports
from engine.journal import events as ev
from engine.journal.blobs import BlobStore
from engine.journal.errors import BlobError
from engine.journal.event import WORKSPACE, of_agent
from engine.journal.fold import fold
from engine.journal.past import Past
from engine.journal.rows import Head
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.journal.verify import verify, workspace_head
from engine.replay import Replay, replay_stream

Answer = tuple[int, dict[str, Any], str]


@dataclass(frozen=True, slots=True)
class _Session:
    name: str
    opened: str
    closed: str
    """Empty when the session did not close in good order."""
    first: int
    last: int


async def look_at(
    workspace: Path,
    what: str,
    name: str,
    exported: Path | None,
    at: str = "",
    target: Path | None = None,
) -> Answer:
    """Answer one of the `sessions` sub-commands, on a workspace or on an exported journal.

    Args:
        workspace: where the journal is.
        what: the sub-command.
        name: a session or an agent, or the file to export to.
        exported: the file of an export to be read in the place of the workspace.
        at: the event as of which an agent is shown; empty for what happened.
        target: the file that a report is written to.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    try:
        if what == "export":
            size = await asyncio.to_thread(export, workspace, Path(name))
            return 0, {"ok": True, "file": name, "bytes": size}, f"{name}: {size} bytes"
        if exported is None:
            return await look(workspace, what, name, at, target)
        with unpacked(exported) as room:
            return await look(room, what, name, at, target)
    except ExportError as error:
        return 2, {}, str(error)


async def run_again(exported: Path, agent: str) -> Answer:
    """An exported run once more with its recorded thinker: no model, no network, nothing acts.

    Args:
        exported: the file of `sessions export`.
        agent: whose run; where the export has one agent only, that one's.

    Raises:
        JournalError: the export holds no journal that can be read.
    """
    try:
        with unpacked(exported) as room:
            store = await JournalStore.open(room, clock=Ports().clock, read_only=True)
            try:
                return await _run_again(store, room, agent)
            finally:
                await store.close()
    except ExportError as error:
        return 2, {}, str(error)


async def _run_again(store: JournalStore, room: Path, agent: str) -> Answer:
    agents = [stream for stream in await store.streams() if of_agent(stream)]
    if agent not in agents and len(agents) != 1:
        return 2, {}, f"say with --agent which run is meant; the export has: {', '.join(agents) or 'none'}"
    name = agent if agent in agents else agents[0]
    blobs = BlobStore(room / DATA_DIRECTORY / "blobs")
    clock = Ports().clock
    began = clock.monotonic()
    replay = await _replay_one(store, blobs, name)
    state = fold(await store.read(name))
    goal = max(state.goals.values(), key=lambda one: one.order, default=None)
    achieved = goal is not None and goal.status is GoalStatus.ACHIEVED
    same = f"{replay.events} events came out the same" if replay.matches else replay.difference
    if replay.matches and state.intervention is not None:
        status = Status.NEEDS_OPERATOR
    else:
        status = Status.GOAL_ACHIEVED if replay.matches and achieved else Status.FAILED
    answer = {
        "status": status.value,
        "goal": goal.text if goal is not None else "",
        "session": state.session,
        "agent": name,
        "loops": state.tick,
        "actions": state.actions,
        "failed_actions": state.failed_actions,
        "thinker": "recorded",
        "tokens": 0,
        "cost_usd": 0.0,
        "duration_s": round(clock.monotonic() - began, 3),
        "message": same,
        "matches": replay.matches,
        "model_calls": replay.model_calls,
        "journal_head": workspace_head(await store.streams()),
    }
    return EXIT_CODES[status], answer, same


async def look(workspace: Path, what: str, name: str, at: str = "", target: Path | None = None) -> Answer:
    """Answer one of the `sessions` sub-commands; reading only, also while an engine runs.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    answers: dict[str, Callable[[JournalStore, Path, str], Coroutine[Any, Any, Answer]]] = {
        "list": _list,
        "show": _show,
        "verify": _verify,
        "replay": _replay,
    }
    store = await JournalStore.open(workspace, clock=Ports().clock, read_only=True)
    try:
        if at:
            return await _show_at(store, name, at)
        if what == "report" and target is not None:
            return await _report(store, name, target)
        return await answers[what](store, workspace, name)
    finally:
        await store.close()


async def _sessions(store: JournalStore) -> list[_Session]:
    found: list[_Session] = []
    head = await store.head_seq()
    for event in await store.read(WORKSPACE):
        said = ev.payload_of(event)
        if isinstance(said, ev.SessionOpened):
            if found:
                last = found[-1]
                found[-1] = _Session(last.name, last.opened, last.closed, last.first, event.seq - 1)
            # The making of the workspace belongs to the session that made it.
            found.append(_Session(said.session, event.at, "", event.seq if found else 1, head))
        elif isinstance(said, ev.SessionClosed) and found:
            last = found[-1]
            found[-1] = _Session(last.name, last.opened, event.at, last.first, head)
    return found


async def _list(store: JournalStore, workspace: Path, name: str) -> Answer:
    sessions = await _sessions(store)
    rows = [
        {
            "session": s.name,
            "opened": s.opened,
            "closed": s.closed or None,
            "events": s.last - s.first + 1,
        }
        for s in sessions
    ]
    lines = [
        f"{s.name}  {s.opened[:19]}  {'closed' if s.closed else 'open or cut off':<16} "
        f"{s.last - s.first + 1} events"
        for s in sessions
    ]
    return 0, {"sessions": rows}, "\n".join(lines)


async def _chosen(store: JournalStore, name: str) -> tuple[_Session | None, str]:
    """The session of this name, the newest for none, None for an agent's; and why there is neither."""
    sessions = await _sessions(store)
    streams = await store.streams()
    chosen = next((s for s in sessions if name and s.name.startswith(name)), None)
    if name and chosen is None and name not in streams:
        known = ", ".join([s.name for s in sessions] + [s for s in streams if of_agent(s)])
        return None, f"there is no session or agent '{name}'; there are: {known}"
    return chosen or (sessions[-1] if sessions and not name else None), ""


async def _report(store: JournalStore, name: str, target: Path) -> Answer:
    chosen, wrong = await _chosen(store, name)
    if wrong:
        return 2, {}, wrong
    first, last = (chosen.first, chosen.last) if chosen else (1, await store.head_seq())
    title = f"Session {chosen.name}" if chosen else f"Agent {name}"
    return await write_report(store, title, first, last, None if chosen else name, target)


async def _show(store: JournalStore, workspace: Path, name: str) -> Answer:
    chosen, wrong = await _chosen(store, name)
    if wrong:
        return 2, {}, wrong
    first, last = (chosen.first, chosen.last) if chosen else (1, await store.head_seq())
    stream = None if chosen else name
    lines: list[str] = []
    count = 0
    async for event in store.events(first - 1, stream=stream):
        if event.seq > last:
            break
        count += 1
        line = line_of(event)
        if line is not None:
            lines.append(f"{event.ref:<16} {line.plain()}")
    answer = {"session": chosen.name if chosen else None, "agent": stream, "events": count, "lines": lines}
    return 0, answer, "\n".join(lines)


async def _show_at(store: JournalStore, name: str, at: str) -> Answer:
    """The state of an agent after an event, which may name the agent itself."""
    from app.comparing import PastError
    from app.past import state_at

    agents = [stream for stream in await store.streams() if of_agent(stream)]
    named = name or at.rpartition(":")[0] or (agents[0] if len(agents) == 1 else "")
    if named not in agents:
        such = f"{(agents or ['pilot-1'])[0]}:120"
        return 2, {}, f"say whose state is meant, such as {such}; agents: {', '.join(agents) or 'none yet'}"
    try:
        return 0, *await state_at(Past(store, named), at)
    except PastError as error:
        return 2, {}, str(error)


async def _verify(store: JournalStore, workspace: Path, name: str) -> Answer:
    found = await verify(store, BlobStore(workspace / DATA_DIRECTORY / "blobs"))
    answer = {"ok": found.ok, "events": found.events, "head": found.head, "first_bad": found.first_bad}
    if found.ok:
        return 0, answer, f"sound: {found.events} events, head {found.head}"
    answer["reason"] = found.reason
    return 1, answer, f"NOT sound at {found.first_bad}: {found.reason}"


async def _replay(store: JournalStore, workspace: Path, name: str) -> Answer:
    streams = await store.streams()
    agents = [stream for stream in streams if of_agent(stream)]
    sessions = {s.name for s in await _sessions(store)}
    if name in agents:
        agents = [name]
    elif name and not any(session.startswith(name) for session in sessions):
        return 2, {}, f"there is no session or agent '{name}'; agents: {', '.join(agents)}"
    blobs = BlobStore(workspace / DATA_DIRECTORY / "blobs")
    beside = [] if name in agents else [one for one in streams if one != WORKSPACE and not of_agent(one)]
    replays = [await _replay_one(store, blobs, agent) for agent in agents]
    matches = all(replay.matches for replay in replays)
    heads = {**streams, **{r.stream: Head(streams[r.stream].version, r.head) for r in replays}}
    answer = {
        "ok": matches,
        "events": sum(replay.events for replay in replays),
        "head": workspace_head(heads),
        "matches": matches,
        "model_calls": sum(replay.model_calls for replay in replays),
        "differences": [f"{r.stream}: {r.difference}" for r in replays if not r.matches],
        "skipped": beside,
    }
    lines = [
        f"{r.stream}: {r.events} events, {'same head' if r.matches else 'DIFFERS: ' + r.difference}"
        for r in replays
    ] or ["no agent has acted yet"]
    lines += [
        f"{stream}: {streams[stream].version} events, not replayed: no agent's, and verified with the rest"
        for stream in beside
    ]
    return (0 if matches else 1), answer, "\n".join(lines)


async def _replay_one(store: JournalStore, blobs: BlobStore, agent: str) -> Replay:
    async def blob(digest: str) -> bytes | None:
        try:
            return await blobs.get(digest)
        except BlobError:
            return None

    return await replay_stream(await store.read(agent), blob)
