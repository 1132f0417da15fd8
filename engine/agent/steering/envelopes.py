"""Calls as rules see them, and envelopes: what an accepted plan may do without asking.

A call is what it touches, runs and reaches by its words alone: nothing here looks at the disk or the network,
so a replay sees the same. What a program does once it runs is not in its words: the sandbox holds that.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from engine.agent.steering.rules import (
    PATHS_LIMIT,
    TEXT_LIMIT,
    RuleError,
    fits,
    fits_path,
    is_amount,
    join_patterns,
    leaves_root,
    literal,
    quoted,
    scalar,
    split_patterns,
    split_words,
)
from engine.core.actions import Reversibility
from engine.core.approvals import OUTSIDE, Call, Envelope
from engine.core.journal import canonical
from engine.core.plan import Op, PlanStep
from engine.core.ports import CommandSpec
from engine.core.reasons import Reason
from engine.core.state import AgentState
from engine.sandbox.paths import name_text, parse_name

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
    about = {"cwd": state.sandbox.cwd, "goal": action.goal, "step": action.step}
    call = make_call(spec, action.tool, action.args, **about, cost_usd=cost_of(state, action.goal))
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
        undo=Reversibility(spec.undo),
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
        state.spent[other].usd
        for other in state.goals
        if other in state.spent and any(above.id == goal for above in state.lineage(other))
    )
    return sum(spent)


def key_of(call: Call) -> str:
    """The same for calls of one command from one place with the same arguments, and for no others."""
    text = canonical([call.tool, call.command, call.args, list(call.paths)])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def path_of(path: str, cwd: str) -> str:
    """A path relative to the root, without `.` and `..`; with `outside` before it where it leaves the root.

    An absolute path counts as leaving it, as a state does not know where the root lies.
    """
    try:
        path = name_text(parse_name(path))
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
    named += [match[1] for word in words if (match := _SSH_HOST.match(word))]
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


LISTS = ("commands", "paths", "programs", "hosts")
SpecOf = Callable[[str, str], CommandSpec | None]
"""Describes a tool's command."""


def leaves(envelope: Envelope, call: Call) -> tuple[Reason, ...]:
    """Which parts of an envelope a call leaves; empty when it stays within."""
    return tuple(_leaves(envelope, call))


def _leaves(envelope: Envelope, call: Call) -> Iterator[Reason]:
    if call.goal != envelope.goal and not envelope.children:
        yield Reason("envelope.other-goal", goal=call.goal, envelope=envelope.goal)
    if envelope.spend_usd is not None and call.cost_usd > envelope.spend_usd:
        yield Reason("envelope.spent", spent=call.cost_usd, limit=envelope.spend_usd)
    for host in call.hosts:
        if not _any_fits(envelope.hosts, host):
            yield Reason("envelope.network") if host == "?" else Reason("envelope.host", host=host)
    if not call.changes and call.undo is Reversibility.NONE:
        return
    if not _any_fits(envelope.commands, call.name):
        yield Reason("envelope.command", command=call.command)
    if call.line and not _any_fits(envelope.programs, call.line):
        yield Reason("envelope.program", program=call.line[:200])
    for path in call.paths:
        if not any(fits_path(pattern, path) for pattern in envelope.paths):
            yield Reason("envelope.path", path=path.removeprefix(f"{OUTSIDE}:"))
    if call.undo is Reversibility.IRREVERSIBLE and not envelope.irreversible:
        yield Reason("envelope.irreversible")


def _any_fits(patterns: Sequence[str], text: str) -> bool:
    return any(fits(pattern, text) for pattern in patterns)


