"""`pilothouse sessions`: the journal as sessions, verified, replayed, repaired, redacted and archived."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.cli.options import Answer, run_answer, workspace_of
from app.cli.session_report import write_report
from app.commands.headless import EXIT_CODES, Status
from app.commands.settings import Settings
from app.projection.event_lines import line_of
from engine.api.closed_workspace import recorded
from engine.api.replay import Replay, replay_stream
from engine.core import events as ev
from engine.core.fold import fold
from engine.core.goals import GoalStatus
from engine.core.journal import WORKSPACE, BlobError, of_agent
from engine.core.ports import Ports
from engine.core.store.blobs import ARCHIVES, BlobStore
from engine.core.store.opening import blobs_of, journal_file, open_journal
from engine.core.store.port import DATA_DIRECTORY, Head
from engine.core.store.repair import look, repair
from engine.core.store.stored import StoredJournal
from engine.core.store.verify import read_seals, verify, workspace_head
from engine.core.streams import StreamLog
from engine.value import dataclass, replace

SUFFIX = ".pilot"
"""The end of the name of a portable session."""
ARCHIVE_DAYS = 30
"""Days after which contents are archived where nothing else is said."""


@dataclass(frozen=True, slots=True)
class _Session:
    name: str
    opened: str
    closed: str
    """Empty when the session did not close in good order."""
    first: int
    last: int


async def run_again(workspace: Path, agent: str) -> tuple[int, dict[str, Any]]:
    """An agent's whole recorded run once more, as `run` tells of one: no model, no network, nothing acts.

    Raises:
        KeyError: there is no such agent, and more than one; the message lists them.
        JournalError: the journal cannot be read.
    """
    clock = Ports().clock
    began = clock.monotonic()
    async with recorded(workspace, clock) as store:
        agents = [stream for stream in await store.streams() if of_agent(stream)]
        if agent not in agents and len(agents) != 1:
            raise KeyError(f"say with --agent which run is meant; there are: {', '.join(agents) or 'none'}")
        name = agent if agent in agents else agents[0]
        replay = await _replay_one(store, blobs_of(workspace, Ports().clock), name)
        state, head = fold(await store.read(name)), workspace_head(await store.streams())
    goal = max(state.goals.values(), key=lambda goal: goal.order, default=None)
    achieved = goal is not None and goal.status is GoalStatus.ACHIEVED
    status = Status.GOAL_ACHIEVED if replay.matches and achieved else Status.FAILED
    if replay.matches and state.intervention is not None:
        status = Status.NEEDS_OPERATOR
    answer = {
        "status": status.value,
        "goal": goal.text if goal else "",
        "session": state.session,
        "agent": name,
        "loops": state.tick,
        "actions": state.actions,
        "failed_actions": state.failed_actions,
        "thinker": "recorded",
        "tokens": 0,
        "cost_usd": 0.0,
        "model_calls": replay.model_calls,
        "duration_s": round(clock.monotonic() - began, 3),
        "message": f"{replay.events} events came out the same" if replay.matches else replay.difference,
        "matches": replay.matches,
        "journal_head": head,
    }
    return EXIT_CODES[status], answer


async def query_sessions(workspace: Path, what: str, name: str, target: Path | None = None) -> Answer:
    """Answer one of the `sessions` sub-commands; reading only, also while an engine runs.

    Args:
        workspace: whose sessions.
        what: the sub-command.
        name: a session or an agent.
        target: the file that a report is written to.

    Raises:
        JournalError: there is no journal, or it cannot be read.
    """
    answers = {"list": _list, "show": _show, "verify": _verify, "replay": _replay}
    async with recorded(workspace) as store:
        try:
            if target is not None:
                return await write_report(store, *await _chosen(store, name), target)
            return await answers[what](store, workspace, name)
        except KeyError as error:
            return 2, {}, str(error.args[0])


async def _sessions(store: StoredJournal) -> list[_Session]:
    sessions: list[_Session] = []
    head = await store.head_seq()
    for event in await store.read(WORKSPACE):
        payload = ev.payload_of(event)
        if isinstance(payload, ev.SessionOpened):
            if sessions:
                sessions[-1] = replace(sessions[-1], last=event.seq - 1)
            # The making of the workspace belongs to the session that made it.
            sessions.append(_Session(payload.session, event.at, "", event.seq if sessions else 1, head))
        elif isinstance(payload, ev.SessionClosed) and sessions:
            sessions[-1] = replace(sessions[-1], closed=event.at, last=head)
    return sessions


async def _list(store: StoredJournal, workspace: Path, name: str) -> Answer:
    sessions = await _sessions(store)
    rows = [
        {"session": s.name, "opened": s.opened, "closed": s.closed or None, "events": s.last - s.first + 1}
        for s in sessions
    ]
    lines = [
        f"{s['session']}  {str(s['opened'])[:19]}  {'closed' if s['closed'] else 'open or cut off':<16} "
        f"{s['events']} events"
        for s in rows
    ]
    return 0, {"sessions": rows}, "\n".join(lines)


async def _chosen(store: StoredJournal, name: str) -> tuple[str, int, int, str | None]:
    """Of a session, by default the newest, or of an agent: a title, first and last event, and the stream.

    Raises:
        KeyError: there is neither; the message lists those there are.
    """
    sessions = await _sessions(store)
    streams = await store.streams()
    chosen = next((s for s in sessions if name and s.name.startswith(name)), None)
    if name and chosen is None and name not in streams:
        known = ", ".join([s.name for s in sessions] + [s for s in streams if of_agent(s)])
        raise KeyError(f"there is no session or agent '{name}'; there are: {known}")
    if (chosen := chosen or (sessions[-1] if sessions and not name else None)) is None:
        return f"Agent {name}", 1, await store.head_seq(), name
    return f"Session {chosen.name}", chosen.first, chosen.last, None


async def _show(store: StoredJournal, workspace: Path, name: str) -> Answer:
    title, first, last, stream = await _chosen(store, name)
    lines: list[str] = []
    count = 0
    async for event in store.events(first - 1, stream=stream):
        if event.seq > last:
            break
        count += 1
        line = line_of(event)
        if line is not None:
            lines.append(f"{event.ref:<16} {line.plain()}")
    session = title.partition(" ")[2] if stream is None else None
    return 0, {"session": session, "agent": stream, "events": count, "lines": lines}, "\n".join(lines)


async def _verify(store: StoredJournal, workspace: Path, name: str) -> Answer:
    check = await verify(store, blobs_of(workspace, Ports().clock))
    answer = {"ok": check.ok, "events": check.events, "head": check.head, "first_bad": check.first_bad}
    if check.ok:
        archived = {file: count for file, _, count in check.archived}
        more = {"accepted": check.accepted, "redacted": check.redacted, "archived": archived}
        words = f"sound: {check.events} events, head {check.head}"
        words += f"; behind {check.accepted}" if check.accepted else ""
        words += f"; {check.redacted} events are redacted" if check.redacted else ""
        for archive in check.archived:
            words += f"; {await asyncio.to_thread(_archive_words, workspace, *archive)}"
        return 0, {**answer, **{name: value for name, value in more.items() if value}}, words
    return 1, {**answer, "reason": check.reason}, f"NOT sound at {check.first_bad}: {check.reason}"


async def _replay(store: StoredJournal, workspace: Path, name: str) -> Answer:
    streams = await store.streams()
    agents = [stream for stream in streams if of_agent(stream)]
    sessions = {session.name for session in await _sessions(store)}
    if name in agents:
        agents = [name]
    elif name and not any(session.startswith(name) for session in sessions):
        return 2, {}, f"there is no session or agent '{name}'; agents: {', '.join(agents)}"
    blobs = blobs_of(workspace, Ports().clock)
    skipped = [] if name in agents else [each for each in streams if each != WORKSPACE and not of_agent(each)]
    replays = [await _replay_one(store, blobs, agent) for agent in agents]
    return _replays_answer(streams, replays, skipped)


def _replays_answer(streams: Mapping[str, Head], replays: Sequence[Replay], skipped: Sequence[str]) -> Answer:
    matches = all(replay.matches for replay in replays)
    heads = {**streams, **{r.stream: Head(streams[r.stream].version, r.head) for r in replays}}
    answer = {
        "ok": matches,
        "events": sum(replay.events for replay in replays),
        "head": workspace_head(heads),
        "matches": matches,
        "model_calls": sum(replay.model_calls for replay in replays),
        "differences": [f"{r.stream}: {r.difference}" for r in replays if not r.matches],
        "skipped": list(skipped),
    }
    lines = [f"{r.stream}: {r.events} events, {r.words}" for r in replays] or ["no agent has acted yet"]
    lines += [
        f"{stream}: {streams[stream].version} events, not replayed: no agent's, and verified with the rest"
        for stream in skipped
    ]
    return int(not matches), answer, "\n".join(lines)


async def _replay_one(store: StoredJournal, blobs: BlobStore, agent: str) -> Replay:
    async def blob(digest: str) -> bytes | None:
        try:
            return await blobs.get(digest)
        except BlobError:
            return None

    seals = await read_seals(store)
    replay = await replay_stream(await store.read(agent), blob, store.writers, seals.seals)
    files = {file for digest, file in seals.blobs.items() if digest in replay.difference}
    how = "".join(f" (archived in {file}: sessions archive --restore {file})" for file in files)
    return replace(replay, difference=f"{replay.difference}{how}")


# ------------------------------------------------------------------ repair

OFFERS = """\
look at it      pilothouse sessions verify, pilothouse sessions show (nothing is changed)
restore         pilothouse sessions repair --restore: a new journal with the {sound} sound events
accept          pilothouse sessions repair --accept-break: a new journal with all that can be read; the break
                is recorded as accepted by you
