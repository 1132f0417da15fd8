"""Stopping agents, and what was stopped.

All agents that a stop is meant for are stopped in one go, before anything is waited for. What was there is
noted right before, and looked at again after: a receipt says what was seen, never what was intended. What is
still dying is named as such, and a second receipt follows when it is dead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from engine.agent.agent import Agent
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.agents import RunState
from engine.core.journal import JournalError
from engine.core.sandbox import Census, ItemKind, StopGrade, StopItem, StopReceipt, TreeKind
from engine.core.state import AgentState
from engine.core.text import clean_line
from engine.sandbox.process_trees import ProcessTree

FIRST_S = 0.3
"""Seconds after which a receipt says what is still dying rather than wait for it."""
LAST_S = 30.0
"""Seconds after which what has not died is said to continue."""
LOOK_S = 0.25
"""Seconds that a supervisor has to say what it sees."""
AGAIN_S = 0.03
FROZEN_BY_S = 2.0
"""Seconds after which what could not be frozen is said to continue."""
CLOSING_S = 3.0
WORDS = 120
_KINDS = {TreeKind.CALL: ItemKind.TOOL, TreeKind.JOB: ItemKind.JOB, TreeKind.SHELL: ItemKind.SHELL}


@dataclass(slots=True)
class _StopTarget:
    """Something that was there when the stop came, until its result has been seen."""

    item: StopItem
    """As it is told while that is not known."""
    seen: Callable[[], Awaitable[tuple[StopItem, bool]]]
    """Finds out; with whether it still runs."""
    fresh: bool = True
    """Whether this stop is what stops it."""
    runs: bool = True
    task: asyncio.Task[None] | None = None


@dataclass(slots=True)
class _RunningStop:
    """One stop of one agent."""

    agent: Agent
    grade: StopGrade
    things: list[_StopTarget] = field(default_factory=list)
    acted: bool = False
    """Whether the agent stands otherwise than before."""
    begun: float = field(default_factory=time.monotonic)
    ref: str = ""
    """The event that recorded the request."""

    def since_ms(self) -> int:
        return round((time.monotonic() - self.begun) * 1000)


class StopController:
    """Carries out stops, and follows them until all is dead that is to die."""

    def __init__(self) -> None:
        self._followed: set[asyncio.Task[None]] = set()

    async def carry_out(self, agents: Sequence[Agent], event: cmd.Stop, actor: str) -> cmd.Receipt:
        """Stop these agents at once; returns when the result was seen, or something is still dying.

        Raises:
            JournalError: what was done could not be recorded yet; it was done all the same.
        """
        stops, answers = [], []
        for agent in agents:
            stop = _RunningStop(agent, StopGrade(event.grade))
            stop.things, before = _things(stop), _standing(agent.state)
            answer = agent.handle(event.model_copy(update={"agent": agent.state.agent_id}), actor)
            stop.ref, stop.acted = answer.event, before != _standing(agent.state)
            stops.append(stop)
            answers.append(answer)
        kept = asyncio.gather(*(stop.agent.log.commit() for stop in stops), return_exceptions=True)
        receipts = await asyncio.gather(*(self._receipt(stop) for stop in stops))
        for problem in await kept:
            if isinstance(problem, JournalError):
                raise problem
        for stop in stops:
            await stop.agent.log.commit()
        return _told(answers, receipts)

    async def thaw(self, agents: Sequence[Agent], event: cmd.Thaw, actor: str) -> cmd.Receipt:
        """Let the processes of these agents continue, at once.

        Raises:
            JournalError: it could not be recorded yet; it was done all the same.
        """
        thawed = [agent.state.agent_id for agent in agents if agent.state.frozen]
        answers = [
            agent.handle(event.model_copy(update={"agent": agent.state.agent_id}), actor) for agent in agents
        ]
        for agent in agents:
            await agent.log.commit()
        message = answers[0].message if len(answers) == 1 else f"thawed: {', '.join(thawed) or 'nothing'}"
        return answers[0].model_copy(update={"message": message, "data": {"changed": bool(thawed)}})

    async def _receipt(self, stop: _RunningStop) -> StopReceipt:
        for thing in stop.things:
            thing.task = asyncio.create_task(_find_out(thing), name=f"stop {stop.ref}")
        tasks = [thing.task for thing in stop.things if thing.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=FIRST_S)
        complete = all(task.done() for task in tasks)
        receipt = _record(stop, complete=complete)
        if not complete:
            following = asyncio.create_task(_follow(stop, tasks), name=f"stop {stop.ref}")
            self._followed.add(following)
            following.add_done_callback(self._followed.discard)
        return receipt

    async def settled(self) -> None:
        """Return when every stop has its last receipt."""
        while self._followed:
            await asyncio.wait(self._followed)

    async def close(self) -> None:
        """Give stops that are not over a moment to be, then follow them no more."""
        if self._followed:
            await asyncio.wait(self._followed, timeout=CLOSING_S)
        for task in list(self._followed):
            task.cancel()
        await asyncio.gather(*self._followed, return_exceptions=True)


async def _follow(stop: _RunningStop, tasks: list[asyncio.Task[None]]) -> None:
    try:
        await asyncio.wait(tasks, timeout=LAST_S)
    finally:
        for task in tasks:
            task.cancel()
    _record(stop, complete=True)
    with suppress(JournalError):
        await stop.agent.log.commit()


async def _find_out(thing: _StopTarget) -> None:
    thing.item, thing.runs = await thing.seen()


def _standing(state: AgentState) -> tuple[RunState, str, bool, int]:
    return state.run, state.held, state.frozen, state.grants


def _record(stop: _RunningStop, *, complete: bool) -> StopReceipt:
    """Say what has been seen so far; the event is the receipt."""
    agent = stop.agent
    stopped = tuple(thing.item for thing in stop.things if not thing.runs)
    receipt = StopReceipt(
        stop=stop.ref,
        agent=agent.state.agent_id,
        grade=stop.grade,
        changed=stop.acted or any(thing.fresh and not thing.runs for thing in stop.things),
        complete=complete,
        stopped=stopped,
        running=tuple(thing.item for thing in stop.things if thing.runs),
        took_ms=stop.since_ms(),
    )
    agent.append(ev.StopObserved(receipt=receipt), "system", stop.ref)
    agent.commit_soon()
    return receipt


def _told(answers: Sequence[cmd.Receipt], receipts: Sequence[StopReceipt]) -> cmd.Receipt:
    """One answer for all that were stopped."""
    summary = {
        "changed": any(receipt.changed for receipt in receipts),
        "complete": all(receipt.complete for receipt in receipts),
        "receipts": [ev.StopObserved(receipt=receipt).model_dump()["receipt"] for receipt in receipts],
    }
    if len(answers) == 1:
        return answers[0].model_copy(update={"data": summary})
    pairs = zip(receipts, answers, strict=True)
    lines = [f"{receipt.agent}: {answer.message}" for receipt, answer in pairs if answer.ok]
    refused = [answer.message for answer in answers if not answer.ok]
    event = answers[0].event if answers else ""
    return cmd.Receipt(ok=not refused, message="; ".join([*lines, *refused]), event=event, data=summary)


# ------------------------------------------------------------------ what there is to be stopped


def _things(stop: _RunningStop) -> list[_StopTarget]:
    """All that runs or waits to run of an agent at this moment."""
    trees = {tree.name: tree for tree in stop.agent.around.control.processes(stop.agent.state.agent_id)}
    targets = [*_thoughts(stop), *_waiting(stop), *_acting(stop, trees)]
    targets += [_tree(stop, tree) for tree in trees.values() if tree.running]
    return targets


def _does(stop: _RunningStop, grade: StopGrade) -> bool:
    """Whether this stop does what a grade does."""
    return stop.grade.rank >= grade.rank


def _thoughts(stop: _RunningStop) -> list[_StopTarget]:
    """Calls of a model, and background work of the agent's thinking."""
    agent, cuts = stop.agent, _does(stop, StopGrade.CUT)
    state, client, runner = agent.state, agent.around.model, agent.around.background
    targets: list[_StopTarget] = []
    if client is not None and client.calls:
        asked = state.goals[state.current_goal].text if state.current_goal in state.goals else ""
        calls = "a call" if client.calls == 1 else f"{client.calls} calls"
        item = _item(ItemKind.MODEL, state.model or agent.around.model_name, f"{calls} for: {asked}")
        targets.append(_waited(stop, item, client.quiet.wait, "cut off" if cuts else ""))
    for job in state.meta.running if runner is not None else ():
        item = _item(ItemKind.THINKING, job.id, f"{job.task}: {job.why}")
        ended = _drained(agent) if cuts else _never
        targets.append(_waited(stop, item, ended, "cut off" if cuts else ""))
    return targets


