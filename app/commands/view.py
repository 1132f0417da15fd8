"""Commands about the cockpit itself, and what looks over the whole workspace: status, search, recap, help."""

from __future__ import annotations

from app.commands.arguments import Rest, Word, agent_names, among, listed, matching
from app.commands.command import Answer, CommandHost, Context, Group, Show, Values, late


def quit_program(host: CommandHost, _values: Values) -> Answer | None:
    """Leave the cockpit; without one there is nothing to leave."""
    return None if host.view("quit") else (0, {"ok": True, "message": "bye"}, "bye")


def _command_names(_context: Context) -> list[tuple[str, str]]:
    return [(each.name, each.help) for each in late("registry:all_commands")()]


command, of_agents = Group("Cockpit"), Group("Agents")
EVENT = matching("[0-9]{1,18}", "'{}' is no number of an event")
COMMANDS = (
    command("search find", Show(late("search:search_open"), "search"), Rest("words", "what to look for")),
    command(
        "recap",
        Show(late("review:recap_answer"), "recap"),
        Word("event", "the number of an event", True, parse=EVENT, default=""),
    ),
    of_agents("agent_list", Show(states=late("statuses:list_agents"))),
    of_agents("agent", Show(view="agent"), Word("agent", "an agent id", shown="ID", offers=agent_names)),
    of_agents("status", Show(states=late("statuses:show_status"))),
    command(
        "theme",
        Show(view="theme"),
        Rest(
            "name",
            "a theme",
            optional=True,
            default="",
            offers=listed(lambda context: context.themes, "theme"),
        ),
    ),
    command("notices", Show(view="notices")),
    command(
        "help ?",
        Show(late("registry:show_help"), "help"),
        Rest("name", "a command", optional=True, shown="COMMAND", default="", offers=_command_names),
    ),
    command(
        "tour",
        Show(view="tour"),
        Word(
            "how",
            "off or next",
            True,
            parse=among(("off", "next"), "tour takes off or next, not '{}'"),
            default="",
        ),
    ),
    command("quit exit q", quit_program),
)
