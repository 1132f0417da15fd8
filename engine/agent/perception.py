"""What surrounds an agent, and what it sees: its workspace, and what the operator's shell changed there.

Changes are offered as beliefs: a pure function of the answer of the shell's action, the difference of two
snapshots, and the session in which the agent is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from engine.agent.actions.pipeline import Toolbox
from engine.agent.actions.snapshots import Saver
from engine.agent.model_calls import BudgetClient, ModelStreamRecorder
from engine.agent.steering.ledger import Ledger
from engine.agent.steering.reviews import Reviewer
from engine.agent.turn_scheduler import TurnScheduler
from engine.core import events as ev
from engine.core.actions import ErrorCode, SandboxSession, Survey
from engine.core.journal import Payload
from engine.core.ports import CallContext, Clock, Randomness
from engine.core.reasoner import SentMessage
from engine.core.recovery import ActiveAction
from engine.core.sandbox import OfferedBelief, ReturnedShell
from engine.core.text import clean_line
from engine.core.thinking import Thinker
from engine.memory.memory import Memory
from engine.memory.metacognition.job import WorkflowOf
from engine.memory.metacognition.runner import BackgroundRunner
from engine.models.choice import REPAIRS
from engine.models.prompt_parts import Parts, built_in
from engine.sandbox.completion import run_to_completion
from engine.sandbox.files import SandboxFiles, bytes_lost
from engine.sandbox.paths import PathError
from engine.sandbox.snapshots.entry import Changes
from engine.tools.parameters.paths import LookupRequest, survey
from engine.tools.parameters.processing import ParameterExtractor
from engine.tools.registry import ToolRegistry
from engine.tools.shared_coder import SharedCoder
from engine.value import dataclass, replace

if TYPE_CHECKING:
    from engine.planning.pgp.requests import Answerer
    from engine.sandbox.jobs import Sessions

T = TypeVar("T")
LISTED = 50
"""Paths, names or lines of one offer; how many more there are is said."""
TEXT_LIMIT = 200


def offer_changes(
    shell: ReturnedShell, changes: Changes | str, session: SandboxSession
) -> ev.ChangesOffered | None:
    """What is put to the operator, or None when nothing changed and nothing was said.

    Args:
        shell: the operator's shell that has ended.
        changes: what happened to files meanwhile, or why that is not known.
        session: where the agent would continue if nothing is settled.
    """
    answer = shell.answer
    offers = [*_files(changes), *_of_the_shell(answer)]
    ended = _ended(answer, session)
    if not offers and ended == session:
        return None
    return ev.ChangesOffered(
        action=shell.action, offers=(*offers, *_commands(answer)), session=ended if ended != session else None
    )


def _files(changes: Changes | str) -> Iterator[OfferedBelief]:
    if isinstance(changes, str):
        yield _offer("files.unknown", changes, f"which files changed is not known: {changes}")
        return
    kinds = {
        "added": changes.added,
        "changed": sorted({*changes.changed, *changes.mode_changed}),
        "removed": changes.removed,
    }
    for kind, paths in kinds.items():
        if paths:
            yield _listed(f"files.{kind}", paths, f"{_count(paths, 'file')} {kind}")
    if changes.more:
        yield _offer("files.more", changes.more, f"{changes.more:,} more files that are not listed")


def _of_the_shell(answer: dict[str, Any]) -> Iterator[OfferedBelief]:
    variables = answer.get("variables")
    given = variables if isinstance(variables, dict) else {}
    named = {kind: _texts(given.get(kind)) for kind in ("added", "changed", "removed")}
    words = [f"{kind}: {', '.join(names)}" for kind, names in named.items() if names]
    if words:
        value = {kind: names[:LISTED] for kind, names in named.items() if names}
        yield _offer(
            "operator.variables", value, f"variables of the shell, which are gone with it, {'; '.join(words)}"
        )
    if processes := _texts(answer.get("processes")):
        yield _listed("operator.processes", processes, "ended with the shell")
    if note := str(answer.get("note") or ""):
        yield _offer("operator.note", note, f"your note: {note}")


def _commands(answer: dict[str, Any]) -> Iterator[OfferedBelief]:
    """What was typed matters only beside something that it changed."""
    commands = _texts(answer.get("commands"))
    if commands:
        newest = commands[-LISTED:]
        yield _offer("operator.commands", newest, f"{_count(commands, 'command')}: {'; '.join(newest)}")


def _ended(answer: dict[str, Any], session: SandboxSession) -> SandboxSession:
    """Where the shell stood at its end; where the agent stands when that is not known."""
    cwd, venv = answer.get("cwd"), answer.get("venv")
    if not isinstance(cwd, str) or not isinstance(venv, str | None):
        return session
    return replace(session, cwd=cwd, venv=venv)


def _texts(value: object) -> list[str]:
    return [str(entry) for entry in value] if isinstance(value, list) else []


def _listed(key: str, entries: Iterable[str], what: str) -> OfferedBelief:
    names = list(entries)
    more = len(names) - LISTED
    value = [*names[:LISTED], f"and {more:,} more"] if more > 0 else names
    return _offer(key, value, f"{what}: {', '.join(value)}")


def _offer(key: str, value: Any, text: str) -> OfferedBelief:
    return OfferedBelief(key, value, clean_line(text, limit=TEXT_LIMIT))


def _count(things: Any, what: str) -> str:
    return f"{len(things):,} {what}{'' if len(things) == 1 else 's'}"


class Perceiver(Protocol):
    """Looks at an agent's surroundings."""

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """Facts about the workspace, and the session corrected where the workspace changed under it."""

    async def bytes_overwritten(self, agent: str, action: ActiveAction, cwd: str, own: str) -> int:
        """Bytes that the action's `content` would take the place of (`engine.sandbox.files`)."""

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: LookupRequest) -> Survey:
        """What the paths of an action's arguments lead to, and what is there under a like name."""


