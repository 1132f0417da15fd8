"""`pilothouse trust`: what in a workspace's folder counts once its user trusts it."""

from __future__ import annotations

import argparse

from app.cli.options import print_error, print_result, workspace_of
from app.commands.settings import Settings
from app.commands.trust import REVOKE, change, shown


def run(options: argparse.Namespace) -> int:
    """Show it, or change whether it counts; exit code 3 while something is not trusted."""
    folder = Settings.load(workspace_of(options)).trust
    assert folder is not None
    word = REVOKE if options.revoke else options.digest
    code, answer, text = change(folder, word) if word else shown(folder)
    return print_error(text) if code == 2 else print_result(options, code, answer, text)
