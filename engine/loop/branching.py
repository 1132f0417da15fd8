"""Going back and branching: whose files are where, what rewinds and forks read, and what is in their way.

Source: steering §3 ideas 4 and 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from engine.actions.saving import WorkspaceSaver
from engine.domain import commands as cmd
from engine.domain.rewinding import RewindScope
from engine.domain.state import AgentState, RunState
from engine.journal import events as ev
from engine.journal.event import of_agent
from engine.journal.fold import copy_state
from engine.journal.past import Past
from engine.journal.store import JournalStore
from engine.loop.agent import Agent
from engine.sandbox.files import make_root
from engine.snapshots import Changes, Restoration, SnapshotError
from engine.steering.rewinding import Preview, RewindError, Surroundings, preview

FORKS_DIRECTORY = "forks"
"""Where forks of agents have files of their own, below the workspace."""
ACTING = (cmd.Run, cmd.Step, cmd.CallTool, cmd.TakeShell, cmd.AdoptGoal)
"""Commands by which an agent comes to act, which it may not while files are brought back under it."""


class Branches:
    """The files of a workspace's agents, those of forks apart, and what goes back in them.

    Args:
        workspace: the workspace's directory.
        root: where the agents' files are that are no forks.
        store: the journal.
        agents: the live agents by their ids; those of the moment.
        main: who saves the files in `root`; None where no snapshots are taken.
        recent: the snapshots of so many newest actions, which are kept.
    """

    def __init__(
        self,
        workspace: Path,
        root: Path,
        store: JournalStore,
        agents: Mapping[str, Agent],
        *,
        main: Callable[[], WorkspaceSaver | None],
        recent: Callable[[int], Awaitable[set[str]]],
    ) -> None:
        self._workspace, self._root = workspace, root
        self._store, self._agents = store, agents
        self._main, self._recent = main, recent
        self._rewinds: set[str] = set()
        """Agents whose files are being brought back."""
        self._apart: set[str] = set()
        """Agents that work on files of their own, deleted ones too."""
        self._savers: dict[str, WorkspaceSaver] = {}
        """Who saves the files of those."""

    # -------------------------------------------------------------- files

    def note(self, agent: str) -> None:
        """Take note that an agent is a fork, or was."""
        self._apart.add(agent)

    async def set_apart(self, agent: str) -> Path:
        """Make room for a fork's own files; where they are."""
        self.note(agent)
        root = self.root_of(agent)
        await asyncio.to_thread(make_root, root)
        main = self._main()
        if main is not None:
            self._savers[agent] = WorkspaceSaver(main.snapshots.beside(root, agent), self._recent)
        return root

    def root_of(self, agent: str) -> Path:
        """Where an agent's files are: the workspace's sandbox, or of a fork its own."""
        return self._own_root(agent) if agent in self._apart else self._root

    def _own_root(self, agent: str) -> Path:
        return self._workspace / FORKS_DIRECTORY / agent

    def saver_of(self, agent: str) -> WorkspaceSaver | None:
        """Who saves an agent's files."""
        return self._savers.get(agent) or self._main()

    async def close(self) -> None:
        """End the saving of forks' files."""
        for saver in self._savers.values():
            await saver.close()

    async def between(self, one: str, other: str) -> Changes | str:
        """What differs between the files of two agents as they are now, or why that is not known."""
        main = self._main()
        if main is None:
            return "no snapshots are taken here"
        try:
            ids = []
            for agent in (one, other):
                saver = self._savers.get(agent, main)
                ids.append((await saver.snapshots.take(label=f"{agent} is compared")).id)
            return await main.snapshots.diff(*ids)
        except SnapshotError as error:
            return str(error)

    # -------------------------------------------------------------- going back

    async def preview(self, agent: Agent, to: int, scope: RewindScope, paths: Sequence[str]) -> Preview:
        """What a rewind would do; see `Engine.rewind_preview`."""
        await agent.log.commit()
        return await preview(self._back_from(agent), copy_state(agent.state), to, scope, paths)

    async def rewind(self, agent: Agent, command: cmd.Rewind | cmd.AdoptFork, actor: str) -> cmd.Receipt:
        """Bring files and state back, or files of a fork in.

        Raises:
            JournalError: the journal cannot record; no file was changed.
        """
        from engine.loop.rewinding import Rewind

        scope = RewindScope(command.scope) if isinstance(command, cmd.Rewind) else RewindScope.FILES
        rewind = Rewind(agent, scope, actor, self._back_from(agent), lambda: self._in_the_way(agent))
        self._rewinds.add(command.agent)
        try:
            if isinstance(command, cmd.Rewind):
                return await rewind.carry_out(command)
            theirs = await self._files_of_fork(command.agent, command.fork)
            return await rewind.adopt(command, theirs)
        except RewindError as error:
            return cmd.Receipt(ok=False, message=str(error))
        finally:
            self._rewinds.discard(command.agent)
            if (saver := self.saver_of(command.agent)) is not None:
                saver.changed_otherwise()

    def held(self, agent: Agent, command: cmd.Command) -> str:
        """Why a command may not set an agent to work now: files are brought back; empty when it may."""
        if not self._rewinds or not isinstance(command, ACTING):
            return ""
        shared = self._rewinds.intersection(self._sharing(agent.state)) - {agent.state.agent_id}
        return f"the files are being brought back for {', '.join(shared)}; a moment" if shared else ""

    def _back_from(self, agent: Agent) -> Surroundings:
        """What a rewind of an agent reads."""
        name = agent.state.agent_id
        saver = self.saver_of(name)
        snapshots = saver.snapshots if saver is not None else None
        return Surroundings(self._store, Past(self._store, name), snapshots, self._sharing(agent.state))

    def _sharing(self, state: AgentState) -> list[str]:
        """The agents that work on the same files as one."""
        if state.forked is not None:
            return [state.agent_id]
        return [stream for stream in self._store.names if of_agent(stream) and stream not in self._apart]

    def _in_the_way(self, agent: Agent) -> str:
        """Why an agent's files cannot be brought back now: another agent may change them."""
        for name in self._sharing(agent.state):
            other = self._agents.get(name)
            if other is None or other is agent:
                continue
            state = other.state
            runs = state.run is RunState.RUNNING and state.has_work
            if state.busy or state.requests or state.grants or state.shell_taken or runs:
                return f"{name} works on the same files; pause it first, and take no shell"
        return ""

    # -------------------------------------------------------------- forks

    async def begun(
        self, agent: Agent, command: cmd.ForkAgent
    ) -> tuple[ev.AgentCreated, ev.AgentForked, list[str]]:
        """Lay a fork's files out; the events by which it begins, and paths that it lacks.

        Raises:
            RewindError: no fork can begin there.
            SnapshotError, PathError: its files cannot be had.
            JournalError: the journal cannot be read.
        """
        from engine.loop.forking import begun_at

        await agent.log.commit()
        created, forked = await begun_at(agent.state, self._back_from(agent), command)
        main = self._main()
        if not forked.snapshot or main is None:
            return created, forked, []
        root = self._own_root(command.name)
        await asyncio.to_thread(make_root, root)
        done = await main.snapshots.beside(root, command.name).restore(forked.snapshot)
        return created, forked, [one.path for one in (*done.left, *done.failed)]

    async def adopt_preview(self, agent: Agent, fork: str) -> Restoration:
        """What taking over a fork's files would do to the agent's; see `Engine.adopt_preview`."""
        around = self._back_from(agent)
        theirs = await self._files_of_fork(agent.state.agent_id, fork)
        assert around.snapshots is not None
        try:
            return await around.snapshots.restore(theirs, dry_run=True)
        except SnapshotError as error:
            raise RewindError(str(error)) from error

    async def _files_of_fork(self, agent_id: str, fork: str) -> str:
        """A snapshot of the files that a fork has now.

        Raises:
            RewindError: there is no such fork of the agent, it acts, or its files cannot be saved.
        """
        theirs, saver = self._agents.get(fork), self._savers.get(fork)
        if theirs is None or not self._is_fork(theirs, agent_id):
            known = [name for name, live in self._agents.items() if self._is_fork(live, agent_id)]
            raise RewindError(f"{fork} is no fork of {agent_id}; its forks: {', '.join(known) or 'none yet'}")
        if theirs.state.busy or theirs.state.shell_taken:
            raise RewindError(f"an action of {fork} is running; wait for it, or pause and stop it first")
        if saver is None:
            raise RewindError("no snapshots of files are taken here, so none can be taken over")
        try:
            return (await saver.snapshots.take(label=f"{fork} is taken over by {agent_id}")).id
        except SnapshotError as error:
            raise RewindError(str(error)) from error

    @staticmethod
    def _is_fork(live: Agent, of: str) -> bool:
        return live.state.forked is not None and live.state.forked.agent == of
