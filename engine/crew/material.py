"""What the operator gives with a task: data to be checked and counted, and texts that can be quoted.

`metadata.given` is any JSON; `metadata.sources` has texts by the names that evidence cites them by
(ontology spec §1.4, §1.11: a quote has to occur in its source, word for word).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from engine.agents.kinds import ErrorCode
from engine.crew.parts import HandoffError
from engine.crew.state import CrewState
from engine.domain.crew_commands import Bringing
from engine.domain.text import clean_line
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
from engine.thinkers.brief import SOURCES, quotable
from engine.thinkers.spec_methods import GIVEN

HANDOFF = "h-"
"""How the names of handoffs begin; every other source is a file of the sandbox."""
BYTES = 48_000
"""Of all sources of a handoff together: its metadata holds 64 KiB, and turns of a debate say more in it."""
C = TypeVar("C", bound=Bringing)


async def settled(command: C, state: CrewState, root: Path) -> C:
    """The command with what it brings read and put into its metadata.

    Raises:
        HandoffError: a source cannot be read, or they are too long.
    """
    metadata = dict(command.metadata)
    if command.given is not None:
        metadata[GIVEN] = command.given
    if command.sources:
        metadata[SOURCES] = quotable(metadata) | await read(command.sources, state, root)
    return command.model_copy(update={"metadata": metadata, "given": None, "sources": ()})


async def read(names: Sequence[str], state: CrewState, root: Path) -> dict[str, str]:
    """The texts of sources, by name: what handoffs returned, and files beneath the sandbox root.

    Raises:
        HandoffError: one cannot be read, or they are too long; the message names it.
    """
    texts: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = _returned(name, state) if name.startswith(HANDOFF) else None
        texts[name] = text if text is not None else await asyncio.to_thread(_file, name, root)
    size = sum(len(text.encode("utf-8", "replace")) for text in texts.values())
    if size > BYTES:
        raise _refusal(f"the sources have {size:,} bytes together; {BYTES:,} are taken: give parts of them")
    return texts


def _returned(name: str, state: CrewState) -> str:
    found = [one for one in state.handoffs.values() if one.id.startswith(name)]
    if len(found) != 1:
        raise _refusal(f"source {clean_line(name, limit=80)}: {len(found)} handoffs are meant by it")
    output = found[0].result.output if found[0].result is not None else ""
    if not output.strip():
        raise _refusal(f"source {found[0].id}: it has returned nothing that could be quoted")
    return output


def _file(name: str, root: Path) -> str:
    try:
        files = SandboxFiles(root)
        try:
            text = files.read(files.relative(name))
        finally:
            files.close()
    except PathError as error:
        raise _refusal(f"source {clean_line(name, limit=200)}: {error.message}") from error
    if not text.strip():
        raise _refusal(f"source {clean_line(name, limit=200)}: it is empty")
    return text


def _refusal(said: str) -> HandoffError:
    return HandoffError(ErrorCode.BAD_CONTEXT, said)