async def learn_nothing() -> None:
    """Where no endpoint is to be asked."""


@dataclass(frozen=True, slots=True)
class AgentEnvironment:
    """Everything that reaches an agent from outside."""

    thinker: Thinker
    toolbox: Toolbox
    saver: Saver
    perceiver: Perceiver
    registry: ToolRegistry
    clock: Clock
    put_blob: Callable[[bytes], Awaitable[str]]
    randomness: Callable[[int], Randomness]
    control: Sessions
    model_stream: ModelStreamRecorder | None = None
    """Records what the agent's model says; None where there is none, as in a replay."""
    model: BudgetClient | None = None
    """Asks the agent's model, within its budget; None where there is none, as in a replay."""
    model_name: str = ""
    """The model's name, as its endpoint knows it; empty where none is to be asked."""
    summariser: str = ""
    """The model that reflects; empty for the same."""
    learn: Callable[[], Awaitable[None]] = learn_nothing
    """Asks the model's endpoint what no table says of it, before the first prompt is made."""
    parts: Callable[[], Awaitable[Parts]] = built_in
    """Reads the workspace's parts of prompts; what a prompt was made of is recorded with the call."""
    repairs: int = REPAIRS
    """How often the model may put right an answer that cannot be used."""
    answerer: Answerer | None = None
    """Who makes plans for a reasoner; None where nobody does."""
    post: Callable[[str, SentMessage], None] = lambda _sender, _message: None
    """Delivers what a reasoner sends."""
    memory: Memory | None = None
    """What the workspace's agents remember; None where there is none, as in a replay."""
    workflow_of: WorkflowOf | None = None
    """Finds the workflow that a goal has in memory."""
    ledger: Ledger | None = None
    """Counts what all agents take against their budgets; None in a replay, which is fed what it decided."""
    background: BackgroundRunner | None = None
    """Who runs background work; None in a replay, which is fed the results."""
    pace: TurnScheduler | None = None
    """Whose turn it is among many agents; None where there is one, as in a replay."""
    watches: bool = False
    """Whether the program looks if the agent is stuck; not in a replay, which is fed what was seen."""
    looks: bool = True
    """Whether it is looked at what of an action needs the operator; not in a replay, which is fed that."""
    asker: Callable[[], ParameterExtractor | None] | None = None
    """Finds missing parameters in place of the agent's model, as a replay does."""
    seal: Callable[[str, Payload], Payload] = lambda _stream, payload: payload
    """Puts the user's seal on what they grant in a stream; a replay knows it."""
    reviewer: Reviewer | None = None
    """Looks at what the operator would be asked; None where none is set, and in a replay."""
    answer_counted: Callable[[str], bool] = lambda _action: False
    """Whether an action's answer counted although it was cut off at that moment; a replay knows."""


ENTRIES = 50
"""Names of the working directory that become a belief."""


class WorkspacePerceiver:
    """Looks at the sandbox through the same tool that the agent acts with."""

    def __init__(self, registry: ToolRegistry, coders: SharedCoder, agent: str = "") -> None:
        self._registry = registry
        self._agent = agent
        self._coders = coders

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """What lies in the working directory; the session leaves a directory or venv that is gone."""
        session = await self._existing(session)
        tool = self._registry.get("simple_coder")
        answer = await tool.call("ls", {"path": "."}, CallContext(session, agent=self._agent))
        items = [str(item) for item in answer.data.get("items", [])]
        return {
            "session.cwd": session.cwd,
            "session.venv": session.venv,
            "workspace.entries": items[:ENTRIES],
        }, session

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: LookupRequest) -> Survey:
        """What the paths lead to under the agent's own policy; nothing is known of a root that is gone."""
        return await self._look(agent, lambda files: survey(files, cwd, enquiry), Survey())

    async def bytes_overwritten(self, agent: str, action: ActiveAction, cwd: str, own: str) -> int:
        """Bytes that the action's `content` would take the place of; 0 where it cannot be written."""
        path, content = action.args.get("path"), action.args.get("content")

        def lost(files: SandboxFiles) -> int:
            return bytes_lost(files, files.relative(str(path), cwd), str(content).encode(), own)

        return await self._look(agent, lost, 0)

    async def _look(self, agent: str, work: Callable[[SandboxFiles], T], default: T) -> T:
        """What some work finds in an agent's files; the default where that cannot be looked at."""

        def look() -> T:
            files = self._coders.of(agent).files
            try:
                files.check_root()
                return work(files)
            except (PathError, UnicodeEncodeError):
                return default

        return await run_to_completion(asyncio.to_thread(look))

    async def _existing(self, session: SandboxSession) -> SandboxSession:
        if not await self._is_there(session.cwd):
            session = replace(session, cwd=".")
        if session.venv is not None and not await self._is_there(session.venv):
            session = replace(session, venv=None)
        return session

    async def _is_there(self, path: str) -> bool:
        tool = self._registry.get("simple_coder")
        answer = await tool.call("ls", {"path": path}, CallContext(SandboxSession(), agent=self._agent))
        return answer.code not in (ErrorCode.NOT_FOUND, ErrorCode.WRONG_TYPE)
