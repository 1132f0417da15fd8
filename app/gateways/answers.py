"""What an engine's clients may ask: a table from each name to its arguments and to what answers it."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.commands.command_runner import run_line
from app.gateways.protocol import ProtocolError
from engine.agent.shared import offer_of
from engine.agent.steering.ledger import WORKSPACE
from engine.agent.steering.rewind_preview import RewindError
from engine.api.engine import Engine
from engine.core import commands as cmd
from engine.core.fold import dump_state
from engine.core.store.verify import workspace_head
from engine.core.text import first_problem
from engine.model import LateModel
from engine.value import asdict, fields_of

Name = Annotated[str, StringConstraints(max_length=64)]
Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{0,64}$")]
LINE_LIMIT = 100_000
"""Characters of a line of the command bar."""
BLOB_BYTES = 16 * 1024 * 1024
"""The largest blob that is handed out."""


class Arguments(BaseModel, metaclass=LateModel):
    """Arguments of a request; those that this version does not know are left out."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)


class Hello(Arguments):
    """A client's first line."""

    protocol: int = Field(ge=0, le=1_000_000)
    """The newest version of the protocol that it speaks."""
    oldest: int = Field(default=1, ge=0, le=1_000_000)
    version: str = Field(default="", max_length=64)
    operator: str = Field(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9_.-]+$")
    """In whose name it sends commands."""
    watch: bool = False
    """Whether it only looks."""
    holds: bool = False
    """Whether it works with the engine, so that a `run` or `do` whose own work is over stays for it."""


class SubmitArguments(Arguments):
    """A command, as `engine.core.commands.parse_command` takes it."""

    command: dict[str, Any]
    key: Key = ""
    """By which it is carried out once, however often it is sent."""


class EventsArguments(Arguments):
    """Events behind a place of the journal, and new ones as they come."""

    since: int = Field(default=0, ge=0, le=2**62)
    stream: Name = ""
    """Only this stream's; empty for all."""


class ViewArguments(Arguments):
    """An agent's state, now or after one of its versions."""

    agent: Name
    at: int | None = Field(default=None, ge=0, le=2**62)


class AgentArguments(Arguments):
    """An agent."""

    agent: Name


class BudgetsArguments(Arguments):
    """The budgets of an agent, or the workspace's."""

    agent: Name = ""
    goal: Name = ""


class EventArguments(Arguments):
    """An event by its reference."""

    ref: str = Field(max_length=128)


class BlobArguments(Arguments):
    """A large value by its digest."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class LineArguments(Arguments):
    """A line as typed in the command bar."""

    line: str = Field(max_length=LINE_LIMIT)
    agent: Name = ""
    dry: bool = False
    """Show only what it would do."""
    key: Key = ""
    """By which each command of the line is carried out once, however often the line is sent."""

    cwd: str = Field(default="", max_length=4096, pattern=r"^(/[^\x00]*)?$")
    """From where paths in it lead; empty for where the engine is."""


class RewindArguments(AgentArguments):
    """A rewind that is not done yet."""

    to: int = Field(ge=0, le=2**62)
    scope: Literal["both", "state", "files"] = "both"
    paths: list[str] = Field(default_factory=list, max_length=1_000)


class AdoptArguments(AgentArguments):
    """A fork whose files would be taken over."""

    fork: Name


class ChangesArguments(Arguments):
    """The files of two agents as they are now, or two snapshots."""

    first: str = Field(max_length=128)
    second: str = Field(max_length=128)
    of: Literal["agents", "snapshots"] = "agents"


class ToolsArguments(Arguments):
    """All tools, and the servers of `mcp.json`."""

    settled: bool = False
    """Whether servers that are just starting are waited for."""


class TerminalInput(Arguments):
    """What a client types into a terminal, in base64, or how large its screen is."""

    typed: str = ""
    reply: str = ""
    """What the emulator answers; it is not recorded."""
    rows: int = 0
    columns: int = 0


class CancelArguments(Arguments):
    """A request under way that is no longer wanted."""

    request: int


class McpArguments(Arguments):
    """The connection carries the Model Context Protocol from here on."""

    read_only: bool = False


class StopArguments(Arguments):
    """The end of a `serve`."""

    hand_over: bool = False
    """Let each agent come to the end of its action first, and say which were running."""


class Asker(NamedTuple):
    """Who asks."""

    operator: str
    watch: bool


Answerer = Callable[[Engine, Any, Asker], Awaitable[Any]]


class Question(NamedTuple):
    """What may be asked under one name."""

    arguments: type[Arguments]
    answer: Answerer | None = None
    """None where the connection itself answers."""
    changes: bool = False
    """Whether it may change something, which who only watches may not."""
    outlives: bool = False
    """Whether it goes on to its end when its client has gone."""


def validated(model: type[Arguments], given: Mapping[str, Any], what: str) -> Any:
    """The arguments of a request.

    Raises:
        ProtocolError: they are not as the model has them; the message says which and why.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise ProtocolError("arguments", f"{what}: {first_problem(error)}") from None


