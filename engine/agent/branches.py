"""Going back and branching: rewinds and forks of agents, and whose files are where.

A fork begins with two events of its stream and takes over what the other agent had planned, believed and
done up to there, so that nothing of it is asked of a model or run again. A rewind records what is about to be
done before it touches the first file (`RewindBegun`), and from then on the gate holds the agent. An end of
the program in between is noticed on reopening; the same rewind can then be asked for again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.agent.actions.snapshots import WorkspaceSaver
from engine.agent.agent import Agent
from engine.agent.decisions.outcome import RefusedError
from engine.agent.decisions.table import check_rewind_allowed
from engine.agent.steering.rewind_preview import RewindError, RewindPreview, RewindSources, place_of, preview
from engine.agent.steering.undo import UndoOffer, last_change
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.fold import copy_state
from engine.core.journal import JournalError, of_agent
from engine.core.reasons import Reason, free_text
from engine.core.rewind import GoalCourse, RewindScope, course_at
from engine.core.state import AgentState
from engine.core.store.port import DATA_DIRECTORY, JournalStore
from engine.core.streams import StreamHistory
from engine.sandbox.files import FORKS_DIRECTORY, make_root
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.snapshots.entry import (
    Changes,
    Restoration,
    SnapshotDamaged,
    SnapshotError,
    SnapshotMissing,
)
from engine.sandbox.snapshots.walk import SnapshotPolicy
from engine.sandbox.snapshots.workspace import Snapshots

SNAPSHOTS_DIRECTORY = "snapshots"
"""Where the files are kept as they were before each action, in the data directory."""
NO_SNAPSHOTS = "no snapshots are taken here"
ACTING = (cmd.Run, cmd.Step, cmd.CallTool, cmd.TakeShell, cmd.AdoptGoal)
"""Commands by which an agent comes to act, which it may not while files are brought back under it."""


class Branches:
    """The files of a workspace's agents, those of forks apart, and what goes back in them.

    Args:
        workspace: the workspace's directory.
        root: where the agents' files are that are no forks.
        store: the journal.
        agents: the live agents by their ids; those of the moment.
    """

    def __init__(self, workspace: Path, root: Path, store: JournalStore, agents: Mapping[str, Agent]) -> None:
        self._workspace, self._root = workspace, root
        self._store, self._agents = store, agents
        self.main: WorkspaceSaver | None = None
        """Who saves the files in `root`; None where no snapshots are taken."""
        self._rewinds: set[str] = set()
        """Agents whose files are being brought back."""
        self._apart: set[str] = set()
        """Agents that work on files of their own, deleted ones too."""
        self._savers: dict[str, WorkspaceSaver] = {}
        """Who saves the files of those."""

    # -------------------------------------------------------------- files

    def open(self, policy: SandboxPolicy) -> None:
        """Begin to take snapshots of the files in `root`; blocking.

        Raises:
            SnapshotError: there is no place for them.
        """
        store = self._workspace / DATA_DIRECTORY / SNAPSHOTS_DIRECTORY
        snapshots = Snapshots(self._root, store, SnapshotPolicy.for_sandbox(policy))
        self.main = WorkspaceSaver(snapshots, self._recent_snapshots)

    async def _recent_snapshots(self, actions: int) -> set[str]:
        """The snapshots of that many newest actions of each agent, which are kept."""
        names: set[str] = set()
        for agent in list(self._agents):
            for kind, name in ((ev.SnapshotTaken.kind, "snapshot"), (ev.RewindBegun.kind, "saved")):
                # Of many agents these are tens of thousands, so they are not made into payloads.
                events = await self._store.last(actions, agent, kind=kind)
                names.update(json.loads(event.body)[name] for event in events)
        return names

    def note(self, agent: str) -> None:
        """Take note that an agent is a fork, or was."""
        self._apart.add(agent)

    async def set_apart(self, agent: str) -> Path:
        """Make room for a fork's own files; where they are."""
        self.note(agent)
        root = self.root_of(agent)
        await asyncio.to_thread(make_root, root)
        if (main := self.main) is not None:
            self._savers[agent] = WorkspaceSaver(main.snapshots.beside(root, agent), self._recent_snapshots)
        return root

    def root_of(self, agent: str) -> Path:
        """Where an agent's files are: the workspace's sandbox, or of a fork its own."""
        return self._own_root(agent) if agent in self._apart else self._root

    def _own_root(self, agent: str) -> Path:
        return self._workspace / FORKS_DIRECTORY / agent

    def saver_of(self, agent: str) -> WorkspaceSaver | None:
        """Who saves an agent's files."""
        return self._savers.get(agent) or self.main

    async def close(self) -> None:
        """End the saving of files."""
        for saver in (*self._savers.values(), *([self.main] if self.main is not None else [])):
            await saver.close()

    async def files_between(self, agent: str, other: str) -> Changes | str:
        """What differs between the files of two agents as they are now, or why that is not known."""
        if (main := self.main) is None:
            return NO_SNAPSHOTS
        try:
            savers = [(name, self._savers.get(name, main)) for name in (agent, other)]
            ids = [(await saver.snapshots.take(label=f"{name} is compared")).id for name, saver in savers]
            return await main.snapshots.diff(*ids)
        except SnapshotError as error:
            return str(error)

    async def changed_files(self, snapshot: str, other: str) -> Changes | str:
        """What differs between two workspace snapshots, or why that is not known."""
        try:
            return await self.main.snapshots.diff(snapshot, other) if self.main is not None else NO_SNAPSHOTS
        except SnapshotError as error:
            return str(error)

    # -------------------------------------------------------------- going back

    async def preview(
        self, agent_id: str, to: int, scope: str = "both", paths: Sequence[str] = ()
    ) -> RewindPreview:
        """What a rewind would do; nothing is changed.

        Args:
            agent_id: the agent.
            to: a version of its stream.
            scope: `both`, `state` or `files`.
            paths: of the files only these; none for all.

        Raises:
            KeyError: there is no such agent.
            RewindError: it cannot be gone back there.
            JournalError: the journal cannot be read.
        """
        agent = self._agents[agent_id]
        await agent.log.commit()
        return await preview(self._back_from(agent), copy_state(agent.state), to, RewindScope(scope), paths)

    async def place_of(self, agent_id: str, word: str, here: int | None = None) -> int:
        """The version of an agent's stream that a word names; see `rewind_preview.place_of`.

        Raises:
            RewindError: it names nothing.
        """
        return await place_of(self._store, agent_id, word, here)

    async def undo_offer(self, agent_id: str, *, again: bool = False) -> UndoOffer:
        """What would undo the operator's newest change to an agent; nothing is changed.

        Args:
            agent_id: the agent.
            again: what would redo what was undone last.

        Raises:
            KeyError: there is no such agent.
            UndoError: there is nothing to undo, or it cannot be.
            JournalError: the journal cannot be read.
        """
        agent = self._agents[agent_id]
        await agent.log.commit()
        past = StreamHistory(self._store, agent_id)
        return await last_change(self._store, past, copy_state(agent.state), again=again)

    async def rewind(self, agent: Agent, command: cmd.Rewind | cmd.AdoptFork, actor: str) -> cmd.Receipt:
        """Bring files and state back, or files of a fork in.

        Raises:
            JournalError: the journal cannot record; no file was changed.
        """
        scope = RewindScope(command.scope) if isinstance(command, cmd.Rewind) else RewindScope.FILES
        rewind = Rewind(agent, scope, actor, self._back_from(agent), lambda: self._in_the_way(agent))
        self._rewinds.add(command.agent)
        try:
            if isinstance(command, cmd.Rewind):
                return await rewind.carry_out(command)
            return await rewind.carry_out(command, await self._files_of_fork(command.agent, command.fork))
        except RewindError as error:
            return cmd.Receipt(ok=False, message=str(error))
        finally:
            self._rewinds.discard(command.agent)
            if (saver := self.saver_of(command.agent)) is not None:
                saver.note_other_changes()

    def held(self, agent: Agent, command: cmd.Command) -> str:
        """Why a command may not set an agent to work now: files are brought back; empty when it may."""
        if not self._rewinds or not isinstance(command, ACTING):
            return ""
        shared = self._rewinds.intersection(self._sharing(agent.state)) - {agent.state.agent_id}
        return f"the files are being brought back for {', '.join(shared)}; a moment" if shared else ""

    def _back_from(self, agent: Agent) -> RewindSources:
        """What a rewind of an agent reads."""
        name = agent.state.agent_id
        saver = self.saver_of(name)
        snapshots = saver.snapshots if saver is not None else None
        return RewindSources(
            self._store, StreamHistory(self._store, name), snapshots, self._sharing(agent.state)
        )

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
        await agent.log.commit()
        created, forked = await fork_events_at(agent.state, self._back_from(agent), command)
        if not forked.snapshot or (main := self.main) is None:
            return created, forked, []
        root = self._own_root(command.name)
        await asyncio.to_thread(make_root, root)
        done = await main.snapshots.beside(root, command.name).restore(forked.snapshot)
        return created, forked, [item.path for item in (*done.left, *done.failed)]

    async def adopt_preview(self, agent_id: str, fork: str) -> Restoration:
        """What taking over a fork's files would do to the agent's; nothing is changed.

        Raises:
            KeyError: there is no such agent.
            RewindError: the fork's files cannot be taken over.
        """
        around = self._back_from(self._agents[agent_id])
        theirs = await self._files_of_fork(agent_id, fork)
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