def _waiting(stop: _RunningStop) -> list[_StopTarget]:
    """What had been asked for and had not begun."""
    state, holds = stop.agent.state, _does(stop, StopGrade.HOLD)
    targets: list[_StopTarget] = []
    if state.retry is not None:
        about = state.retry.step or state.retry.goal
        words = f"attempt {state.retry.attempt} of {state.retry.of}, after {state.retry.delay_s:.1f} s"
        targets.append(_still(_item(ItemKind.RETRY, about, words), "held"))
    action = state.action
    if action is not None and not action.started:
        item = _item(ItemKind.ACTION, action.id, _call_words(action.command, action.args))
        targets.append(_still(item, "not started" if holds else "comes next", runs=not holds))
    for request in state.requests:
        item = _item(ItemKind.CALL, "", f"yours: {_call_words(request.command, request.args)}")
        targets.append(_still(item, "dropped" if holds else "comes next", runs=not holds, fresh=holds))
    return targets


def _acting(stop: _RunningStop, trees: dict[str, ProcessTree]) -> list[_StopTarget]:
    """The action that runs, where it has no processes of its own."""
    state, pipeline = stop.agent.state, stop.agent.pipeline
    action = state.action
    if action is None or not action.started or pipeline.rests.is_set():
        return []
    tree = trees.get(action.id)
    if tree is not None and tree.running:
        return []
    item = _item(ItemKind.TOOL, action.id, _call_words(action.command, action.args))
    if stop.grade is StopGrade.FREEZE:
        ending = replace(item, fate="ends by itself")
        return [_StopTarget(ending, lambda: _without_processes(stop, item), fresh=False)]
    cuts = _does(stop, StopGrade.CANCEL)
    return [_waited(stop, item, pipeline.rests.wait if cuts else _never, "cancelled" if cuts else "")]


