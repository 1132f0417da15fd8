"""What of a workspace's folder its user has to trust, and what each part would change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.commands.settings import FILE, read_table, tightened, user_table
from engine.agent.settings import FILE as THRESHOLDS
from engine.agent.settings import ThresholdsError, read_thresholds
from engine.agent.steering.reviews import SETTINGS as REVIEWER
from engine.agent.steering.rules import RuleError, read_policy, rule_text
from engine.core.store.origin import UNREADABLE, count_kinds
from engine.core.store.port import DATA_DIRECTORY
from engine.core.text import clean_line
from engine.core.trust import JOURNAL, FolderTrust, changes
from engine.crew.builder.registration import SPEC
from engine.crew.builder.yaml_text import YamlError, read_mapping
from engine.models.prompt_parts import PARTS
from engine.planning.library.recipe import Recipe, parse_recipes
from engine.tools.mcp.permissions import command_line
from engine.tools.mcp.settings import FILE as SERVERS
from engine.tools.mcp.settings import read as read_servers
from engine.value import dataclass

LINE, LINES = 300, 40
"""Characters of a line, and lines for one file, that are shown."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something of a folder that its user has to trust."""

    path: str
    how: str
    """`new`, `changed` or `gone` since it was trusted; `trusted` where it is as it was."""
    would: tuple[str, ...]
    """What it would change, in lines that are safe to show."""

    @property
    def text(self) -> str:
        """The item with its lines."""
        return "\n".join([f"{clean_line(self.path)} ({self.how})", *(f"  {line}" for line in self.would)])


def items_of(trust: FolderTrust) -> tuple[Item, ...]:
    """Everything in the folder that may loosen, run or persuade, what is not trusted first; blocking."""
    how = dict(changes(trust.mark.files, trust.content.files))
    paths = sorted({*trust.content.files, *how}, key=lambda path: (path not in how, path))
    items = [Item(path, how.get(path, "trusted"), _would(trust, path)) for path in paths]
    if trust.foreign:
        items.insert(0, Item(JOURNAL, "new", tuple(_journal(trust.workspace / JOURNAL))))
    return tuple(items)


def _would(trust: FolderTrust, path: str) -> tuple[str, ...]:
    """What a file would change."""
    if path not in trust.content.files:
        return ("it was trusted and is there no more",)
    if trust.content.files[path] == UNREADABLE:
        return ("it is no plain file that can be read, or there is too much: it cannot be trusted",)
    content = trust.content.texts.get(path)
    if content is None:
        return ("a file of the skill: its agent may read it, and run what is a program",)
    lines = [clean_line(line, limit=LINE) for line in _described(trust, path, content)]
    more = [f"and {len(lines) - LINES} lines more: read the file"] if len(lines) > LINES else []
    return tuple(lines[:LINES] + more) or ("nothing",)


def _described(trust: FolderTrust, path: str, content: bytes) -> Iterator[str]:
    top, _, name = path.partition("/")
    text = content.decode("utf-8", "replace")
    if path == DATA_DIRECTORY:
        yield f"a link: all data of the workspace are read and written in {text!r}"
    elif path == FILE:
        yield from _settings(content, trust)
    elif path == THRESHOLDS:
        yield from _thresholds(text)
    elif path == SERVERS:
        yield from _servers(text)
    elif top == "recipes":
        recipes, wrong = parse_recipes(content, path, by_operator=True)
        yield from (line for recipe in recipes for line in _recipe(recipe))
        yield from map(str, wrong)
    elif top == "prompts":
        part = PARTS.get(name.removesuffix(".md"))
        yield f"changes what a model is told of {part}:" if part else "no model is told of it:"
        yield from (line for line in text.splitlines() if line.strip())
    elif top == "missions":
        yield "begins this where its name is typed:"
        yield from (line for line in text.splitlines() if line.strip())
    else:
        yield from _agent(path, text)


def _settings(content: bytes, trust: FolderTrust) -> Iterator[str]:
    problems: list[str] = []
    table, own = read_table(content, FILE, problems), user_table(trust.home)
    harmless = dict(_leaves(tightened(own, table)))
    usual = dict(_leaves(own))
    for name, value in _leaves({key: held for key, held in table.items() if key != "approvals"}):
        yours = f" (yours: {usual[name]})" if name in usual else ""
        yield f"{name} = {value}{yours}{', which tightens' if name in harmless else ''}"
    if "approvals" in table:
        yield from _approvals(table["approvals"], own.get("approvals"))
    yield from problems


def _approvals(given: Any, own: Any) -> Iterator[str]:
    named = ", ".join(f"{name} = {value}" for name, value in _leaves(own or {}))
    yours = f"yours do not count then: {named}" if own else "you have none of your own"
    if isinstance(given, Mapping) and any(name in REVIEWER for name in given):
        yield "approvals: a reviewer, which does not count in a folder"
        given = {name: value for name, value in given.items() if name not in REVIEWER}
    try:
        policy = read_policy(given)
    except RuleError as error:
        yield f"approvals: {error}"
        return
    yield f"approvals: whatever no rule is about: {policy.default} ({yours})"
    yield from (f"approvals: {rule.answer} {rule_text(rule)}" for rule in policy.rules)


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _thresholds(text: str) -> Iterator[str]:
    try:
        yield from (f"{name} = {value}" for name, value in _leaves(read_thresholds(text)))
    except ThresholdsError as error:
        yield str(error)


def _servers(text: str) -> Iterator[str]:
    known = read_servers(text)
    for server in known.servers:
        does = "connects to" if server.url else "starts"
        yield f"server {server.name} {does} {command_line(server)}, once you permit that too"
    yield from map(str, known.faults)


def _recipe(recipe: Recipe) -> Iterator[str]:
    yield f"{recipe.name}: a goal such as '{recipe.example}' is served by"
    for step in recipe.steps:
        yield f"  {step.op} {step.tool} {step.command} {step.args or ''}".rstrip()


def _agent(path: str, text: str) -> Iterator[str]:
    if not path.endswith(f"/{SPEC}"):
        yield "what its agent is told, or made of"
        return
    try:
        spec = read_mapping(text, typed=True)[0]
    except YamlError as error:
        yield str(error)
        return
    for name in ("id", "type", "description", "tools"):
        if name in spec:
            yield f"{name}: {spec[name]}"


def _journal(path: Path) -> Iterator[str]:
    kinds = count_kinds(path)
    counts = {
        "events": sum(kinds.values()),
        "agents": kinds.get("agent.created", 0),
        "grants": kinds.get("approval.granted", 0) + kinds.get("plan.accepted", 0),
        "memories": kinds.get("memory.stored", 0),
    }
    yield "a journal that you did not begin: " + ", ".join(
        f"{count:,} {name}" for name, count in counts.items()
    )
    yield "until you trust it, its agents ask before every action, and nothing of it is begun again"
    yield "its grants never count before you give them again"
