"""A host that records what a line sends and shows, and does nothing."""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from app.commands.command import Answer, Context, Submit
from app.commands.registry import read_line
from engine.core.command import Command as EngineCommand


class RecordingHost:
    """See `app.commands.command.CommandHost`; it has a screen with every view."""

    engine: Any = SimpleNamespace(workspace=Path("nowhere"), trust=None)
    operator = "tester"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.sent: list[EngineCommand] = []
        self.shown: list[tuple[str, dict[str, object]]] = []

    async def submit(self, command: EngineCommand) -> Answer:
        """Record a command."""
        self.sent.append(command)
        return 0, {}, ""

    def say(self, text: str) -> None:
        """Nothing is said."""

    def view(self, name: str, /, **arguments: object) -> bool:
        """Record a view."""
        self.shown.append((name, arguments))
        return True


def meaning(line: str, context: Context) -> object:
    """What a line means: the command it sends, the view it shows with its arguments, else its values."""
    request = read_line(line, context)
    if request.sends is not None:
        return request.sends
    host = RecordingHost(context)
    try:
        answer = request.run(host, request.values)
        if isawaitable(answer):
            asyncio.run(_finished(answer))
    except AttributeError:
        pass  # it asks the engine, which is not there
    if host.sent:
        return host.sent[0]
    if host.shown:
        name, arguments = host.shown[0]
        return (name, *arguments.values())
    return (request.command.name, *request.values.values())


async def _finished(answer: Any) -> None:
    await answer


def sends(line: str, context: Context) -> bool:
    """Whether a line sends one command of the engine."""
    return isinstance(read_line(line, context).run, Submit)
