"""A call as rules and envelopes see it: what it touches, runs and reaches, by its words alone.

Nothing here looks at the disk or the network, so a replay sees the same. What a program does once it runs is
not in its words: that is the sandbox's to hold.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from engine.domain.action import Undo
from engine.domain.approval import OUTSIDE, Call
from engine.domain.ports import CommandSpec
from engine.domain.state import AgentState
from engine.journal.event import canonical
from engine.sandbox.names import meant, shown

REACHES_NETWORK = frozenset(
    {
        *("curl", "wget", "ssh", "scp", "sftp", "rsync", "ftp", "nc", "ncat", "telnet"),
        *("ping", "dig", "nslookup", "gh", "twine", "npm", "npx", "yarn", "pnpm", "pip"),
        *("pip3", "pipx", "uv", "poetry", "cargo", "gem", "go", "docker", "podman"),
        *("kubectl", "apt", "apt-get", "brew"),
    }
)
"""Programs that are there to reach the network, or mostly do."""
_GIT_REACHES = frozenset({"push", "fetch", "pull", "clone", "ls-remote", "submodule"})
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.I)
_SSH_HOST = re.compile(r"^[\w.-]+@([\w.-]+):")
ANY_HOST = "?"
"""Stands for the hosts of a call that reaches the network and names none."""


def call_of(state: AgentState, spec: CommandSpec) -> Call | None:
    """The action that stands at the gate; None when there is none.

    Args:
        state: the agent's state.
        spec: describes the action's command.
    """
    action = state.action
    if action is None:
        return None
    call = make_call(
        spec,
        action.tool,
        action.args,
        cwd=state.sandbox.cwd,
        goal=action.goal,
        step=action.step,
        cost_usd=cost_of(state, action.goal),
    )
    return replace(call, needs=action.needs, request=action.request, client=action.client)


def make_call(
    spec: CommandSpec,
    tool: str,
    args: Mapping[str, Any],
    *,
    cwd: str = ".",
    goal: str = "",
    step: str = "",
    cost_usd: float = 0.0,
) -> Call:
    """A call of a command from a directory beneath the root."""
    line = next((line_of(args.get(p.name)) for p in spec.parameters if p.kind == "shell"), "")
    paths = tuple(
        dict.fromkeys(
            path_of(str(args[p.name]), cwd)
            for p in spec.parameters
            if p.kind in ("path", "name") and args.get(p.name) is not None
        )
    )
    return Call(
        tool,
        spec.name,
        dict(args),
        undo=Undo(spec.undo),
        changes=spec.mutates or spec.writes,
        paths=paths,
        line=line,
        hosts=tuple(dict.fromkeys(_hosts(line))),
        goal=goal,
        step=step,
        cost_usd=cost_usd,
    )


def cost_of(state: AgentState, goal: str) -> float:
    """US dollars that models took for a goal and those below it."""
    spent = (
        state.spent[one].usd
        for one in state.goals
        if one in state.spent and any(above.id == goal for above in state.lineage(one))
    )
    return sum(spent)


def key_of(call: Call) -> str:
    """The same for calls of one command from one place with the same arguments, and for no others."""
    said = canonical([call.tool, call.command, call.args, list(call.paths)])
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:24]


def path_of(path: str, cwd: str) -> str:
    """A path relative to the root, without `.` and `..`; with `outside` before it where it leaves the root.

    An absolute path counts as leaving it, as a state does not know where the root lies.
    """
    try:
        path = shown(meant(path))
    except (UnicodeEncodeError, ValueError):
        return f"{OUTSIDE}:{path}"
    parts: list[str] = [] if cwd in (".", "") else cwd.split("/")
    if path.startswith("/"):
        return f"{OUTSIDE}:{path}"
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return f"{OUTSIDE}:{path}"
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."


def line_of(command: Any) -> str:
    """A program with its arguments on one line, quoted as a shell would need it; however it was given."""
    if isinstance(command, list | tuple):
        return shlex.join(str(word) for word in command)
    if not isinstance(command, str):
        return ""
    try:
        return shlex.join(shlex.split(command))
    except ValueError:
        return command


def _hosts(line: str) -> Iterator[str]:
    """Hosts in a program's line; `?` where the program reaches the network by itself."""
    if not line:
        return
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    named = [host for url in _URL.findall(line) if (host := _host_of(url))]
    named += [found[1] for word in words if (found := _SSH_HOST.match(word))]
    yield from named
    if not named and _reaches(words):
        yield ANY_HOST


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "") if not url.lower().startswith("file:") else ""
    except ValueError:
        return ANY_HOST


def _reaches(words: list[str]) -> bool:
    names = [word.rsplit("/", 1)[-1] for word in words]
    if not names:
        return False
    modules = {names[at + 1] for at, word in enumerate(words[:-1]) if word == "-m"}
    called = {names[0], *modules}
    if "git" in called:
        return not _GIT_REACHES.isdisjoint(words[1:])
    return not REACHES_NETWORK.isdisjoint(called)
