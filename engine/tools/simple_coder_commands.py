"""The commands of SimpleCoder: their arguments and what they may change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from engine.core.actions import Reversibility
from engine.core.ports import CommandSpec, Parameter


def _path(description: str, name: str = "path", default: str | None = None, exists: str = "") -> Parameter:
    required = default is None
    return Parameter(name, description, required=required, default=default, kind="path", exists=exists)


_COMMAND = Parameter("command", "Program and arguments, as one string or a list of words", kind="shell")
_JOB = Parameter(
    "job", "Its id, such as j12; the only one that runs when left out", required=False, default=""
)
_VENV = Parameter("venv_name", "Its name: letters, digits, _ . and -", kind="name")


def _reads(name: str, description: str, *parameters: Parameter, example: str = "") -> CommandSpec:
    return CommandSpec(name, description, parameters, example=example or name)


def _changes(name: str, description: str, *parameters: Parameter, example: str) -> CommandSpec:
    undo = Reversibility.WORKSPACE
    return CommandSpec(name, description, parameters, mutates=True, undo=undo, example=example)


def _runs(name: str, description: str, *parameters: Parameter, example: str) -> CommandSpec:
    undo = Reversibility.IRREVERSIBLE
    return CommandSpec(name, description, parameters, mutates=True, undo=undo, example=example)


_SPECS = (
    _reads("ls", "List a directory.", _path("Directory", default=".", exists="directory"), example="ls src"),
    _reads(
        "cd",
        "Change the session's directory.",
        _path("Directory", exists="directory"),
        example="cd my_project",
    ),
    _changes("mkdir", "Make a directory and its parents.", _path("Directory"), example="mkdir my_project"),
    _reads("read", "Read a text file.", _path("File", exists="file"), example="read main.py"),
    replace(
        _changes(
            "write",
            "Write a text file; parents are made, an old file is replaced.",
            _path("File"),
            Parameter("content", "The whole text of the file"),
            example="write main.py print('hello')",
        ),
        overwrites=True,
    ),
    _changes(
        "append",
        "Add text at the end of a file, which is made when it is missing.",
        _path("File"),
        Parameter("content", "The text to add"),
        example="append notes.txt 'one more line'",
    ),
    _changes(
        "replace",
        "Replace every occurrence of a text in a file.",
        _path("File", exists="file"),
        Parameter("old", "The exact text to replace"),
        Parameter("new", "The text to put there"),
        example="replace main.py hello goodbye",
    ),
    _reads(
        "find",
        "Find a text in the files below a directory.",
        Parameter("text", "The exact text to look for"),
        _path("Directory or file", default=".", exists="any"),
        example="find TODO src",
    ),
    _changes(
        "move",
        "Move or rename a file or directory; nothing is overwritten.",
        _path("What to move", "source", exists="any"),
        _path("New name, or the directory to put it in", "target"),
        example="move old.py new.py",
    ),
    _changes(
        "copy",
        "Copy a file; nothing is overwritten.",
        _path("File to copy", "source", exists="file"),
        _path("New name, or the directory to put it in", "target"),
        example="copy a.py b.py",
    ),
    # What is deleted is never guessed, so its path has to be there as it was given.
    _changes("rm", "Delete one file (requires autonomous mode).", _path("File"), example="rm notes.txt"),
    _changes("create_venv", "Create a Python virtual environment.", _VENV, example="create_venv .venv"),
    _reads(
        "activate_venv",
        "Activate a virtual environment for the session.",
        _VENV,
        example="activate_venv .venv",
    ),
    _reads("deactivate_venv", "Deactivate the session's virtual environment."),
    _runs("run", "Run an allowed program without a shell.", _COMMAND, example='run "python main.py"'),
    _runs(
        "start",
        "Start an allowed program in the background; a server needs the network 'on' to listen.",
        _COMMAND,
        example='start "python app.py"',
    ),
    _reads("jobs", "List the background jobs with their newest line."),
    _reads(
        "job_output",
        "Show the newest output of a background job.",
        _JOB,
        Parameter("lines", "How many lines, 1 to 500", type="integer", required=False, default=20),
        example="job_output j12 50",
    ),
    _reads(
        "wait_job",
        "Wait until a background job has ended, or has printed a text.",
        _JOB,
        Parameter("text", "The text, when it is that to wait for", required=False, default=""),
        Parameter("seconds", "For how long at most", type="number", required=False, default=10),
        example="wait_job j12 'Serving HTTP'",
    ),
    _runs("stop_job", "End a background job with all that it started.", _JOB, example="stop_job j12"),
    replace(
        _runs("shell", "Work at a terminal in this sandbox; only the operator can.", example="shell"),
        operator_only=True,
    ),
    CommandSpec(
        "toggle_autonomous_mode",
        "Switch the safety for deleting and overwriting; only the operator can.",
        example="toggle_autonomous_mode",
        operator_only=True,
        request=True,
    ),
    _reads("policy", "Show what programs may do here; only the operator can change it."),
    _reads("help", "List the commands."),
)

COMMANDS: Mapping[str, CommandSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
"""Commands by name, in the order of `help`."""


def help_text() -> str:
    """One line for each command: how it is called and what it does."""
    lines = []
    for spec in COMMANDS.values():
        words = [spec.name, *(p.name if p.required else f"[{p.name}]" for p in spec.parameters)]
        lines.append(f"{' '.join(words):<28} {spec.description}")
    return "\n".join(lines)
