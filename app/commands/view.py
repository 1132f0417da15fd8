"""Commands about the cockpit itself, and what looks over the whole workspace: status, search, recap, help."""

from __future__ import annotations

from app.commands.arguments import Rest, Word, agent_names, among, listed, lower, matching
from app.commands.command import Answer, CommandHost, Context, Group, Show, Values, late


def quit_program(host: CommandHost, _values: Values) -> Answer | None:
    """Leave the cockpit; without one there is nothing to leave."""
    return None if host.view("quit") else (0, {"ok": True, "message": "bye"}, "bye")


def _command_names(_context: Context) -> list[tuple[str, str]]:
    return [(each.name, each.help) for each in late("registry:all_commands")()]


command, of_agents = Group("Cockpit"), Group("Agents")
EVENT = matching("[0-9]{1,18}", "'{}' is no number of an event")
SHELL = Word("action", "a shell's action, such as a3", True, parse=lower, default="")
COMMANDS = (
    command(
        "search find",
        "search events, outputs, thoughts, prompts, memories and files",
        Show(late("search:search_open"), "search"),
        Rest("words", "what to look for"),
        examples=("search pump 'not so dry'", "search kind:action agent:pilot-1 pump"),
    ),
    command(
        "recap",
        "what happened since you last looked, or behind the event of this number",
        Show(late("review:recap_answer"), "recap"),
        Word("event", "the number of an event", True, parse=EVENT, default=""),
    ),
    command(
        "play",
        "a recorded shell of yours as it was seen, for asciinema and other players",
        Show(late("review:play_answer"), "play", changes=True),
        SHELL,
    ),
    of_agents("agent_list", "the agents and what they do", Show(states=late("statuses:list_agents"))),
    of_agents(
        "agent",
        "look at another agent",
        Show(view="agent"),
        Word("agent", "an agent id", shown="ID", offers=agent_names),
    ),
    of_agents("status", "how the agent is, and what it waits for", Show(states=late("statuses:show_status"))),
    command(
        "theme",
        "change colours",
        Show(view="theme"),
        Rest(
            "name",
            "a theme",
            optional=True,
            default="",
            offers=listed(lambda context: context.themes, "theme"),
        ),
    ),
    command("notices", "what the last line said lately, in full", Show(view="notices")),
    command(
        "help ?",
        "the commands of this bar",
        Show(late("registry:show_help"), "help"),
        Rest("name", "a command", optional=True, shown="COMMAND", default="", offers=_command_names),
    ),
    command(
        "tour",
        "ten steps for a new user; next passes over one, off leaves",
        Show(view="tour"),
        Word(
            "how",
            "off or next",
            True,
            parse=among(("off", "next"), "tour takes off or next, not '{}'"),
            default="",
        ),
    ),
    command("quit exit q", "leave; agents stay where they are", quit_program),
)
