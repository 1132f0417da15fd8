"""Mastermind: the one that carries out what an operator asks of the system itself.

`Engine` opens it when it is first needed. Commands come in by `carry_out`, everything that happens is an
event of the stream `workspace@mastermind`, and `state` is the fold of it. Source: mindX spec §5, §6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from engine.domain.commands import Receipt
from engine.domain.improvement import Component
from engine.domain.mastermind import JobRecord, MastermindState
from engine.domain.mastermind_commands import ForMastermind
from engine.mastermind.parts import Auditor, Comparer, House, Proposer, SuiteMaker, Worker
from engine.mastermind.state import Spine


class Mastermind:
    """Open it with `open`, and always `close` it."""

    def __init__(self, house: House, spine: Spine) -> None:
        self.house = house
        self.spine = spine
        self.auditors: list[Auditor] = []
        self.proposers: list[Proposer] = []
        self.suites: list[SuiteMaker] = []
        self.comparer: Comparer | None = None
        self._workers: dict[str, tuple[Worker, bool]] = {}

    @classmethod
    async def open(cls, house: House) -> Self:
        """Read what there is; jobs found running are interrupted, changes half written finished or undone.

        Raises:
            JournalError: the stream cannot be read.
        """
        return cls(house, await Spine.open(house.store, house.clock))

    async def close(self) -> None:
        """End every job and what it started."""
        await self.spine.close()

    @property
    def state(self) -> MastermindState:
        """Everything that it knows; `copy` it where it is to stay as it is."""
        return self.spine.state

    @property
    def verbs(self) -> Sequence[str]:
        """The verbs that `StartJob` takes."""
        return tuple(sorted(self._workers))

    def register(self, verb: str, worker: Worker, *, heavy: bool = False) -> None:
        """Let a verb be done by a part: as a job, which is heavy when it takes much of the machine."""
        self._workers[verb] = (worker, heavy)

    async def carry_out(self, command: ForMastermind, actor: str) -> Receipt:
        """Carry out a command; what the receipt says is durable.

        For `StartJob` the receipt comes at once, with the job's id in `data["job"]`.
        """
        return Receipt(ok=False, message=f"{command.do} is not there yet")

    async def wait(self, job: str) -> JobRecord:
        """Wait until a job is over.

        Raises:
            KeyError: there is no such job.
        """
        while not self.state.jobs[job].status.over:
            await self.spine.changed()
        return self.state.jobs[job]

    async def components(self) -> tuple[Component, ...]:
        """Everything that can be improved, by id."""
        found = {one.id: one for auditor in self.auditors for one in await auditor.components()}
        return tuple(found[name] for name in sorted(found))

    async def preview(self, command: ForMastermind) -> Mapping[str, Any]:
        """What a command would do, as JSON; nothing is changed.

        Keys: `does` (a sentence), `component`, `rule`, `paths`, `choices` (ids where several fit), `cost`,
        `asks` (whether the operator will be asked), `reversible`, `wrong` (why it would be refused).
        """
        return {"does": command.do}