async def _without_processes(stop: _RunningStop, item: StopItem) -> tuple[StopItem, bool]:
    """An action that has nothing to freeze: what a thread does to files is over in a moment.

    One that was about to start a program starts it when it is thawed.
    """
    agent = stop.agent
    with suppress(TimeoutError):
        await asyncio.wait_for(agent.pipeline.rests.wait(), LOOK_S)
    if agent.pipeline.rests.is_set():
        return replace(item, fate="ended by itself", took_ms=stop.since_ms()), False
    trees = agent.around.control.processes(agent.state.agent_id)
    waits = any(tree.name == item.name and not tree.running for tree in trees)
    fate = "frozen before it began" if waits else "ends by itself"
    return replace(item, fate=fate, took_ms=stop.since_ms()), not waits


def _tree(stop: _RunningStop, tree: ProcessTree) -> _StopTarget:
    """A program with all that it started."""
    item = _item(_KINDS[tree.kind], tree.name, tree.words)
    cancelled = stop.grade is StopGrade.CANCEL and tree.kind is not TreeKind.JOB
    if tree.ending or cancelled or stop.grade is StopGrade.KILL:

        async def dead() -> tuple[StopItem, bool]:
            await tree.ended()
            left = tree.remaining
            fate = f"{left} could not be ended" if left else "dead"
            return _counted(stop, item, fate, left or tree.last.alive, tree.last), bool(left)

        return _StopTarget(replace(item, fate="is being ended"), dead, fresh=not tree.ending)
    if stop.grade is StopGrade.FREEZE:
        freezing = replace(item, fate="is being frozen")
        return _StopTarget(freezing, lambda: _frozen(stop, tree, item), fresh=not tree.last.frozen)

    async def goes_on() -> tuple[StopItem, bool]:
        census = await tree.look(LOOK_S)
        fate = "goes on" if tree.kind is TreeKind.JOB else "ends by itself"
        if census is None:
            fate = "does not answer" if tree.running else "ended by itself"
            return _counted(stop, item, fate, 0, tree.last), tree.running
        if census.frozen:
            return _counted(stop, item, "frozen before", census.alive, census), False
        return _counted(stop, item, fate, census.alive, census), True

    return _StopTarget(replace(item, fate="goes on"), goes_on, fresh=False)


