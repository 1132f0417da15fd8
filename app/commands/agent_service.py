"""Agents, as the engine's service has them: creating, removing, lists, previews."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import Any

from app.commands.command import Answer, CommandHost, GrammarError, Request, Values, answer_message
from app.commands.mind_query import doubts
from app.commands.preview import VALUE_LIMIT, default_preview, preview_improve, refused_preview
from app.projection.improve_text import Preview
from engine.core.command import Receipt
from engine.core.store.places import read_plain
from engine.core.text import clean_line
from engine.improve.agent_creation import AgentService, RemovalError
from engine.improve.agent_specification import Specification, settings_in, split_request
from engine.improve.agent_types import TYPES, CreationError

PROGRAM_LIMIT = 1_000_000
"""Bytes of a program's file."""
REFUSALS = (CreationError, RemovalError, GrammarError)
Ask = Callable[[AgentService, CommandHost, Values], Awaitable[Answer]]


def checked_specification(text: str) -> str:
    """The type, the id and the settings of an agent, as far as they can be checked without the engine.

    Raises:
        GrammarError: they are wrong.
    """
    try:
        kind, ident, settings = split_request(text)
        settings_in(settings)
    except CreationError as error:
        raise GrammarError(str(error).partition(" · usage: ")[0]) from None
    return f"{kind} {ident} {settings}".rstrip()


def setting_names() -> list[tuple[str, str]]:
    """Settings of agents, as they begin."""
    return [(f"{name}=", about) for kind in TYPES for name, (about, _) in kind.settings.items()]


def with_program_text(here: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the text of the file that its program is in.

    Args:
        here: from where the file's path leads.
        config: as it was typed; the file is its `file`, or that of its `program`.

    Raises:
        GrammarError: the file cannot be read.
    """
    inside = config["program"].pop("file", None) if isinstance(config.get("program"), dict) else None
    if inside is not None and not config["program"]:
        del config["program"]
    named = config.pop("file", inside)
    if named is None:
        return config
    path = here / Path(str(named)).expanduser()
    try:
        text = read_plain(path, PROGRAM_LIMIT).decode("utf-8")
    except OSError as error:
        raise GrammarError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise GrammarError(f"{path}: not a text in UTF-8") from None
    return {"program": text, "source": path.name, **config}


# ------------------------------------------------------------------ what is asked of the engine


def with_service(answer: Ask) -> Callable[[CommandHost, Values], Awaitable[Answer]]:
    """Hands the service over; what it refuses is an answer."""

    @wraps(answer)
    async def run(host: CommandHost, values: Values) -> Answer:
        try:
            return await answer(await host.engine.agent_service(), host, values)
        except REFUSALS as error:
            return answer_message(False, clean_line(str(error)))

    return run


def _understood(service: AgentService, host: CommandHost, values: Values) -> Specification:
    prepare = partial(with_program_text, host.context.here)
    return service.understand(values["specification"], prepare)


@with_service
async def create_agent(service: AgentService, host: CommandHost, values: Values) -> Answer:
    """Create an agent."""
    specification = _understood(service, host, values)
    understood = list(specification.lines)
    receipt = await service.create(specification, operator=host.operator)
    message = clean_line(receipt.message + doubts(specification.config), limit=2_000)
    return 0, {**_flat(receipt), "understood": understood, "message": message}, message


@with_service
async def delete_agent(service: AgentService, host: CommandHost, values: Values) -> Answer:
    """Remove an agent."""
    receipt = await service.remove(values["agent"], operator=host.operator)
    return receipt.data["alive"], _flat(receipt), receipt.message


def _flat(receipt: Receipt) -> dict[str, Any]:
    return {**receipt.model_dump(exclude={"data"}), **receipt.data}


# ------------------------------------------------------------------ previews


def _lines_preview(request: Request, lines: Iterable[str], *, undo: str) -> Preview:
    """A preview whose lines the engine makes, such as the specification of an agent that would be created."""
    shown = tuple(("", clean_line(line, limit=VALUE_LIMIT)) for line in lines)
    return Preview(request.line, request.command.help, (*shown, ("asks", "nothing"), ("undo", undo)))


async def preview_service(host: CommandHost, request: Request) -> Preview:
    """What creating or removing an agent would do."""
    values = request.values
    if request.sends is not None:
        return await preview_improve(host, request)
    service = await host.engine.agent_service()
    try:
        match request.command.name:
            case "agent_create":
                specification = _understood(service, host, values)
                return _lines_preview(request, specification.lines, undo="agent_delete removes it")
            case "agent_delete":
                lines = await service.describe_removal(values["agent"])
                return _lines_preview(request, lines, undo="no: its history stays, its id is used up")
    except REFUSALS as error:
        return refused_preview(request.line, str(error))
    return await default_preview(host, request)
