"""`pilothouse missions`: the shipped missions."""

from __future__ import annotations

import argparse

from app.cli.options import print_answer
from engine.planning.library.missions import load_missions


def run(options: argparse.Namespace) -> int:
    """List the shipped missions."""
    missions = load_missions()
    answer = {
        "missions": [
            {"name": m.name, "title": m.title, "goal": m.goal, "network": m.network, "expect": m.expect}
            for m in missions.values()
        ]
    }
    text = "\n".join(f"{m.name:<14} {m.title}\n{'':<14} {m.summary}" for m in missions.values())
    print_answer(options, answer, text)
    return 0