# ------------------------------------------------------------------ answers


async def _submit(engine: Engine, given: SubmitArguments, asker: Asker) -> dict[str, Any]:
    try:
        command = cmd.parse_command(given.command)
    except ValidationError as error:
        raise ProtocolError("command", f"this is no command: {first_problem(error)}") from None
    if given.key:
        command = command.model_copy(update={"submission": given.key})
    receipt = await engine.submit(command, operator=asker.operator)
    return receipt.model_dump()


async def _line(engine: Engine, given: LineArguments, asker: Asker) -> dict[str, Any]:
    if asker.watch and not given.dry:
        raise ProtocolError("watching", "this client only watches: a line is shown to it with dry alone")
    code, answer, text = await run_line(
        engine,
        given.line,
        agent=given.agent,
        dry=given.dry,
        quiet=True,
        operator=asker.operator,
        key=given.key,
        here=Path(given.cwd),
        lasts=True,
    )
    return {"code": code, "answer": answer, "text": text}


async def _view(engine: Engine, given: ViewArguments, _asker: Asker) -> dict[str, Any]:
    state = await _known(engine.view(given.agent, given.at), given.agent)
    await engine.durable(given.agent)
    return {"state": await asyncio.to_thread(dump_state, state)}


async def _known(work: Awaitable[Any], agent: str) -> Any:
    try:
        return await work
    except KeyError:
        raise ProtocolError("agent", f"there is no agent '{agent}' here") from None


async def _agents(engine: Engine, _given: Arguments, _asker: Asker) -> list[dict[str, Any]]:
    rows = []
    for agent in engine.agents:
        row: dict[str, Any] = {"agent": agent, "fault": engine.fault(agent)}
        if not row["fault"]:
            state = await engine.view(agent)
            goal = state.goal or next(iter(state.open_goals), None)
            waiting = await engine.waiting(agent)
            row |= {
                "mode": state.mode.value,
                "run": state.run.value,
                "goal": goal.text if goal is not None and not goal.status.terminal else "",
                "waits": {"kind": waiting.kind.value, "what": waiting.what, "since": waiting.since},
                "actions": state.actions,
                "tokens": state.tokens,
                "cost_usd": round(state.cost_usd, 6),
                "holder": state.control.holder,
                "refusal": engine.sandbox(agent).refusal,
            }
        rows.append(row)
    return rows


async def _waiting(engine: Engine, given: AgentArguments, _asker: Asker) -> dict[str, Any]:
    return asdict(await _known(engine.waiting(given.agent), given.agent))


async def _inbox(engine: Engine, _given: Arguments, _asker: Asker) -> list[dict[str, Any]]:
    return [asdict(need) for need in await engine.inbox()]


async def _budgets(engine: Engine, given: BudgetsArguments, _asker: Asker) -> list[dict[str, Any]]:
    statuses = engine.budgets(given.agent, given.goal)
    return [asdict(each) for each in statuses if given.agent or each.budget == WORKSPACE]


async def _health(engine: Engine, _given: Arguments, _asker: Asker) -> dict[str, Any]:
    return asdict(engine.health)


