"""What an attached cockpit has of an engine: going back and tools, as the engine says them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from engine.agent.branches import Branches
from engine.agent.shared import commands_of
from engine.agent.steering.rewind_preview import ChangesSince, FilesAt, RewindError, RewindPreview
from engine.agent.steering.undo import UndoOffer, last_change
from engine.api.workspace_engine import EngineAwayError
from engine.core.actions import ToolOffered, ToolResult
from engine.core.ports import CallContext, CommandSpec
from engine.core.rewind import RewindScope
from engine.core.state import AgentState
from engine.core.store.port import JournalStore
from engine.core.streams import StreamHistory
from engine.sandbox.snapshots.entry import Changes, Restoration

Ask = Callable[..., Awaitable[Any]]
View = Callable[[str], Awaitable[AgentState]]
T = TypeVar("T")


class RemoteBranches(Branches):
    """Going back, where only the engine's process may look at files and snapshots; its answers are shown.

    Args:
        workspace: the workspace's directory.
        root: where the agents' files are that are no forks.
        store: the journal, which is read here.
        view: the present state of an agent.
        ask: asks the engine.
    """

    def __init__(self, workspace: Path, root: Path, store: JournalStore, view: View, ask: Ask) -> None:
        super().__init__(workspace, root, store, {})
        self._view, self._ask = view, ask

    async def preview(
        self, agent_id: str, to: int, scope: str = "both", paths: Sequence[str] = ()
    ) -> RewindPreview:
        """See `Branches.preview`."""
        row = await self._asked("rewind_preview", agent=agent_id, to=to, scope=scope, paths=list(paths))
        outside = [(ref, words) for ref, words in row["outside"]]
        return RewindPreview(
            agent_id,
            row["asked"],
            row["to"],
            RewindScope(scope),
            tuple(paths),
            (await StreamHistory(self._store, agent_id).state(row["to"])),
            await self._view(agent_id),
            ChangesSince(agent_id, (), events=row["events"], outside=outside),
            made(FilesAt, row["files"]) if row["files"] else None,
            made(Restoration, row["restoration"]) if row["restoration"] else None,
            row["trouble"],
            tuple(row["others"]),
            tuple(row["lasting"]),
        )

    async def undo_offer(self, agent_id: str, *, again: bool = False) -> UndoOffer:
        """See `Branches.undo_offer`; what is durable says it."""
        past, now = StreamHistory(self._store, agent_id), await self._view(agent_id)
        return await last_change(self._store, past, now, again=again)

    async def adopt_preview(self, agent_id: str, fork: str) -> Restoration:
        """See `Branches.adopt_preview`."""
        return made(Restoration, await self._asked("adopt_preview", agent=agent_id, fork=fork))

    async def files_between(self, agent: str, other: str) -> Changes | str:
        """See `Branches.files_between`."""
        return await self._changes("agents", agent, other)

    async def changed_files(self, snapshot: str, other: str) -> Changes | str:
        """See `Branches.changed_files`."""
        return await self._changes("snapshots", snapshot, other)

    async def _changes(self, of: str, first: str, second: str) -> Changes | str:
        try:
            row = await self._ask("changes", of=of, first=first, second=second)
        except EngineAwayError as error:
            return str(error)
        return str(row["trouble"]) if "trouble" in row else made(Changes, row)

    async def _asked(self, name: str, **given: Any) -> Any:
        try:
            return await self._ask(name, **given)
        except EngineAwayError as error:
            raise RewindError(str(error)) from error


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def made(kind: type[T], row: object) -> T:
    """A value of what an engine of perhaps another version said of it."""
    value: T = _adapter(kind).validate_python(row)  # type: ignore[arg-type]
    return value


class RemoteTool:
    """A tool that only the engine has; calls to it are commands to the engine.

    Args:
        offer: what the engine says of it.
        description: what it is.
    """

    def __init__(self, offer: ToolOffered, description: str) -> None:
        self.id, self.description = offer.tool, description
        self.commands: Mapping[str, CommandSpec] = commands_of(offer)

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Never called, as no agent acts here.

        Raises:
            EngineAwayError: always.
        """
        raise EngineAwayError(f"{self.id} works in the engine's own process")


def remote_tools(said: Mapping[str, Any]) -> Iterator[RemoteTool]:
    """The tools that an engine has."""
    for row in said["offers"]:
        offer = ToolOffered(tool=row["tool"], commands=tuple(row["commands"]))
        with suppress(TypeError):  # of an engine of another version
            yield RemoteTool(offer, str(row["description"]))
