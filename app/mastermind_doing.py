"""What the words of the bar for Mastermind do, with and without a screen: jobs, answers, previews."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TextIO

from app import mastermind_lines as lines
from app.grammar import is_of_crew, read_line, verb_of, wishes
from app.mind_verbs import reads_program
from app.preview import Preview, of_lines, of_server, preview_of, refused, understood_as
from app.verb import Context, GrammarError, Intent, Local, Verb, split_word
from engine.domain.crew_commands import Bringing
from engine.domain.mastermind import JobRecord, JobStatus, MastermindState
from engine.domain.mastermind_commands import (
    ApplyCandidate,
    CancelJob,
    ForMastermind,
    StartJob,
)
from engine.domain.server_commands import DistrustServer, TrustServer
from engine.domain.text import clean, clean_line
from engine.engine import Engine

if TYPE_CHECKING:
    from engine.mastermind.desk import Desk
    from engine.mastermind.specifying import Specification

Answer = tuple[int, dict[str, Any], str]
"""Exit code, JSON answer, text."""
Told = Callable[[JobRecord], None]
"""Told whenever a job is elsewhere than before."""

EXIT_OF = {JobStatus.DONE: 0, JobStatus.NEEDS_OPERATOR: 3}
"""Exit codes of what came of a job; 1 for all others."""
STARTS = (StartJob, ApplyCandidate)
"""Commands whose receipt comes before what they began is over."""
YES = "--yes"
DESK = frozenset(
    {
        *("agent_create", "agent_delete", "agent_sign", "agent_verify", "show_agent_registry"),
        *("show_tool_registry", "id_list", "id_create", "id_deprecate"),
    }
)
"""What the desk for agents and identities does."""
READS = frozenset({"mastermind_status", "mastermind_jobs", "coord_backlog", "campaign"})


# ------------------------------------------------------------------ jobs


async def carried_out(
    engine: Engine, command: ForMastermind, *, operator: str, told: Told | None = None
) -> Answer:
    """Carry out a command; what goes on as a job is waited for, and cancelled with whoever waits."""
    receipt = await engine.submit(command, operator=operator)
    answer: dict[str, Any] = {"ok": receipt.ok, "message": receipt.message, "event": receipt.event}
    job = str(receipt.data.get("job", ""))
    if not receipt.ok or not isinstance(command, STARTS) or not job:
        return (0 if receipt.ok else 1), {**receipt.data, **answer}, receipt.message
    try:
        ended = await followed(engine, job, told)
    except asyncio.CancelledError:
        await asyncio.shield(engine.submit(CancelJob(job=job), operator=operator))
        raise
    return job_answer(ended)


async def followed(engine: Engine, job: str, told: Told | None = None) -> JobRecord:
    """Wait until a job is over, telling how far it is.

    Raises:
        KeyError: there is no such job.
    """
    mastermind = await engine.mastermind()
    waiting = asyncio.create_task(mastermind.wait(job))
    try:
        while not waiting.done():
            if told is not None:
                told(mastermind.state.jobs[job])
            news = asyncio.create_task(mastermind.spine.changed())
            await asyncio.wait({waiting, news}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
        return waiting.result()
    finally:
        waiting.cancel()


def job_answer(job: JobRecord) -> Answer:
    """What came of a job."""
    code = EXIT_OF.get(job.status, 1)
    answer = {
        **job.answer,
        "ok": code == 0,
        "job": job.id,
        "verb": job.verb,
        "status": job.status.value,
        "message": job.message,
        "event": job.event,
        **({"error": job.error} if job.error else {}),
    }
    text = f"{lines.JOB_MARKS[job.status]} {job.id} {job.status}: {clean(job.message, limit=20_000)}"
    if digest := job.answer.get("approve"):
        text += (
            f"\nto do these steps: {job.verb} --approve {clean_line(str(digest))} {clean_line(job.argument)}"
        )
    if filled := job.answer.get("argument"):
        text += f"\nto create it: {job.verb} {clean_line(str(filled))}"
    if job.answer.get("choices"):
        text += f"\nto choose one: {job.verb} --component ID {clean_line(job.argument)}"
    return code, answer, text


def progress_on(stream: TextIO) -> Told | None:
    """Tells a job's progress on a terminal, each time over what stood there; None where it is no terminal."""
    if not stream.isatty():
        return None
    shown = ""

    def told(job: JobRecord) -> None:
        nonlocal shown
        text = (
            ""
            if job.status.over
            else clean_line(f"{job.id} {job.status} {lines.share(job)} {job.text}", limit=100)
        )
        if text != shown:
            shown = text
            with suppress(OSError):
                stream.write(f"\r\x1b[2K{text}")
                stream.flush()

    return told