def propose(goal: str, steps: Sequence[PlanStep], spec_of: SpecOf, cwd: str = ".") -> Envelope:
    """The narrowest envelope that covers what is left of a plan.

    Args:
        goal: the plan's goal.
        steps: the plan's steps.
        spec_of: describes commands.
        cwd: the directory in which the next step runs.
    """
    covered: dict[str, dict[str, None]] = {name: {} for name in LISTS}
    irreversible = children = False
    for step in steps:
        if step.status.terminal:
            continue
        children = children or step.op is Op.ACHIEVE
        spec = spec_of(step.tool, step.command) if step.op is Op.ACT else None
        if spec is None:
            continue
        call = make_call(spec, step.tool, step.args, cwd=cwd)
        if call.command == "cd" and call.paths and not call.paths[0].startswith(f"{OUTSIDE}:"):
            cwd = path_of(str(step.args.get("path", ".")), cwd)
        covered["hosts"] |= dict.fromkeys("*" if host == "?" else literal(host) for host in call.hosts)
        if not call.changes and call.undo is Reversibility.NONE:
            continue
        irreversible = irreversible or call.undo is Reversibility.IRREVERSIBLE
        covered["commands"][literal(call.name)] = None
        covered["paths"] |= dict.fromkeys(literal(path) for path in call.paths)
        if call.line:
            covered["programs"][literal(call.line)] = None
    commands, paths, programs, hosts = (tuple(covered[name]) for name in LISTS)
    return Envelope(goal, commands, paths, programs, hosts, irreversible=irreversible, children=children)


# ------------------------------------------------------------------ written and read


def envelope_text(envelope: Envelope) -> str:
    """The envelope on a line, as `given_envelope` takes it."""
    return " ".join(envelope_parts(envelope))


def envelope_parts(envelope: Envelope) -> list[str]:
    """The parts of an envelope that say something, each as it is written."""
    words = [
        f"{name}={quoted(join_patterns(values, '|'))}"
        for name in LISTS
        if (values := getattr(envelope, name))
    ]
    if envelope.spend_usd is not None:
        words.append(f"spend={envelope.spend_usd:g}")
    words += [f"{name}={'yes' if getattr(envelope, name) else 'no'}" for name in ("irreversible", "children")]
    return words


def given_envelope(text: str, base: Envelope) -> dict[str, Any]:
    """The parts of an envelope that a line such as `paths=src/**|tests/** hosts=none` gives.

    Raises:
        RuleError: it cannot be read; the message says what is wrong.
    """
    form = "commands=…|… paths=…|… programs=…|… hosts=…|… spend=USD irreversible=yes|no children=yes|no"
    given: dict[str, Any] = {}
    for word in split_words(text, f"the envelope: {{}}; it is written so: {form}"):
        name, equals, value = word.partition("=")
        if not equals:
            raise RuleError(f"'{word[:60]}' is no NAME=VALUE; an envelope is written so: {form}")
        given[name] = value
        if name in LISTS:
            given[name] = [] if value == "none" else split_patterns(value, "|")
        elif name in ("irreversible", "children", "spend"):
            given[name] = None if name == "spend" and value == "none" else scalar(value)
    envelope_of(given, base)
    return given


def envelope_of(given: Mapping[str, Any], base: Envelope) -> Envelope:
    """An envelope from an object of JSON; what it leaves out is the base's.

    Raises:
        RuleError: something in it is wrong.
    """
    known = (*LISTS, "spend", "irreversible", "children")
    if unknown := sorted(str(name) for name in given if name not in known):
        raise RuleError(f"an envelope has no '{unknown[0][:40]}'; it has: {', '.join(known)}")
    changes: dict[str, Any] = {}
    for name in LISTS:
        if name in given:
            changes[name] = _patterns(given[name], name)
    if leaves_root(changes.get("paths", ())):
        raise RuleError("paths of an envelope are globs beneath the sandbox root, without a leading / and ..")
    for name in ("irreversible", "children"):
        if name in given:
            if not isinstance(given[name], bool):
                raise RuleError(f"{name} is yes or no, not {given[name]!r}")
            changes[name] = given[name]
    if "spend" in given:
        spend = given["spend"]
        if spend is not None and not is_amount(spend):
            raise RuleError(f"spend is an amount in US dollars or none, not {spend!r}")
        changes["spend_usd"] = spend
    return replace(base, **changes)


def _patterns(given: object, name: str) -> tuple[str, ...]:
    good = isinstance(given, list | tuple) and len(given) <= 10 * PATHS_LIMIT
    texts: Iterable[object] = given if isinstance(given, list | tuple) else ()
    if not good or not all(isinstance(text, str) and 0 < len(text) <= TEXT_LIMIT for text in texts):
        raise RuleError(f"{name} is a list of globs, or none")
    return tuple(str(text) for text in texts)
