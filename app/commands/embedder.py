"""Who embeds memories, so that they are found by what they mean: how that is, and choosing another."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib

from app.commands.command import Answer, CommandHost, Values, answer_message
from app.commands.settings import FILE, user_table
from app.commands.settings_tables import MemoryTable
from app.commands.user import user_home
from engine.api.workspace_engine import WorkspaceEngine
from engine.core.memory import MemoryStatus
from engine.core.text import clean_line
from engine.memory.embedder_choice import EmbedderChoice
from engine.memory.embedding import EmbedderError
from engine.memory.errors import MemoryFault

NONE = "none"
WORDS_ALONE = "memories are found by words alone"
_TABLE = re.compile(r"\s*\[\s*memory\s*\]\s*(#.*)?")
OURS = ("embedder", "model")
_OURS = re.compile(rf"\s*({'|'.join(OURS)})\s*=")


def choice_of(what: str, model: str) -> EmbedderChoice | None:
    """What was named, with the key that environment and settings have.

    Raises:
        EmbedderError: it cannot be used.
    """
    table = MemoryTable.model_validate(user_table(user_home()).get("memory", {}))
    kept = table.model if table.embedder == what else None
    choice = EmbedderChoice.chosen(what, model or kept, table.key_file, os.environ)
    if choice is not None and choice.missing:
        raise EmbedderError(choice.missing)
    return choice


def keep(choice: EmbedderChoice | None) -> None:
    """Write the choice into the user's own settings; blocking.

    Raises:
        EmbedderError: it cannot be written.
    """
    path = user_home() / FILE
    values = {"embedder": choice.name if choice is not None else NONE}
    if choice is not None and choice.model:
        values["model"] = choice.model
    try:
        path = path.resolve()  # settings are often a link to where they are kept
        text = settings_with(path.read_text(encoding="utf-8") if path.exists() else "", values)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(text, encoding="utf-8")
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except (OSError, ValueError, RuntimeError) as error:
        lines = ", ".join(_lines(values))
        raise EmbedderError(
            f"{path} was left as it is ({error}). Write there yourself: [memory] {lines}"
        ) from None


def settings_with(text: str, values: dict[str, str]) -> str:
    """Settings in which these stand in `[memory]`; all else, comments too, is as it was.

    Raises:
        ValueError: they are no TOML, or `[memory]` is written in a way that this cannot change.
    """
    lines = text.splitlines()
    at = next((place for place, line in enumerate(lines) if _TABLE.fullmatch(line)), None)
    if at is None:
        lines += [*([""] if lines else []), "[memory]", *_lines(values)]
    else:
        end = next((n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
        kept = [line for line in lines[at + 1 : end] if not _OURS.match(line)]
        lines[at + 1 : end] = [*_lines(values), *kept]
    before, written = tomllib.loads(text), "\n".join(lines) + "\n"
    rest = {name: value for name, value in before.get("memory", {}).items() if name not in OURS}
    if tomllib.loads(written) != {**before, "memory": {**rest, **values}}:
        raise ValueError("its table [memory] cannot be changed line by line")
    return written


def _lines(values: dict[str, str]) -> list[str]:
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]


def describe(choice: EmbedderChoice | None, status: MemoryStatus | None) -> Answer:
    """How it is, in words; the status is None where no engine runs."""
    facts = {"embedder": str(choice) if choice is not None else NONE}
    if choice is None:
        return answer_message(True, WORDS_ALONE, **facts)
    if status is None:
        return answer_message(True, f"{choice} embeds memories while an engine runs", **facts)
    counts = {"vectors": status.vectors, "waiting": status.waiting}
    words = f"{choice}: {status.vectors:,} texts embedded, {status.waiting:,} wait"
    note = clean_line(status.fault or ("" if status.waiting else status.note))
    return answer_message(True, "; ".join(filter(None, (words, note))), **facts, **counts, note=status.note)


async def embedder(host: CommandHost, values: Values) -> Answer:
    """The command of the bar; see `embed_by`."""
    return await embed_by(host.engine, values["what"], values["model"])


async def embed_by(engine: WorkspaceEngine, what: str, model: str = "") -> Answer:
    """Say how memories are embedded; where something is named, by that from now on."""
    memory = engine.memory
    if memory is None:
        return await engine.line(" ".join(filter(None, ("embedder", what, model))), "")
    try:
        if what:
            choice = await asyncio.to_thread(choice_of, what, model)
            await asyncio.to_thread(keep, choice)
            await memory.use_embedder(choice)
        await memory.ready()
    except MemoryFault as error:
        return answer_message(False, str(error))
    return describe(memory.embedder, memory.status)


async def keep_alone(what: str, model: str) -> EmbedderChoice | None:
    """Write it down where no engine runs; the choice that holds.

    Raises:
        EmbedderError: it cannot be used, or not be written.
    """
    present = user_table(user_home()).get("memory", {}).get("embedder", NONE)
    choice = await asyncio.to_thread(choice_of, what or str(present), model)
    if what:
        await asyncio.to_thread(keep, choice)
    return choice
