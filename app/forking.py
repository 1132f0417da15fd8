"""A fork as it is typed, and how it is carried out: new agents, changed where that is asked for."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from app.verb import GrammarError
from engine.domain import commands as cmd
from engine.engine import Engine

MOST = 20
"""Forks that one line makes at most."""
ID_LETTERS = 32


@dataclass(frozen=True, slots=True)
class AskedFork:
    """A fork as it was typed."""

    place: str
    name: str = ""
    """The new agent's id; empty for one that is free."""
    times: int = 0
    """How many are made and set running; 0 for one that waits."""
    beliefs: tuple[tuple[str, Any], ...] = ()
    """What each of them is to believe instead."""


def read_fork(rest: str) -> AskedFork:
    """What `fork` is followed by: a place, an id, how often, and what is to be otherwise.

    Raises:
        GrammarError: it cannot be understood.
    """
    head, _, change = f"{rest} ".partition(" with ")
    words = head.split()
    if not words:
        raise GrammarError("where from is missing: an event such as 31, an action a7, a step s4, or here")
    place, name, times = words[0], "", 0
    for word in words[1:]:
        if re.fullmatch(r"x\d{1,3}", word):
            times = int(word[1:])
        elif name:
            raise GrammarError(f"'{word[:40]}' is too much; a change is given by: with belief KEY=VALUE")
        else:
            name = word
    if times > MOST:
        raise GrammarError(f"at most {MOST} forks are made at a time")
    if times > 1 and name:
        raise GrammarError("several forks are named by themselves; leave the id out")
    if name:
        try:
            cmd.check_agent_id(name)
        except ValueError as error:
            raise GrammarError(str(error)) from None
    return AskedFork(place, name, times, _beliefs(change.strip()) if change.strip() else ())


def _beliefs(text: str) -> tuple[tuple[str, Any], ...]:
    found = []
    for part in re.split(r"\s+and belief\s+", text.removeprefix("belief ").strip()):
        key, equals, value = part.partition("=")
        if not text.startswith("belief ") or not equals or not key.strip():
            raise GrammarError("a fork is changed by: with belief KEY=VALUE [and belief KEY=VALUE]")
        try:
            found.append((key.strip(), json.loads(value)))
        except ValueError:
            found.append((key.strip(), value.strip()))
    return tuple(found)


async def carry_out(
    engine: Engine, agent: str, asked: AskedFork, operator: str, here: int | None = None
) -> tuple[list[str], cmd.Receipt]:
    """Make the forks, change them, and let them run where several are wanted; their ids, and the last answer.

    Raises:
        RewindError: the place is none.
    """
    version = await engine.place_of(agent, asked.place, here)
    made: list[str] = []
    receipt = cmd.Receipt(ok=True, message="")
    for _ in range(max(1, asked.times)):
        name = asked.name or await free_name(engine, agent)
        receipt = await engine.submit(cmd.ForkAgent(agent=agent, to=version, name=name), operator=operator)
        if not receipt.ok:
            return made, receipt
        made.append(name)
        for key, value in asked.beliefs:
            changed = await engine.submit(cmd.Believe(agent=name, key=key, value=value), operator=operator)
            if not changed.ok:
                return made, changed
    if asked.times:
        for name in made:
            receipt = await engine.submit(cmd.Run(agent=name, ask=False), operator=operator)
            if not receipt.ok:
                return made, receipt
    return made, receipt


async def free_name(engine: Engine, agent: str) -> str:
    """An id for a fork that no agent has had: `pilot-1-f1`, `pilot-1-f2`, …"""
    taken = await engine.store.streams()
    number = 1
    while (name := f"{agent[: ID_LETTERS - 5]}-f{number}") in taken:
        number += 1
    return name
