"""`pilothouse tokens`: who may use the web pages of `pilothouse serve --web`, and for what."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from app.cli.options import print_answer, print_error, workspace_of
from app.commands.user import operator_name
from app.gateways.web.tokens import Scope, Token, TokenError, TokenStore
from engine.core.control import PROGRAMS

DAY_S = 86_400


def run(options: argparse.Namespace) -> int:
    """Make, list or revoke."""
    store = TokenStore(workspace_of(options))
    try:
        match options.what:
            case "add":
                return _add(options, store)
            case "revoke":
                gone = store.revoke(options.name)
                if not gone:
                    return print_error(
                        f"there is no token {options.name!r}; pilothouse tokens list shows all"
                    )
                print_answer(options, {"revoked": gone}, f"{options.name} revoked; its open pages end")
            case _:
                tokens = store.all()
                text = "\n".join(map(_line, tokens)) or "no tokens; pilothouse tokens add NAME makes one"
                rows = [{**token._asdict(), "digest": token.digest[:8]} for token in tokens]
                print_answer(options, {"tokens": rows}, text)
    except TokenError as error:
        return print_error(str(error))
    return 0


def _add(options: argparse.Namespace, store: TokenStore) -> int:
    if options.name == operator_name():
        return print_error(f"{options.name} is your own name here: name the token after its device")
    if options.name in {*PROGRAMS, "web"}:
        return print_error(f"{options.name} is what a program is called here: choose another name")
    secret = store.add(options.name, Scope(options.scope), seconds=options.days * DAY_S)
    answer = {"name": options.name, "scope": options.scope, "token": secret}
    if sys.stdout.isatty():
        sys.stderr.write("this is shown once; give it to the page that asks for a token\n")
    print_answer(options, answer, secret)
    return 0


def _line(token: Token) -> str:
    until = f"until {_day(token.expires)}" if token.expires else "does not expire"
    return f"{token.name:<20} {token.scope:<8} {token.kind:<8} since {_day(token.created)}, {until}"


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
