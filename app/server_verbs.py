"""The words of the command bar about MCP servers of the workspace: leave for one to start."""

from __future__ import annotations

from collections.abc import Iterable

from app.verb import Context, GrammarError, Intent, Reader, Verb, only
from engine.domain.server_commands import DistrustServer, TrustServer
from engine.domain.text import clean_line


def _server(rest: str, context: Context) -> str:
    name = only(rest, "a server of mcp.json")
    known = context.servers
    found = next((one for one in known if one.lower() == name.lower()), None)
    if found is None and known:
        raise GrammarError(
            f"mcp.json names no server '{clean_line(name, limit=40)}'; servers: {', '.join(known)}"
        )
    return found or name


def _read(make: type[TrustServer] | type[DistrustServer]) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        return make.model_validate({"server": _server(rest, context)})

    return read


def _servers(context: Context) -> Iterable[tuple[str, str]]:
    return [(name, clean_line(one.line, limit=120)) for name, one in context.servers.items()]


VERBS: tuple[Verb, ...] = (
    Verb("mcp_trust", "mcp_trust SERVER", "let a server of mcp.json start, now and later (? shows it)",
         _read(TrustServer), "Sandbox", choices=_servers),
    Verb("mcp_distrust", "mcp_distrust SERVER", "let a server of mcp.json not start; where it runs it ends",
         _read(DistrustServer), "Sandbox", choices=_servers),
)  # fmt: skip