def cleared(stream: TextIO) -> None:
    """Take the line of progress away."""
    if stream.isatty():
        stream.write("\r\x1b[2K")
        stream.flush()


async def do_command(engine: Engine, command: ForMastermind, *, quiet: bool = False) -> Answer:
    """Carry a command out without a screen."""
    try:
        return await carried_out(
            engine, command, operator="cli", told=None if quiet else progress_on(sys.stderr)
        )
    finally:
        if not quiet:
            cleared(sys.stderr)


# ------------------------------------------------------------------ answers


async def answered(engine: Engine, intent: Local, *, operator: str) -> Answer:
    """Do what needs no job: show what Mastermind knows, agents, identities.

    Raises:
        JournalError: Mastermind's stream cannot be read.
    """
    if intent.action in READS:
        return shown(intent, (await engine.mastermind()).state)
    from engine.mastermind.addresses import IdentityError
    from engine.mastermind.agent_types import CreationError
    from engine.mastermind.creating import RemovalError

    try:
        return await _at_desk(await engine.desk(), intent, operator)
    except (CreationError, IdentityError, RemovalError, GrammarError) as error:
        return 1, {"ok": False, "message": clean_line(str(error))}, clean_line(str(error))


def shown(intent: Local, state: MastermindState) -> Answer:
    """What Mastermind knows, as JSON and text."""
    match intent.action:
        case "coord_backlog":
            items = [asdict(one) for one in lines.listed(state)]
            return 0, {"items": items}, lines.backlog_text(state)
        case "mastermind_jobs":
            return 0, {"jobs": [asdict(one) for one in state.jobs.values()]}, lines.jobs_text(state)
        case "campaign" if intent.argument:
            campaign = state.campaigns.get(intent.argument)
            if campaign is None:
                known = ", ".join(list(state.campaigns)[-8:]) or "none yet"
                said = f"there is no campaign {intent.argument}; campaigns: {known}"
                return 1, {"ok": False, "message": said}, said
            return 0, {"campaign": asdict(campaign)}, lines.campaign_text(campaign)
        case "campaign":
            found = [asdict(one) for one in state.campaigns.values()]
            return 0, {"campaigns": found}, lines.campaigns_text(state)
    answer = {
        "jobs": [asdict(one) for one in state.jobs.values() if not one.status.over],
        "backlog": len(state.items),
        "campaigns": {one.id: one.status.value for one in state.campaigns.values()},
        "autonomous": state.autonomous,
        "log": [asdict(one) for one in state.log],
    }
    return 0, answer, lines.status_text(state)


async def _at_desk(desk: Desk, intent: Local, operator: str) -> Answer:
    said = intent.argument
    match intent.action:
        case "agent_create":
            return await _created(desk, said, operator)
        case "agent_delete":
            gone = await desk.remove(said, operator=operator)
            return (1 if gone.alive else 0), {"ok": not gone.alive, **asdict(gone)}, gone.message
        case "agent_sign":
            ident, _, message = split_word(said)
            signed = await desk.sign(ident, message.strip(), operator=operator)
            return 0, {"ok": True, **asdict(signed)}, signed.message
        case "agent_verify":
            address, _, rest = split_word(said)
            signature, _, message = split_word(rest.strip())
            verified = await desk.verify(address, signature, message.strip())
            return (0 if verified.ok else 1), asdict(verified), verified.message
        case "show_agent_registry":
            agents = await desk.agents()
            text = "\n".join(one.line for one in agents)
            return 0, {"agents": [one.as_json() for one in agents]}, text or "no agents yet"
        case "show_tool_registry":
            tools = desk.tools()
            return 0, {"tools": [one.as_json() for one in tools]}, "\n".join(one.line for one in tools)
        case "id_list":
            rows = await desk.id_list()
            text = "\n".join(
                f"{one.entity:<20} {one.address} {one.status}{f' · {one.trouble}' if one.trouble else ''}"
                for one in rows
            )
            answer = {"identities": [one.as_json() for one in rows]}
            return 0, answer, text or "no identities yet; id_create ENTITY makes one"
        case "id_create":
            made = await desk.id_create(said, operator=operator)
            return 0, {"ok": True, "new": made.new, **asdict(made.identity)}, made.message
    return await _given_up(desk, said, operator)


