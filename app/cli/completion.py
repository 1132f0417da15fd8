"""`pilothouse completion SHELL`: a script with which a shell completes this command."""

from __future__ import annotations

import argparse


def run(options: argparse.Namespace) -> int:
    """Print the script, made from the parser."""
    import shtab

    from app import guide
    from app.cli.main import parser
    from app.cli.options import parsers
    from app.commands.registry import all_commands
    from engine.planning.library.missions import load_missions
    from themes.loading import load_themes

    files = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY, "WORKSPACE": shtab.DIRECTORY}
    offers = {
        "mission": list(load_missions()),
        "theme": sorted(load_themes()[0]),
        "topic": list(guide.topics()),
        "line": sorted(command.name for command in all_commands()),
    }
    whole = parser(whole=True)
    for each in parsers(whole):
        for action in each._actions:
            action.choices = action.choices or offers.get(action.dest)
            if (place := files.get(str(action.metavar))) is not None:
                action.complete = place  # type: ignore[attr-defined]  # shtab's
    print(shtab.complete(whole, options.shell))
    return 0