async def _head(engine: Engine, _given: Arguments, _asker: Asker) -> dict[str, Any]:
    return {"seq": await engine.head(), "hash": workspace_head(await engine.store.streams())}


async def _event(engine: Engine, given: EventArguments, _asker: Asker) -> dict[str, Any] | None:
    event = await engine.store.get(given.ref)
    return event._asdict() if event is not None else None


async def _blob(engine: Engine, given: BlobArguments, _asker: Asker) -> dict[str, Any]:
    content = await engine.blob(given.digest)
    if content is None or len(content) > BLOB_BYTES:
        why = "is missing or damaged" if content is None else f"has more than {BLOB_BYTES:,} bytes"
        raise ProtocolError("blob", f"the value {why}: read it from the workspace")
    return {"base64": binascii.b2a_base64(content, newline=False).decode()}


async def _faulted(engine: Engine, given: AgentArguments, _asker: Asker) -> str:
    return await engine.faulted(given.agent)


async def _rewind_preview(engine: Engine, given: RewindArguments, _asker: Asker) -> dict[str, Any]:
    agent, branches = given.agent, engine.time_travel
    shown = await _known(_possible(branches.preview(agent, given.to, given.scope, given.paths)), agent)
    plain = fields_of(shown, "asked", "to", "trouble", "others", "lasting")
    files = {
        name: value and asdict(value) for name, value in fields_of(shown, "files", "restoration").items()
    }
    return {**plain, **files, "events": shown.after.events, "outside": shown.after.outside}


async def _adopt_preview(engine: Engine, given: AdoptArguments, _asker: Asker) -> dict[str, Any]:
    work = _possible(engine.time_travel.adopt_preview(given.agent, given.fork))
    return asdict(await _known(work, given.agent))


async def _possible(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except RewindError as error:
        raise ProtocolError("rewind", str(error)) from None


async def _changes(engine: Engine, given: ChangesArguments, _asker: Asker) -> dict[str, Any]:
    branches = engine.time_travel
    compare = branches.files_between if given.of == "agents" else branches.changed_files
    changes = await compare(given.first, given.second)
    return {"trouble": changes} if isinstance(changes, str) else asdict(changes)


async def _tools(engine: Engine, given: ToolsArguments, _asker: Asker) -> dict[str, Any]:
    servers = engine.servers
    views = (await servers.settled() if given.settled else servers.views) if servers is not None else ()
    offers = [
        {**offer_of(tool).model_dump(mode="json"), "description": tool.description}
        for tool in engine.registry
    ]
    return {
        "offers": offers,
        "views": list(map(asdict, views)),
        "entries": list(map(asdict, servers.entries)) if servers is not None else [],
        "problems": list(servers.problems) if servers is not None else [],
    }


async def _ping(_engine: Engine, _given: Arguments, _asker: Asker) -> str:
    return "pong"


_changing = partial(Question, changes=True)
QUESTIONS: dict[str, Question] = {
    "submit": _changing(SubmitArguments, _submit, outlives=True),
    "line": Question(LineArguments, _line, outlives=True),
    "events": Question(EventsArguments),
    "cancel": Question(CancelArguments),
    "mcp": _changing(McpArguments),
    "terminal": Question(AgentArguments),
    "stop": _changing(StopArguments),
    "view": Question(ViewArguments, _view),
    "agents": Question(Arguments, _agents),
    "waiting": Question(AgentArguments, _waiting),
    "inbox": Question(Arguments, _inbox),
    "budgets": Question(BudgetsArguments, _budgets),
    "health": Question(Arguments, _health),
    "head": Question(Arguments, _head),
    "event": Question(EventArguments, _event),
    "blob": Question(BlobArguments, _blob),
    "faulted": Question(AgentArguments, _faulted),
    "rewind_preview": Question(RewindArguments, _rewind_preview),
    "adopt_preview": Question(AdoptArguments, _adopt_preview),
    "changes": Question(ChangesArguments, _changes),
    "tools": Question(ToolsArguments, _tools),
    "ping": Question(Arguments, _ping),
}
