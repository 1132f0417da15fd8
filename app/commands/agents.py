"""Commands that create, build and remove agents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from app.commands.arguments import Flag, Prefix, Rest, Word, agent_names, listed, pairs, word
from app.commands.command import Argument, Context, Form, GrammarError, Group, Run, Submit, Values, late
from app.commands.improve import start
from engine.core import campaigns as mm

SKILL = r"\S*/|[.~]|\S*\.[mM][dD](\s|\Z)"
"""Where a skill's place begins behind `agent_create`, and not a type with an id."""


def build_command(context: Context, values: Values) -> mm.StartJob:
    """The job that builds an agent of a skill."""
    options = {name: value for name, value in values.items() if name != "path"}
    path = values["path"].strip("\"'")
    if context.here != Path():  # else it may stay as it was typed
        path = str(context.here / Path(path).expanduser())
    return start("agent_build", path, options)


def _specification(text: str, _context: Context) -> str:
    """The type, the id and the settings of an agent, as far as they can be checked without the engine."""
    if not word(word(text, "an agent type")[1], "an agent id")[0]:
        raise GrammarError("an agent id is missing")
    return str(late("agent_service:checked_specification")(text))


# ------------------------------------------------------------------ choices for completion


def _settings(_context: Context) -> Iterable[tuple[str, str]]:
    """Settings of agents, as they begin."""
    return list(late("agent_service:setting_names")())


AGENT_TYPES = pairs(
    ("bdi_agent", "an agent with goals, beliefs and plans of steps"),
    ("asl_agent", "an agent that an AgentSpeak(L) program runs: asl_agent ID file=PROGRAM.asl"),
    ("acp_agent", "an agent of another program: acp_agent ID command='opencode acp'"),
)
PATHS = listed(lambda context: context.paths)
"""Files and directories beneath the sandbox."""
BUILD: tuple[Argument, ...] = (
    Flag("dry-run", behind=True),
    Flag("type", "TYPE", behind=True),
    Flag("trust", behind=True),
    Rest("path", "the path of a folder with a SKILL.md", shown="PATH", offers=PATHS),
)


def _service(what: str) -> Run:
    """Asks the engine's service for agents."""
    return late(f"agent_service:{what}")


PREVIEW = late("agent_service:preview_service")
command = Group("Agents", "improve", PREVIEW)
COMMANDS = (
    command("build", Submit(build_command), *BUILD),
    command(
        "agent_create",
        _service("create_agent"),
        Rest(
            "specification",
            "an agent type",
            shown="TYPE ID [JSON|SETTING=VALUE … WORDS]",
            parse=_specification,
            offers=AGENT_TYPES,
        ),
        *(Prefix("id", "(?!)", ""), Prefix("setting", "(?!)", "", offers=_settings)),
        forms=(Form(Submit(build_command), BUILD, when=SKILL),),
        in_engine=True,
    ),
    command(
        "agent_delete",
        _service("delete_agent"),
        Word("agent", "an agent id", shown="ID", offers=agent_names),
        in_engine=True,
    ),
)
