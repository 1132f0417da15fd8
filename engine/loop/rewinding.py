"""Carrying a rewind out: it is recorded, the present is saved, files are brought back, the state follows.

What is about to be done to files is durable before the first of them is touched (`RewindBegun`), and from
then on the gate holds the agent. An end of the program in between is found on reopening; as bringing files
back is repeat-safe, the same rewind can then be asked for again. Source: steering §3 idea 4.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.domain import commands as cmd
from engine.domain.rewinding import RewindScope, course_at
from engine.journal import events as ev
from engine.journal.errors import JournalError
from engine.journal.event import Event
from engine.journal.fold import copy_state
from engine.loop.agent import Agent
from engine.loop.decide_time import check_stands
from engine.loop.outcome import RefusedError
from engine.snapshots import Restoration, SnapshotDamaged, SnapshotError, SnapshotMissing, Snapshots
from engine.steering.rewinding import Preview, RewindError, Surroundings, preview


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
        self,
        agent: Agent,
        scope: RewindScope,
        actor: str,
        around: Surroundings,
        others: Callable[[], str],
    ) -> None:
        self._agent, self._scope, self._actor = agent, scope, actor
        self._around, self._others = around, others

    async def carry_out(self, command: cmd.Rewind) -> cmd.Receipt:
        """Do it; what the receipt says is durable.

        Raises:
            JournalError: the journal cannot record; no file was changed.
        """
        receipt = self._agent.handle(command, self._actor)
        await self._agent.log.commit()
        if not receipt.ok:
            return receipt
        try:
            return await self._go(command, receipt.event)
        except (RewindError, RefusedError, SnapshotError) as error:
            return await self._failed(error, receipt.event)

    async def adopt(self, command: cmd.AdoptFork, theirs: str) -> cmd.Receipt:
        """Give the agent the files of a fork instead; everything else is as for a rewind of files.

        Args:
            command: what is asked.
            theirs: snapshot of the fork's files.

        Raises:
            JournalError: the journal cannot record; no file was changed.
        """
        agent, snapshots = self._agent, self._around.snapshots
        assert snapshots is not None
        receipt = agent.handle(command, self._actor)
        await agent.log.commit()
        if not receipt.ok:
            return receipt
        try:
            done = await self._bring_back(snapshots, theirs, agent.state.version, receipt.event, command.fork)
        except (RefusedError, RewindError, SnapshotError) as error:
            return await self._failed(error, receipt.event)
        begun = agent.state.rewinding
        rewound = ev.Rewound(
            to=begun.to if begun is not None else agent.state.version,
            what=RewindScope.FILES,
            snapshot=theirs,
            changed=_count(done),
            verified=done.verified,
            adopted=command.fork,
            left=len(done.left),
        )
        event = agent.append(rewound, self._actor, begun.event if begun is not None else receipt.event)
        await agent.log.commit()
        sure = ", each file checked" if done.verified else ""
        message = f"the files of {command.fork} are {agent.state.agent_id}'s now: {_paths(done)}{sure}"
        return cmd.Receipt(ok=True, message=message, event=event.ref, data={"changed": _count(done)})

    async def _go(self, command: cmd.Rewind, cause: str) -> cmd.Receipt:
        agent = self._agent
        now, paths = copy_state(agent.state), command.paths
        found = await preview(self._around, now, command.to, self._scope, paths, looks=False)
        if found.trouble:
            hint = "" if self._scope is RewindScope.FILES else "; rewind state takes only the mind back"
            raise RewindError(f"{found.trouble}{hint}")
        if self._scope is RewindScope.FILES and found.files is not None and not found.files.snapshot:
            raise RewindError(found.files.note)
        done: Restoration | None = None
        if found.files is not None and found.files.snapshot and self._around.snapshots is not None:
            done = await self._bring_back(
                self._around.snapshots, found.files.snapshot, found.to, cause, paths=paths
            )
            cause = self._agent.state.rewinding.event if self._agent.state.rewinding is not None else cause
        self._check()
        event = self._record(found, done, cause)
        await agent.log.commit()
        return cmd.Receipt(
            ok=True,
            message=_told(found, done),
            event=event.ref,
            data={"to": found.to, "changed": _count(done)},
        )

    def _check(self) -> None:
        """Look again whether the agent stands, as time has passed."""
        state = self._agent.state
        if state.rewinding is None:
            check_stands(state, self._scope)
            if self._scope is not RewindScope.STATE and (why := self._others()):
                raise RewindError(why)

    async def _bring_back(
        self,
        snapshots: Snapshots,
        wanted: str,
        to: int,
        cause: str,
        adopted: str = "",
        *,
        paths: tuple[str, ...] = (),
    ) -> Restoration:
        agent, name = self._agent, self._agent.state.agent_id
        saved = await snapshots.take(label=f"{name} before a rewind to event {to}")
        self._check()
        begun = ev.RewindBegun(
            to=to, what=self._scope, snapshot=wanted, saved=saved.id, paths=paths, adopted=adopted
        )
        event = agent.append(begun, self._actor, cause)
        try:
            await agent.log.commit()
        except JournalError as error:
            agent.append(ev.RewindFailed(reason=f"the journal cannot record: {error}"), "system", event.ref)
            raise
        return await snapshots.restore(wanted, paths=paths or None)

    def _record(self, found: Preview, done: Restoration | None, cause: str) -> Event:
        state = self._agent.state
        course = None if self._scope is RewindScope.FILES else course_at(found.then, state)
        rewound = ev.Rewound(
            to=found.to,
            what=self._scope,
            course=course,
            snapshot=done.id if done is not None else "",
            changed=_count(done),
            verified=done.verified if done is not None else None,
            left=len(done.left) if done is not None else 0,
        )
        return self._agent.append(rewound, self._actor, cause, f"{state.agent_id}:{found.to}")

    async def _failed(self, error: Exception, cause: str) -> cmd.Receipt:
        begun, reason = self._agent.state.rewinding, str(error)
        untouched = isinstance(error, SnapshotMissing | SnapshotDamaged)  # which is found beforehand
        partly = begun is not None and not untouched
        if partly:
            reason = f"{reason} Some files may be changed already; the same rewind can be asked for again."
        elif untouched:
            reason = f"{reason} No file was changed; rewind state takes only the mind back."
        failed = ev.RewindFailed(reason=reason, partly=partly)
        event = self._agent.append(failed, "system", begun.event if begun is not None else cause)
        await self._agent.log.commit()
        return cmd.Receipt(ok=False, message=reason, event=event.ref)


def _count(done: Restoration | None) -> int:
    if done is None:
        return 0
    return len(done.written) + len(done.made) + len(done.removed) + len(done.mode_changed) + done.more


def _paths(done: Restoration) -> str:
    count = _count(done)
    return f"{count} path{'s' * (count != 1)}"


def _told(found: Preview, done: Restoration | None) -> str:
    parts = [f"{found.agent} is back at event {found.to}"]
    if found.scope is RewindScope.FILES:
        parts = [f"files are as at event {found.to}"]
    if done is not None:
        sure = ", each file checked" if done.verified else ""
        parts.append(f"{_paths(done)} changed{sure}")
        if done.failed:
            parts.append(f"{len(done.failed)} could not be: {done.failed[0].path} {done.failed[0].why}")
    elif found.scope is RewindScope.BOTH and found.files is not None:
        parts.append(found.files.note)
    if found.lasting:
        parts.append(f"{len(found.lasting)} thing{'s' * (len(found.lasting) != 1)} not undone")
    return "; ".join(parts)
