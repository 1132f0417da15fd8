"""Several agents run together, one cycle each in turn, on a clock of their own.

The same programs, environment and seed give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Protocol

from engine.bdi.agent import BdiAgent
from engine.bdi.arithmetic import normalized
from engine.bdi.errors import ProgramError
from engine.bdi.including import load_program
from engine.bdi.intentions import Event, Message, Performative, RunningAgent
from engine.bdi.plans import LoadedProgram
from engine.bdi.rewriting import canonical
from engine.bdi.semantics import Limits, Semantics
from engine.bdi.syntax import Program
from engine.bdi.terms import Struct, Term
from engine.bdi.trace import TraceEvent
from engine.value import dataclass, field


@dataclass(frozen=True, slots=True)
class ActionResult:
    """How an action went."""

    success: bool
    reason: str = ""
    """Why it failed."""
    answer: Struct | None = None
    """The action with values for its variables."""


DONE = ActionResult(True)


class Environment(Protocol):
    """The world that agents perceive and act in."""

    @property
    def actions(self) -> Mapping[str, frozenset[int]]:
        """What can be done, with the numbers of arguments."""

    def percepts(self, agent: str) -> Iterable[Struct] | None:
        """All that an agent perceives now; None when that is what it was."""

    def act(self, agent: str, action: Struct) -> ActionResult:
        """Do something at once."""


@dataclass(slots=True, eq=False, kw_only=True)
class System:
    """Agents, their mailboxes and an environment."""

    environment: Environment | None = None
    semantics: Semantics | None = None
    limits: Limits | None = None
    seed: int = 0
    """Of all chance, an own stream for each agent."""
    tick: float = 1.0
    """Milliseconds that one round takes on the clock; while all wait, time jumps to the next timer."""
    read: Callable[[str], str] | None = None
    """Text of a file, for `.create_agent`; None forbids it."""
    listed: Callable[[str, str], Iterable[str]] | None = None
    """Files in and beneath a folder whose names fit a pattern, for `.list_files`; None forbids it."""
    say: Callable[[str, str], None] = lambda name, text: None
    """Gets an agent's name and what it prints."""
    warn: Callable[[str, str], None] = lambda name, text: None
    """Gets an agent's name and a line for each goal that failed unhandled."""
    tracer: Callable[[TraceEvent], None] | None = None
    agents: dict[str, BdiAgent] = field(default_factory=dict)
    directory: list[tuple[str, Term]] = field(default_factory=list)
    """Agents and the services that they provide."""
    subscriptions: list[tuple[str, Term]] = field(default_factory=list)
    """Agents and the services of which they want to know the providers."""
    now: float = 0.0
    rounds: int = 0
    stopped: bool = False
    asleep: set[str] = field(default_factory=set)
    """Agents that have nothing to do, and had the event of that, `+jag_sleeping`."""
    ends: dict[str, float] = field(default_factory=dict)
    """When agents, and under the empty name all of them, end."""

    def add(self, name: str, program: Program | LoadedProgram) -> BdiAgent:
        """Start an agent.

        Raises:
            ValueError: there is one with this name.
        """
        if name in self.agents:
            raise ValueError(f"there is an agent {name} already")
        agent = BdiAgent(
            name,
            program,
            semantics=self.semantics,
            limits=self.limits,
            actions=dict(self.environment.actions) if self.environment is not None else {},
            say=lambda text: self.say(name, text),
            warn=lambda text: self.warn(name, text),
            tracer=self.tracer,
            random=Random(f"{self.seed} {name}"),
        )
        agent.now = self.now
        agent.society = self
        self.agents[name] = agent
        return agent

    # ------------------------------------------------------------------ Society

    def names(self) -> Iterable[str]:
        """All agents, in the order in which they came."""
        return list(self.agents)

    def create(self, name: str, path: str) -> None:
        """Start an agent from a file; raises ValueError where that cannot be done."""
        self.add(name, self.program(path))

    def program(self, path: str, space: str = "") -> Program:
        """What a file holds; raises ValueError where it cannot be read."""
        if self.read is None:
            raise ValueError("no files are read here")
        try:
            program, problems = load_program(path, self.read, space=space)
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
        if problems:
            raise ProgramError(problems)
        return program

    def files(self, folder: str, pattern: str) -> Iterable[str]:
        """Files in and beneath a folder; raises ValueError where none are listed."""
        if self.listed is None:
            raise ValueError("no files are listed here")
        return self.listed(folder, pattern)

    def clone(self, agent: RunningAgent, name: str) -> None:
        """Start one with the beliefs, rules and plans of another; raises ValueError for a name in use."""
        made = self.add(name, Program())
        for fact in agent.beliefs:  # in its place, for rules stand among them
            made.beliefs.places = fact.place
            made.beliefs.add(fact.plain, fact.annotations)
        made.beliefs.places = agent.beliefs.places
        made.rules = agent.rules
        made.plans.restore(agent.plans, agent.plans.given)

    def end(self, name: str, after: float) -> bool:
        """End an agent, or with an empty name the run behind this round, at once or milliseconds later."""
        if name and name not in self.agents:
            return False
        if after > 0:
            self.ends[name] = self.now + after
            for agent in [self.agents[name]] if name else self.agents.values():
                _signal(agent, Struct("jag_shutting_down", (normalized(after),)))
        elif name:
            del self.agents[name]
        else:
            self.stopped = True
        return True

    def register(self, name: str, service: Term, *, remove: bool = False) -> None:
        """Let the directory say that an agent provides a service, or no longer."""
        row = (name, service)
        if remove and row in self.directory:
            self.directory.remove(row)
        elif not remove and row not in self.directory:
            self.directory.append(row)
            for subscriber, sought in self.subscriptions:
                if sought == service:
                    self._tell_provider(subscriber, name, service)

    def subscribe(self, name: str, service: Term) -> None:
        """Let an agent be told of those that provide a service, now and later."""
        self.subscriptions.append((name, service))
        for provider in self.providers(service):
            self._tell_provider(name, provider, service)

    def providers(self, service: Term) -> Iterable[str]:
        """Agents that provide a service, in the order in which they came."""
        return [name for name, offered in self.directory if offered == service and name in self.agents]

    def _tell_provider(self, receiver: str, provider: str, service: Term) -> None:
        if receiver in self.agents and receiver != provider:
            told = Struct("provider", (Struct(provider), service))
            message = Message("df", receiver, Performative.TELL, canonical(told), 0)
            self.agents[receiver].receive(message)

    # ------------------------------------------------------------------ running

    def run(self, rounds: int | None = None) -> int:
        """Run until nothing is left to do, all is stopped, or so many rounds are over; how many were."""
        begun = self.rounds
        while not self.stopped and (rounds is None or self.rounds - begun < rounds):
            if not self.round() and not self._jump():
                break
        return self.rounds - begun

    @property
    def idle(self) -> bool:
        """True when nothing is left to do and nobody waits for a time."""
        return all(agent.idle and agent.next_timer is None for agent in self.agents.values())

    def round(self) -> bool:
        """One cycle of each agent; False when none had anything to do."""
        self.rounds += 1
        worked = False
        for name in [name for name, due in self.ends.items() if due <= self.now]:
            del self.ends[name]
            self.end(name, 0)
        for name, agent in list(self.agents.items()) if not self.stopped else ():
            if name not in self.agents:
                continue
            if self.environment is not None:
                percepts = self.environment.percepts(name)
                if percepts is not None:
                    agent.perceive(percepts)
            if agent.idle and (name in self.asleep or not self._falls_asleep(agent)):
                continue
            if name in self.asleep:
                self._may_awake(agent)
            report = agent.cycle(self.now)
            worked = worked or report.worked
            for message in report.messages:
                if message.receiver in self.agents:
                    self.agents[message.receiver].receive(message)
            for request in report.requests:
                assert self.environment is not None
                result = self.environment.act(name, request.action)
                agent.feedback(request.number, result.success, result.reason, result.answer)
        self.now += self.tick
        return worked

    def _falls_asleep(self, agent: BdiAgent) -> bool:
        """Note that an agent has nothing to do any more; False where no plan of it is for that."""
        self.asleep.add(agent.name)
        return _signal(agent, _SLEEPING)

    def _may_awake(self, agent: BdiAgent) -> None:
        """Note that an agent has a message or an event other than that it fell asleep."""
        if agent.mail or any(event.literal is not _SLEEPING for event in agent.events):
            self.asleep.discard(agent.name)
            _signal(agent, _AWAKING)

    def _jump(self) -> bool:
        """Let time pass until a wait ends; False when none does."""
        timers = [due for agent in self.agents.values() if (due := agent.next_timer) is not None]
        timers += self.ends.values()
        if not timers:
            return any(not agent.idle for agent in self.agents.values())
        self.now = max(self.now, min(timers))
        for agent in self.agents.values():
            agent.now = self.now
        return True


_SLEEPING, _AWAKING = Struct("jag_sleeping"), Struct("jag_awaking")


def _signal(agent: BdiAgent, literal: Struct) -> bool:
    """Raise an event of a belief that is not held; False where no plan names it."""
    named = agent.plans.names("+", literal.indicator)
    if named:
        agent.post(Event("+", literal))
    return named
