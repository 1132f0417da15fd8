"""`pilothouse examples [list | copy NAME [DIR]]`: files to begin with, shipped with the program.

Each example is one TOML file in `app/examples`: its name, a title, its files by their paths in a workspace,
and the lines to type next.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.cli.options import print_answer, print_error, workspace_of
from app.commands.settings import Settings
from engine.planning.library.missions import Mission
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
from engine.value import dataclass


class ExampleError(ValueError):
    """It was not copied; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Example:
    """Files that are copied together."""

    name: str
    title: str
    files: Mapping[str, str]
    """Contents by path from the workspace's directory."""
    next: tuple[str, ...]
    """What to type then, in a shell or behind `:` in the cockpit; `{at}` stands for the directory."""


def load_examples() -> dict[str, Example]:
    """The shipped examples by name, in alphabetical order; blocking."""
    entries = sorted((files("app") / "examples").iterdir(), key=lambda entry: entry.name)
    tables = (tomllib.loads(entry.read_text("utf-8")) for entry in entries if entry.name.endswith(".toml"))
    return {each["name"]: Example(**{**each, "next": tuple(each["next"])}) for each in tables}


def crew_missions() -> dict[str, Mission]:
    """The missions of the examples that are crews, each of its example's name; blocking."""
    texts = ((name, each.files.get(f"missions/{name}.toml", "")) for name, each in load_examples().items())
    return {name: Mission.model_validate(tomllib.loads(text)) for name, text in texts if text}


def copy_example(name: str, workspace: Path, *, force: bool = False) -> Example:
    """Copy the files of an example into a workspace; what has to be trusted there counts at once. Blocking.

    Raises:
        ExampleError: there is no such example, a file exists, or it cannot be written.
    """
    examples = load_examples()
    if (example := examples.get(name)) is None:
        near = difflib.get_close_matches(name, examples, n=1)
        hint = f"did you mean {near[0]}?" if near else f"examples: {', '.join(examples)}"
        raise ExampleError(f"there is no example '{name[:40]}'; {hint}")
    taken = [path for path in example.files if os.path.lexists(workspace / path)]
    if taken and not force:
        raise ExampleError(
            f"{workspace / taken[0]} exists, so nothing was copied: --force overwrites, or name another DIR"
        )
    trust = Settings.load(workspace).trust
    contents = {path: text.encode() for path, text in example.files.items()}
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        with closing(SandboxFiles(workspace)) as place:
            for path, content in contents.items():
                place.write(path, content)
    except (OSError, PathError) as error:
        raise ExampleError(f"{name} cannot be copied into {workspace}: {error}") from error
    if trust is not None:
        trust.wrote(contents)
    return example


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """List the examples, or copy one."""
    if options.what == "list":
        if options.name:
            return print_error(
                f"list takes no NAME; to copy one: pilothouse examples copy {options.name[:40]}"
            )
        examples = load_examples().values()
        rows = [{"name": each.name, "title": each.title, "files": [*each.files]} for each in examples]
        lines = [f"{each.name:<16} {each.title}" for each in examples]
        print_answer(
            options, {"examples": rows}, "\n".join([*lines, "", "pilothouse examples copy NAME [DIR]"])
        )
        return 0
    if not options.name:
        return print_error("copy takes a NAME: pilothouse examples lists them")
    workspace = options.directory or workspace_of(options)
    try:
        example = copy_example(options.name, workspace, force=options.force)
    except ExampleError as error:
        return print_error(str(error))
    answer, text = _copied(example, workspace)
    print_answer(options, answer, text)
    return 0


def _copied(example: Example, workspace: Path) -> tuple[dict[str, Any], str]:
    """What was written, and what to type now."""
    at = workspace if not workspace.is_relative_to(Path.cwd()) else workspace.relative_to(Path.cwd())
    paths = [str(at / path) for path in example.files]
    lines = [line.replace("{at}", shlex.quote(str(at))) for line in example.next]
    shown = [f"wrote {path}" for path in paths] + ["", "Next:", *(f"  {line}" for line in lines)]
    return {"ok": True, "example": example.name, "files": paths, "next": lines}, "\n".join(shown)
