"""An AgentSpeak(L) agent in flight: a real engine, journal, sandbox, and whoever answers for its plans."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.agent.agent import Agent
from engine.agent.reasoner.reasoner import Reasoner
from engine.agent.reasoner.saved_mind import make_reasoner, restore, save
from engine.agent.reasoner_deliberation import ReasonerDeliberation
from engine.agent.shared import EngineConfig
from engine.core import commands as cmd
from engine.core import events as ev
from engine.core.journal import Event
from engine.core.ports import SystemClock
from engine.core.state import AgentState
from engine.planning.pgp.requests import AskError, GenerationConfig, Prompt, Reply
from tests.engine.agent.engine_flight import PATIENCE_S, Flight

WAITER = "import pathlib, time\\nwhile not pathlib.Path('go').exists(): time.sleep(0.005)"
"""A program that runs until there is a file `go`; as text of an AgentSpeak(L) program."""
RUN_WAITER = f'run(["python", "-c", "{WAITER}"])'
"""An action that takes until the test says so."""


@dataclass
class Asked:
    """A prompt that waits for an answer."""

    prompt: Prompt
    future: asyncio.Future[str]

    def say(self, text: str) -> None:
        self.future.set_result(text)

    def fail(self, error: Exception) -> None:
        self.future.set_exception(error)


@dataclass
class Oracle:
    """Answers prompts when the test says so."""

    model: str = "oracle"
    asked: list[Asked] = field(default_factory=list)

    async def answer(self, prompt: Prompt, config: GenerationConfig) -> Reply:
        one = Asked(prompt, asyncio.get_running_loop().create_future())
        self.asked.append(one)
        return Reply(await one.future, self.model, input_tokens=3, output_tokens=4)

    async def question(self, number: int = 1) -> Asked:
        """The prompt that was asked as the n-th, once it was."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.asked) < number:
                await asyncio.sleep(0.002)
        return self.asked[number - 1]


class ReasonerFlight(Flight):
    """One workspace whose agent `pilot` has a reasoner."""

    def __init__(self, workspace: Path, oracle: Oracle | None = None) -> None:
        self.oracle = oracle
        config = EngineConfig(answerer=lambda state: oracle) if oracle is not None else None
        super().__init__(workspace, SystemClock(), config)

    async def create(self, program: str, agent: str = "", **config: Any) -> cmd.Receipt:
        return await self.engine.submit(
            cmd.CreateAgent(
                agent=agent or self.agent, agent_type="asl_agent", config={"program": program, **config}
            )
        )

    def live(self, agent: str = "") -> Agent:
        return self.engine._agents[agent or self.agent]

    def mind(self, agent: str = "") -> Reasoner:
        deliberation = self.live(agent).deliberation
        assert isinstance(deliberation, ReasonerDeliberation)
        return deliberation.reasoner

    def rests(self, agent: str = "") -> bool:
        """False while it is in the middle of something, or made again after it was cut off."""
        deliberation = self.live(agent).deliberation
        assert isinstance(deliberation, ReasonerDeliberation)
        return deliberation._reasoner is not None and not deliberation._under_way

    async def poised(self) -> AgentState:
        """The state of the paused agent once it stands before its next step or has none."""
        return await self.until(settled)

    async def idle(self) -> AgentState:
        """The state once the agent has nothing to do by itself."""
        return await self.until(lambda s: not s.has_work and not s.action and not s.requests)

    async def steps(self) -> list[str]:
        """The body steps that ran, in order, as far as they were traced."""
        return [one["step"] for one in await self.traced("StepRun")]

    async def traced(self, record: str = "") -> list[dict[str, Any]]:
        return [
            one
            for said in await self.payloads(ev.ReasonerAdvanced)
            for one in said.trace
            if record in ("", one["record"])
        ]

    async def said(self) -> list[str]:
        """What the program printed."""
        return [line for said in await self.payloads(ev.ReasonerAdvanced) for line in said.said]

    def go(self) -> None:
        """Let the program that waits end."""
        (self.sandbox / "go").touch()


def settled(state: AgentState) -> bool:
    mind = state.mind
    return mind is not None and (mind.idle or mind.poised) and not state.grants and not state.acting


def remembered(live: Reasoner, state: AgentState, flight: ReasonerFlight, past: Sequence[Event]) -> Reasoner:
    """A reasoner made from the journal alone."""
    made = make_reasoner(state, flight.engine.registry, past[0].at)
    for event in past[1:]:
        made.remember(event, ev.payload_of(event))
    return made


def inside(reasoner: Reasoner) -> dict[str, Any]:
    """Everything that a reasoner goes on from."""
    data: dict[str, Any] = json.loads(json.dumps(reasoner.agent.save()))
    procedure = reasoner.making.procedure
    data["tags"] = dict(reasoner.tags)
    data["requests"] = dict(reasoner.requests)
    data["questions"] = {key: repr(one.goal) for key, one in reasoner.making.questions.items()}
    if procedure is not None:
        data["generated"] = repr(procedure.generated)
        data["attempts"] = repr(procedure.attempts)
        data["meta"] = dict(procedure._meta_plans)
        data["open"] = [(repr(one.goal), [i.id for i in one.intentions]) for one in procedure.questions]
    return data


def kept_and_rest_is_the_whole(flight: ReasonerFlight, events: Sequence[Event], every: int = 1) -> int:
    """Keep the mind at every so many events, go on from it, and compare; how often it could be kept."""
    state, registry = flight.live().state, flight.engine.registry
    kept: list[tuple[int, str]] = []
    whole = make_reasoner(state, registry, events[0].at)
    for version, event in enumerate(events[1:], 2):
        whole.remember(event, ev.payload_of(event))
        if version % every == 0 and (data := save(whole)) is not None:
            kept.append((version, json.dumps(data)))
    for version, text in kept:
        again = make_reasoner(state, registry, events[0].at)
        restore(again, json.loads(text))
        for event in events[version:]:
            again.remember(event, ev.payload_of(event))
        assert inside(again) == inside(whole), f"kept at {version}"
    return len(kept)


async def same_mind_from_the_journal(flight: ReasonerFlight, agent: str) -> None:
    """What lives now is what the journal says, and nothing else."""
    live = flight.live(agent)

    def recorded() -> bool:
        """Whether the journal says all that it has done; it may go on while the journal is read."""
        run = flight.mind(agent).run
        return live.state.version == len(past) and (run is None or not run.phases)

    past = await flight.events(agent)
    async with asyncio.timeout(PATIENCE_S):
        while not (flight.rests(agent) and recorded()):
            await asyncio.sleep(0.002)
            past = await flight.events(agent)
    mind = flight.mind(agent)
    assert inside(remembered(mind, live.state, flight, past)) == inside(mind)


__all__ = ["RUN_WAITER", "AskError", "Oracle", "ReasonerFlight", "inside", "same_mind_from_the_journal"]
