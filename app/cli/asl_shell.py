"""Programs run in the shell a few cycles at a time, with what they do, and their minds asked in between."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TextIO

from engine.bdi import trace
from engine.bdi.agent import BdiAgent, answer_texts
from engine.bdi.errors import EvaluationError, ProgramError
from engine.bdi.parser import parse_literal
from engine.bdi.printer import shown_text
from engine.bdi.system import System
from engine.core.text import clean

HELP = """enter: one cycle of each agent; NUMBER: so many; run: to the end; quit
?FORMULA: its answers; !GOAL: pursue it; +BELIEF, -BELIEF: change what the agent believes
beliefs, plans, intentions: what it has; NAME: the agent that is asked; help"""
_WORDS = dict(
    line.split(" ", 1) for line in Path(__file__).with_name("asl_trace.txt").read_text("utf-8").splitlines()
)
"""How a change is said, by its type."""


def words_of(record: trace.TraceEvent) -> str:
    """A change in words; empty for one that others say again."""
    if isinstance(record, trace.OptionConsidered) and not record.applicable:
        why = [f"{guard.condition} {'holds' if guard.holds else 'does not'}" for guard in record.guards]
        return f"plan {record.plan} does not apply: {record.reason or ', '.join(why)}"
    if isinstance(record, trace.IntentionChanged) and record.change in ("created", "updated"):
        return ""
    return _WORDS.get(type(record).__name__, "").format(record).rstrip()


class Shell:
    """Reads lines, and does what they say.

    Args:
        system: the agents.
        out: gets what is shown.
    """

    def __init__(self, system: System, out: TextIO) -> None:
        self.system = system
        self._out = out
        self._chosen = ""

    def show(self, record: trace.TraceEvent) -> None:
        """Show a change, if it says something new."""
        if text := words_of(record):
            self.say(f"{record.cycle:>5} {record.agent}: {text}")

    def say(self, text: str) -> None:
        """Show a line."""
        print(clean(text.replace("\n", " ")), file=self._out, flush=True)

    def talk(self) -> None:
        """Read lines until there are no more, the operator leaves, or all agents are stopped."""
        self._chosen = next(iter(self.system.agents), "")
        self.say("enter steps, help says more")
        if sys.stdin.isatty():
            with suppress(ImportError):
                import_module("readline")  # input() then edits lines and gives earlier ones back
        while not self.system.stopped:
            try:
                line = input(f"{self._chosen}> " if sys.stdin.isatty() else "")
            except EOFError:
                return
            if line.strip() in ("quit", "q"):
                return
            try:
                self.enter(line.strip())
            except (ProgramError, EvaluationError, ValueError) as error:
                self.say(str(error))

    def enter(self, line: str) -> None:
        """Do what a line says.

        Raises:
            ProgramError, EvaluationError, ValueError: it cannot be done; the message says why.
        """
        agent = self.system.agents.get(self._chosen)
        if line in ("", "run") or line.isdigit():
            self._run(None if line == "run" else int(line or 1))
        elif line in self.system.agents:
            self._chosen = line
        elif agent is None:
            raise ValueError(f"choose an agent: {', '.join(self.system.agents) or 'none is left'}")
        elif line in _LISTS or line[0] == "?":
            for text in _LISTS[line](agent) if line in _LISTS else answer_texts(agent, line):
                self.say(text)
        elif line[0] in "!+-":
            literal = parse_literal(line[1:].removesuffix("."), "what you typed")
            agent.achieve(literal) if line[0] == "!" else agent.tell(literal, removed=line[0] == "-")
        else:
            raise ValueError(f"'{line[:40]}' is no command; help lists them")

    def _run(self, rounds: int | None) -> None:
        if not self.system.run(rounds) or (rounds is None and not self.system.stopped):
            self.say("nothing is left to do")


def _intentions(agent: BdiAgent) -> Iterator[str]:
    for intention in agent.intentions.values():
        goals = " / ".join(f"{frame.sign}{shown_text(frame.literal)}" for frame in intention.frames)
        yield f"{intention.id}: {goals or (intention.event.text if intention.event else '')}"


_LISTS: dict[str, Callable[[BdiAgent], Iterable[str]]] = {
    "help": lambda agent: HELP.splitlines(),
    "beliefs": lambda agent: [
        shown_text(fact.literal)
        for predicate in agent.beliefs.predicates.values()
        for fact in predicate.all.facts(newest_first=False)
    ],
    "intentions": _intentions,
    "plans": lambda agent: [plan.text.replace("\n", " ") for plan in agent.plans],
}