from a backup   pilothouse backup --restore FILE, into another directory
The old file is kept under another name."""


def _settings(workspace: Path) -> Settings:
    """The settings of a workspace whose data are to be changed; blocking.

    Raises:
        JournalError: its data directory is a link that is not trusted.
    """
    settings = Settings.load(workspace)
    if settings.trust is not None:
        settings.trust.refuse_link()
    return settings


async def repair_journal(workspace: Path, *, restore: bool, accept: bool) -> Answer:
    """Say what is wrong with a journal and what can be done, or do it.

    Raises:
        JournalError: there is none, an engine has it open, or the disk refused.
    """
    at, path = Ports().clock.now(), await asyncio.to_thread(journal_file, workspace)
    if not restore and not accept:
        check = await asyncio.to_thread(look, path)
        answer = {"ok": check.ok, "events": check.events, "first_bad": check.first_bad}
        if check.ok:
            return 0, answer, f"sound: {check.events} events; there is nothing to repair"
        offers = OFFERS.format(sound=check.events)
        text = f"NOT sound at {check.first_bad or 'its beginning'}: {check.reason}\n{offers}"
        return 1, {**answer, "reason": check.reason, "offers": ["look", "restore", "accept-break"]}, text
    operator = (await asyncio.to_thread(_settings, workspace)).operator
    check, done = await asyncio.to_thread(repair, workspace, accept=accept, operator=operator, at=at)
    answer = {"ok": True, "events": done.events, "left": done.left, "kept": done.kept, "event": done.event}
    how = f"the break at {check.first_bad or 'its beginning'} is accepted" if accept else "restored"
    kept = f"; the old file is {done.kept}" if done.kept else ""
    left = f"; {done.left} events are only there" if done.left else ""
    return 0, answer, f"{how} by {operator} ({done.event}): {done.events} events{kept}{left}"


async def redact_contents(workspace: Path, text: str, *, dry: bool) -> Answer:
    """Replace what a pattern matches by its digest, wherever the workspace keeps it.

    Raises:
        JournalError: there is no journal, an engine has it open, or the disk refused.
    """
    from engine.api.redaction import Pattern, RedactionError, redact  # late

    operator, at = (await asyncio.to_thread(_settings, workspace)).operator, Ports().clock.now()
    try:
        pattern = Pattern(text)
        done = await asyncio.to_thread(redact, workspace, pattern, operator=operator, at=at, dry=dry)
    except RedactionError as error:
        return 2, {}, str(error)
    counts = {"events": done.events, "blobs": done.blobs, "objects": done.objects}
    answer = {"ok": True, **counts, "event": done.event, "still": list(done.still)}
    words = ", ".join(f"{count} {name}" for name, count in counts.items())
    lines = [f"{'would be redacted' if dry else 'redacted'}: {words}{f' ({done.event})' * bool(done.event)}"]
    lines += [f"still in {name}: remove it there yourself" for name in done.still]
    return (0 if any(counts.values()) else 1), answer, "\n".join(lines)


async def export_portable(workspace: Path, options: argparse.Namespace) -> Answer:
    """Write a session to a file that opens elsewhere.

    Raises:
        JournalError: there is no journal, it is not sound, or the file cannot be written.
    """
    from engine.api.portable import export_session  # late

    target = Path(options.name)
    if target.suffix != SUFFIX:
        return 2, {}, f"{target.name}: give the file a name that ends in {SUFFIX}"
    operator = (await asyncio.to_thread(Settings.load, workspace)).operator
    chosen = {"agent": options.agent, "patterns": options.redact, "operator": operator}
    made = await asyncio.to_thread(export_session, workspace, target, **chosen, at=Ports().clock.now())
    answer = {"ok": True, "file": str(target), "bytes": made.size, "events": made.events}
    answer |= {"blobs": made.blobs, "head": made.head, "streams": list(made.streams)}
    words = f"{target}: {made.events} events, {made.blobs} blobs, head {made.head}"
    words += f"\nstreams: {', '.join(made.streams)}" * bool(options.agent)
    return 0, answer, f"{words}\nit holds what agents and you wrote: --redact PATTERN takes secrets out"


# ------------------------------------------------------------------ archives


async def archive_contents(
    workspace: Path, *, days: int | None, target: Path | None, dry: bool, source: Path | None = None
) -> Answer:
    """Archive old and bulky contents in one file, or bring those of a file back.

    Raises:
        JournalError: there is no journal, an engine has it open, or the disk refused.
    """
    from engine.api.archiving import Archiver, amounts, days_before, live_bytes  # late

    settings = await asyncio.to_thread(_settings, workspace)
    clock = Ports().clock
    store = await open_journal(workspace, clock=clock, create=False)
    try:
        log = StreamLog(WORKSPACE, *await store.head(WORKSPACE), clock, store.commit)
        archiver = Archiver(workspace, store, log, f"operator:{settings.operator}")
        if source is not None:
            events, blobs, left = await archiver.restore(source)
            words = f"restored from {source}: {amounts(events, blobs)}"
            words += f"; what was redacted since stays so: {left:,}" if left else ""
            return 0, {"ok": True, "events": events, "blobs": blobs, "left": left}, words
        now, days = clock.now(), days if days is not None else settings.keep_days or ARCHIVE_DAYS
        made = await archiver.archive(days_before(now, days), now, target=target, dry=dry)
        used = await asyncio.to_thread(live_bytes, store.path)
        if made.file is not None or (not dry and used * 2 < store.path.stat().st_size):
            await store.shrink()
    finally:
        await store.close()
    counts = {"events": len(made.bodies), "blobs": len(made.blobs), "bytes": made.saved}
    answer = {"ok": True, **counts, "file": str(made.file or "")}
    if not made.bodies and not made.blobs:
        return 0, answer, f"nothing to archive is older than {days} days"
    if made.file is None:
        return 0, answer, f"would be archived: {made.counts}"
    return 0, answer, f"{made.words}\nit is {made.file}: keep it, or bring all back with --restore"


def _archive_words(workspace: Path, file: str, digest: str, count: int) -> str:
    """How many events an archive has, and how it is; blocking."""
    from engine.api.archiving import file_digest

    place = workspace / DATA_DIRECTORY / ARCHIVES / Path(file).name
    if place.is_file():
        how = "sound" if file_digest(place) == digest else "NOT the file that was written"
    else:
        how = f"which is not in {DATA_DIRECTORY}/{ARCHIVES} (SHA-256 {digest})"
    return f"{count} event{'s' * (count != 1)} archived in {file}, {how}"


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """Answer from the journal, replay, report, export, repair, redact or archive."""
    if options.what == "repair":
        mending = repair_journal(workspace_of(options), restore=options.restore, accept=options.accept_break)
        return run_answer(options, mending)
    if options.what == "redact":
        return run_answer(
            options, redact_contents(workspace_of(options), options.pattern, dry=options.dry_run)
        )
    if options.what == "archive":
        chosen = {"days": options.older_than, "target": options.to, "source": options.restore}
        return run_answer(options, archive_contents(workspace_of(options), dry=options.dry_run, **chosen))
    if options.what == "export":
        return run_answer(options, export_portable(workspace_of(options), options))
    name, target = getattr(options, "name", ""), getattr(options, "target", None)
    return run_answer(options, query_sessions(workspace_of(options), options.what, name, target))