async def _frozen(stop: _RunningStop, tree: ProcessTree, item: StopItem) -> tuple[StopItem, bool]:
    """Look until all of a tree stands still, or has had its time for that."""
    until = time.monotonic() + FROZEN_BY_S
    census: Census | None = None
    while time.monotonic() < until:
        census = await tree.look(LOOK_S)
        if not tree.running:
            return _counted(stop, item, "ended by itself", 0, tree.last), False
        if census is not None and not census.going:
            return _counted(stop, item, "frozen", census.alive, census), False
        await asyncio.sleep(AGAIN_S)
    if census is None:
        return _counted(stop, item, "does not answer", 0, tree.last), True
    fate = f"could not be frozen: {census.going} of {census.alive} go on"
    return _counted(stop, item, fate, census.going, census), True


# ------------------------------------------------------------------ small pieces


def _item(kind: ItemKind, name: str, words: str) -> StopItem:
    return StopItem(kind, name, clean_line(words, limit=WORDS), "")


def _call_words(command: str, args: dict[str, object]) -> str:
    values = (str(value) for value in args.values() if value not in (None, ""))
    return f"{command} {' '.join(values)}"


def _counted(stop: _RunningStop, item: StopItem, fate: str, processes: int, census: Census) -> StopItem:
    return replace(item, fate=fate, processes=processes, names=census.names, took_ms=stop.since_ms())


def _waited(
    stop: _RunningStop, item: StopItem, over: Callable[[], Awaitable[object]], fate: str
) -> _StopTarget:
    """Something that has ended when something can be awaited; without a fate it is let be."""

    async def seen() -> tuple[StopItem, bool]:
        if not fate:
            return replace(item, fate="ends by itself"), True
        await over()
        return replace(item, fate=fate, took_ms=stop.since_ms()), False

    return _StopTarget(replace(item, fate="is being ended"), seen, fresh=bool(fate))


def _still(item: StopItem, fate: str, *, runs: bool = False, fresh: bool = False) -> _StopTarget:
    """Something of which nothing has to be waited for."""

    async def seen() -> tuple[StopItem, bool]:
        return replace(item, fate=fate), runs

    return _StopTarget(replace(item, fate=fate), seen, fresh, runs)


async def _never() -> None:
    return None


def _drained(agent: Agent) -> Callable[[], Awaitable[object]]:
    """Waits until all background work of an agent's thinking has ended."""
    runner = agent.around.background

    async def drained() -> None:
        if runner is not None:
            await runner.drain(f"{agent.state.agent_id}:", "the agent was stopped")

    return drained