async def fork_events_at(
    state: AgentState, around: RewindSources, command: cmd.ForkAgent
) -> tuple[ev.AgentCreated, ev.AgentForked]:
    """The events by which a fork begins.

    Args:
        state: how the other agent stands now, all of it durable.
        around: what the journal and the snapshots say of it.
        command: from which event, and under which id.

    Raises:
        RewindError: no fork can begin there.
        SnapshotError: the present files cannot be saved.
        JournalError: the journal cannot be read.
    """
    if state.reasons:
        raise RewindError("the mind of an agent with a program of its own cannot be forked")
    if around.snapshots is None:
        raise RewindError("no snapshots of files are taken here, so that a fork would have none of its own")
    outlook = await preview(around, copy_state(state), command.to, RewindScope.BOTH, looks=False)
    files = outlook.files
    if files is None or (not files.snapshot and not files.exact):
        raise RewindError(files.note if files is not None else "the files as of then are not known")
    # Where no action has changed files since, they are as they are now.
    snapshot = files.snapshot or (await around.snapshots.take(label=f"{command.name} begins")).id
    created = ev.AgentCreated(
        agent_id=command.name,
        agent_type=state.agent_type,
        description=f"fork of {state.agent_id}:{outlook.to}",
        config=state.config,
    )
    forked = ev.AgentForked(
        parent=f"{state.agent_id}:{outlook.to}",
        course=course_at(outlook.then, AgentState()),
        snapshot=snapshot,
        next_id=dict(outlook.then.next_id),
        budget=state.budget,
    )
    return created, forked