async def _created(desk: Desk, argument: str, operator: str) -> Answer:
    said = desk.understand(argument, reads_program)
    if questions := _questions(said):
        text = "\n".join([*questions, "nothing was created; say it so that it is certain"])
        return 3, {"ok": False, "questions": questions, "understood": list(said.lines)}, text
    made = await desk.create(said, operator=operator)
    return 0, {"ok": True, **asdict(made), "understood": list(said.lines)}, made.message


def _questions(said: Specification) -> list[str]:
    return [one.line for one in said.understood.questions] if said.understood is not None else []


async def _given_up(desk: Desk, argument: str, operator: str) -> Answer:
    """Give an identity up, once the operator has said that it is meant."""
    wanted, reason, sure = deprecated(argument)
    if not sure:
        told = desk.identities.deprecation(wanted)
        said = f"{told}; id_deprecate {wanted} {YES} does it"
        return 3, {"ok": False, "message": said}, said
    told = await desk.id_deprecate(wanted, reason, operator=operator)
    return 0, {"ok": True, "message": told}, told


def deprecated(argument: str) -> tuple[str, str, bool]:
    """What `id_deprecate` is about: the identity, the reason, and whether it is sure."""
    words = argument.split()
    return words[0], " ".join(one for one in words[1:] if one != YES), YES in words[1:]


# ------------------------------------------------------------------ previews


async def foretold(engine: Engine, line: str, context: Context, *, component: str = "") -> Preview:
    """What a line would do; nothing is changed.

    Args:
        engine: open on the workspace.
        line: without the `?` behind it.
        context: against which it is understood.
        component: the one that the operator chose, where several may be meant.
    """
    if wishes(line):
        meant = f"evolve {line.strip()}"
        return understood_as(await foretold(engine, meant, context, component=component), meant)
    if is_of_crew(line) and context.crew is None:
        context = replace(context, crew=(await engine.crew()).state)
    try:
        verb, _ = verb_of(line)
        intent = read_line(line, context)
    except GrammarError as error:
        return refused(line, str(error))
    if isinstance(intent, StartJob) and component:
        intent = intent.model_copy(update={"component": component})
    if isinstance(intent, Local) and intent.action in DESK:
        return await _of_desk(await engine.desk(), line, verb, intent)
    said: Mapping[str, Any] = {}
    if isinstance(intent, ForMastermind):
        said = await (await engine.mastermind()).preview(intent)
    if isinstance(intent, TrustServer | DistrustServer) and intent.server in context.servers:
        return of_server(line, verb, intent, context.servers[intent.server].facts)
    if isinstance(intent, Bringing) and intent.sources:
        from app.crew_doing import sources_told

        wrong, told = await sources_told(engine, intent)
        if wrong:
            return refused(line, wrong)
        said = {"sources": told}
    return preview_of(
        line, verb, intent, agent=context.agent, model=engine.model_name, said=said, crew=context.crew
    )


async def _of_desk(desk: Desk, line: str, verb: Verb, intent: Local) -> Preview:
    from engine.mastermind.addresses import IdentityError
    from engine.mastermind.agent_types import CreationError
    from engine.mastermind.creating import RemovalError

    try:
        match intent.action:
            case "agent_create":
                said = desk.understand(intent.argument, reads_program)
                questions = _questions(said)
                asks = "; ".join(questions) or "nothing"
                return of_lines(line, verb, said.lines, asks=asks, back="agent_delete removes it")
            case "agent_delete":
                told = await desk.removal(intent.argument)
                return of_lines(line, verb, told, back="no: its history stays, its id is used up")
            case "id_deprecate":
                told_of = desk.identities.deprecation(deprecated(intent.argument)[0])
                return of_lines(line, verb, (told_of,), asks="whether you are sure", back="no")
    except (CreationError, IdentityError, RemovalError, GrammarError) as error:
        return refused(line, str(error))
    return preview_of(line, verb, intent)


async def previewed(engine: Engine, line: str, context: Context) -> Answer:
    """A preview as an answer; exit code 0, 2 where the line is not understood or would be refused."""
    found = await foretold(engine, line, context)
    code = 2 if found.wrong else 3 if found.choices else 0
    return code, found.as_json(), found.text() if not found.wrong else found.wrong


def is_ours(intent: Intent) -> bool:
    """Whether an intent is carried out here."""
    if isinstance(intent, Local):
        return intent.action in DESK or intent.action in READS
    return isinstance(intent, ForMastermind)