class Rewind:
    """One rewind of one agent.

    Args:
        agent: a live agent.
        scope: what is taken back.
        actor: who asks.
        around: what the journal and the snapshots say.
        others: why files cannot be changed now because of other agents; empty when they can.
    """

    def __init__(
        self, agent: Agent, scope: RewindScope, actor: str, around: RewindSources, others: Callable[[], str]
    ) -> None:
        self._agent, self._scope, self._actor = agent, scope, actor
        self._around, self._others = around, others

    async def carry_out(self, command: cmd.Rewind | cmd.AdoptFork, theirs: str = "") -> cmd.Receipt:
        """Do it; what the receipt says is durable.

        Args:
            command: what is asked.
            theirs: snapshot of the fork's files where these are taken over.

        Raises:
            JournalError: the journal cannot record; no file was changed.
        """
        receipt = self._agent.handle(command, self._actor)
        await self._agent.log.commit()
        if not receipt.ok:
            return receipt
        try:
            if isinstance(command, cmd.AdoptFork):
                return await self._adopt(command.fork, theirs, receipt.event)
            return await self._go(command, receipt.event)
        except (RewindError, RefusedError, SnapshotError) as error:
            return await self._failed(error, receipt.event)

    async def _adopt(self, fork: str, theirs: str, cause: str) -> cmd.Receipt:
        """Give the agent the files of a fork; everything else is as for a rewind of files."""
        to, name = self._agent.state.version, self._agent.state.agent_id
        done, cause = await self._bring_back(theirs, to, cause, adopted=fork)
        event = self._agent.append(self._rewound(to, done, adopted=fork), self._actor, cause)
        await self._agent.log.commit()
        message = f"the files of {fork} are {name}'s now: {_changed(done)}"
        return cmd.Receipt(ok=True, message=message, event=event.ref, data={"changed": done.steps})

    async def _go(self, command: cmd.Rewind, cause: str) -> cmd.Receipt:
        agent, files_only = self._agent, self._scope is RewindScope.FILES
        now, paths = copy_state(agent.state), command.paths
        outlook = await preview(self._around, now, command.to, self._scope, paths, looks=False)
        files, to = outlook.files, outlook.to
        if outlook.trouble:
            hint = "" if files_only else "; rewind state takes only the mind back"
            raise RewindError(f"{outlook.trouble}{hint}")
        if files_only and files is not None and not files.snapshot:
            raise RewindError(files.note)
        done: Restoration | None = None
        if files is not None and files.snapshot:
            done, cause = await self._bring_back(files.snapshot, to, cause, paths=paths)
        self._check()
        course = None if files_only else course_at(outlook.then, agent.state)
        rewound = self._rewound(to, done, course)
        event = agent.append(rewound, self._actor, cause, f"{agent.state.agent_id}:{to}")
        await agent.log.commit()
        data = {"to": to, "changed": rewound.changed}
        return cmd.Receipt(ok=True, message=_summary(outlook, done), event=event.ref, data=data)

    def _check(self) -> None:
        """Look again whether the agent stands, as time has passed."""
        state = self._agent.state
        if state.rewinding is None:
            check_rewind_allowed(state, self._scope)
            if self._scope is not RewindScope.STATE and (why := self._others()):
                raise RewindError(why)

    async def _bring_back(
        self, snapshot: str, to: int, cause: str, *, adopted: str = "", paths: tuple[str, ...] = ()
    ) -> tuple[Restoration, str]:
        """Bring files back; what was done, and the event by which that began."""
        agent, snapshots, scope = self._agent, self._around.snapshots, self._scope
        assert snapshots is not None
        saved = await snapshots.take(label=f"{agent.state.agent_id} before a rewind to event {to}")
        self._check()
        begun = ev.RewindBegun(
            to=to, what=scope, snapshot=snapshot, saved=saved.id, paths=paths, adopted=adopted
        )
        event = agent.append(begun, self._actor, cause)
        try:
            await agent.log.commit()
        except JournalError as error:
            failed = ev.RewindFailed(reason=Reason("gate.journal", error=str(error)))
            agent.append(failed, "system", event.ref)
            raise
        return await snapshots.restore(snapshot, paths=paths or None), event.ref

    def _rewound(
        self, to: int, done: Restoration | None, course: GoalCourse | None = None, adopted: str = ""
    ) -> ev.Rewound:
        rewound = ev.Rewound(to=to, what=self._scope, course=course, adopted=adopted)
        if done is None:
            return rewound
        files = {"snapshot": done.id, "changed": done.steps, "verified": done.verified}
        return rewound.model_copy(update={**files, "left": len(done.left)})

    async def _failed(self, error: Exception, cause: str) -> cmd.Receipt:
        begun, reason = self._agent.state.rewinding, getattr(error, "reason", free_text(str(error)))
        untouched = isinstance(error, SnapshotMissing | SnapshotDamaged)  # which is found beforehand
        partly = begun is not None and not untouched
        if partly:
            reason = Reason("rewind.partly", why=reason)
        elif untouched:
            reason = Reason("rewind.untouched", why=reason)
        failed = ev.RewindFailed(reason=reason, partly=partly)
        event = self._agent.append(failed, "system", begun.event if begun is not None else cause)
        await self._agent.log.commit()
        return cmd.Receipt(ok=False, message=reason, event=event.ref)


def _changed(done: Restoration) -> str:
    return f"{done.steps} path{'s' * (done.steps != 1)}" + (", each file checked" if done.verified else "")


def _summary(preview: RewindPreview, done: Restoration | None) -> str:
    parts = [f"{preview.agent} is back at event {preview.to}"]
    if preview.scope is RewindScope.FILES:
        parts = [f"files are as at event {preview.to}"]
    if done is not None:
        sure = ", each file checked" if done.verified else ""
        parts.append(f"{done.steps} path{'s' * (done.steps != 1)} changed{sure}")
        if done.failed:
            parts.append(f"{len(done.failed)} could not be: {done.failed[0].path} {done.failed[0].why}")
    elif preview.scope is RewindScope.BOTH and preview.files is not None:
        parts.append(preview.files.note)
    if preview.lasting:
        parts.append(f"{len(preview.lasting)} thing{'s' * (len(preview.lasting) != 1)} not undone")
    return "; ".join(parts)
