"""The commands that a model is offered: a line each, those that the goal may need, and who a call means."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from engine.core.bm25 import Bm25
from engine.core.ports import CommandSpec
from engine.models.lenient import Notes, Schema, fitted
from engine.tools.registry import ToolRegistry, fits, json_schema
from engine.value import dataclass

SIMPLE_CODER = "simple_coder"
BASIC = ("ls", "read", "write", "append", "replace", "mkdir", "move", "find", "run")
"""Commands of the sandbox that are offered for every goal."""
ESSENTIAL = tuple(f"{SIMPLE_CODER}.{name}" for name in ("write", "read", "run", "replace", "ls"))
"""Those that are offered first where there is room for few."""
PROGRAMS = frozenset(
    {"python", "python3", "pip", "pip3", "pytest", "git", "node", "npm", "make", "echo", "cat"}
)
"""A command line that begins with one of these is meant to be run."""
SUMMARY = 90
"""Characters of a command's description."""
_WORD = re.compile(r"[a-z]{2,}|\d+")
_COMMON = frozenset(
    {"the", "an", "of", "to", "in", "and", "or", "is", "it", "its", "that", "this", "with", "for"}
)
_TOOL_KEYS = ("tool_id", "tool")
_COMMAND_KEYS = ("command", "name", "action", "cmd", *_TOOL_KEYS, "type")
_ARGS_KEYS = ("args", "arguments", "input", "parameters", "params")
_OWN = {"id", "description", "depends_on", "type", "function", *_COMMAND_KEYS, *_ARGS_KEYS}


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a tool that a model may be offered."""

    tool: str
    spec: CommandSpec

    @property
    def name(self) -> str:
        """As plans of a model name it."""
        return f"{self.tool}.{self.spec.name}"

    @property
    def schema(self) -> Schema:
        """The JSON Schema of its arguments."""
        return json_schema(self.spec)

    def called(self, name: str, args: str) -> Schema:
        """The JSON Schema of an object that calls it; the names of its two keys are given."""
        properties = {name: {"const": self.name}, args: self.schema}
        closed = {"required": list(properties), "additionalProperties": False}
        return {"type": "object", "properties": properties, **closed}

    @property
    def line(self) -> str:
        """Its name, its arguments, and what it does: `simple_coder.write path content — write a file`."""
        return " ".join((self.name, *self._arguments())) + f" — {_clipped(self.spec.description)}"

    def _arguments(self) -> Iterator[str]:
        required = self.schema.get("required", ())
        for name, inner in self.schema.get("properties", {}).items():
            kind = inner.get("type", "string") if isinstance(inner, dict) else "string"
            shown = name if kind == "string" else f"{name}:{kind}"
            yield shown if name in required else f"[{shown}]"


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SUMMARY else f"{line[: SUMMARY - 1]}…"


def words_of(text: str) -> list[str]:
    """The words of a text that say something, without endings."""
    found = _WORD.findall(re.sub(r"([a-z])([A-Z])", r"\1 \2", text[:8_000]).casefold().replace("_", " "))
    return [_stem(word) for word in found if word not in _COMMON]


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word[: -len(ending)]
    return word


class OfferedCommands:
    """The commands of a registry that agents may call.

    Args:
        registry: every tool that there is.
    """

    def __init__(self, registry: ToolRegistry) -> None:
        self.all = tuple(
            Command(tool.id, spec)
            for tool in registry
            for spec in tool.commands.values()
            if not (spec.operator_only or spec.runs_only)
        )

    def chosen(
        self, text: str, most: int, *, basic: bool = True, first: Iterable[str] = ()
    ) -> tuple[Command, ...]:
        """The basic commands and those that a text is most about, in the order of the registry.

        Where all fit they are all given, so that the prompt stays the same from goal to goal.

        Args:
            text: what is to be done.
            most: how many.
            basic: whether the basic commands of the sandbox come first, whatever the text says; else last.
            first: names of commands that come before all others.
        """
        if len(self.all) <= most:
            return self.all
        scores = self._scores(text)
        always = [
            command for command in self.all if command.tool == SIMPLE_CODER and command.spec.name in BASIC
        ]
        fitting = (each for each in self.all if scores[each.name] > 0)
        ranked = sorted(fitting, key=lambda each: -scores[each.name])
        order = (*always, *ranked) if basic else (*ranked, *always)
        taken = list(dict.fromkeys((*first, *(each.name for each in order))))[:most]
        return tuple(each for each in self.all if each.name in taken)

    def named(self, tool: str, command: str) -> Command | None:
        """A command that may be called; None where there is none of the name."""
        return next((each for each in self.all if (each.tool, each.spec.name) == (tool, command)), None)

    def described(self, text: str, most: int = 5) -> str:
        """Commands that a text is about, with the JSON Schema of their arguments where it says more."""
        commands = self.chosen(text, most, basic=False)
        lines = [each.line + (f" {each.schema}" if each.spec.schema is not None else "") for each in commands]
        return "\n".join(lines) or "no command is about that"

    def _scores(self, text: str) -> dict[str, float]:
        """BM25 of each command's name, arguments and description."""
        texts = [f"{each.spec.name} {each.line} {each.tool}" for each in self.all]
        scores = Bm25([Counter(words_of(each)) for each in texts]).scores(words_of(text))
        return dict(zip((each.name for each in self.all), scores, strict=True))

    # ------------------------------------------------------------------ reading

    def plan(self, value: Any, notes: Notes, *, whole: bool = True) -> Any:
        """The actions of a plan in the notation's own form, ids and dependencies put right.

        Args:
            value: what stands where the plan should.
            notes: gets what was put right.
            whole: whether steps can depend on steps of this plan only.
        """
        if not isinstance(value, list):
            return value
        actions = [self.action(item, f"step {number}", notes) for number, item in enumerate(value, 1)]
        return _numbered(actions, notes, whole=whole)

    def action(self, item: Any, where: str, notes: Notes) -> Any:
        """One action in the notation's own form; as it is where it cannot be told what is meant."""
        if isinstance(item, str):
            item = {"command": item}
        if not isinstance(item, dict):
            return item
        holders = (item[key] for key in ("params", "function") if isinstance(item.get(key), dict))
        inner: dict[str, Any] = next(holders, {})
        kept = {key: str(item[key]) for key in ("id", "description") if item.get(key) not in (None, "")}
        kept |= {key: item[key] for key in ("depends_on",) if item.get(key)}
        flat = {**item, **inner}
        if isinstance(item.get("think"), str) and not any(key in flat for key in _COMMAND_KEYS):
            return {"type": "THINK", **kept, "description": item["think"]}
        thinks = str(item.get("type", "")).upper() == "THINK"
        if thinks or ("description" in kept and not any(key in flat for key in _COMMAND_KEYS)):
            return {"type": "THINK", **kept}
        tool = next((flat[key] for key in _TOOL_KEYS if isinstance(flat.get(key), str)), "")
        texts = (flat[key] for key in _COMMAND_KEYS if isinstance(flat.get(key), str) and flat[key])
        words = next((text for text in texts if text.upper() != "EXECUTE_TOOL"), "")
        if not words or (words == item.get("type") and self._meant("", words) is None):
            return item
        given = next((flat[key] for key in _ARGS_KEYS if key in flat and flat[key] is not inner), None)
        if given is None:
            given = {key: value for key, value in (inner or item).items() if key not in _OWN}
        command, args = self.call(tool, words, given, where, notes)
        return {"type": "EXECUTE_TOOL", **kept, "params": {**command, "args": args}}

    def call(self, tool: str, words: str, given: Any, where: str, notes: Notes) -> tuple[dict[str, str], Any]:
        """Which command a call means, and its arguments by name.

        Args:
            tool: its tool, as far as it was said.
            words: the command, perhaps with arguments behind it.
            given: the arguments.
            where: what is read, for the notes.
            notes: gets what was put right.
        """
        head, *rest = words.split(maxsplit=1)
        command = self._meant(tool, head)
        line = rest[0] if rest else ""
        if command is None and line and head in PROGRAMS and (run := self._meant(SIMPLE_CODER, "run")):
            command, line = run, words
        if command is None:
            plain = {"tool_id": tool or head.partition(".")[0], "command": words if not tool else head}
            return {**plain, "tool_id": plain["tool_id"] if tool or "." in head else SIMPLE_CODER}, given
        spec = command.spec
        if isinstance(given, (str, list)) and given:
            line, given = line or (given if isinstance(given, str) else shlex.join(map(str, given))), {}
        args = dict(given) if isinstance(given, dict) else {}
        if line and not all(parameter.name in args for parameter in spec.parameters if parameter.required):
            notes.append(f"{where}: {words!r:.60} was split into the command and its arguments")
            args |= _by_place(spec, line)
        return {"tool_id": command.tool, "command": spec.name}, _by_name(spec, args, where, notes)

    def _meant(self, tool: str, name: str) -> Command | None:
        """The one command of a name as `simple_coder.mkdir`, `simple_coder__mkdir` or `mkdir`."""
        head, _, last = name.replace("__", ".").rpartition(".")
        named = [each for each in self.all if each.spec.name == last]
        exact = [each for each in named if each.tool in (head, tool)]
        usual = [each for each in named if each.tool == SIMPLE_CODER and not head]
        known = any(each.tool == tool for each in self.all)
        found = exact or ([] if known and tool != name else usual or named)
        return found[0] if len(found) == 1 else None


def _by_place(spec: CommandSpec, line: str) -> dict[str, Any]:
    """Arguments that stand behind a command, in the order of its parameters; options are left out."""
    parameters = spec.parameters
    if any(parameter.kind == "shell" for parameter in parameters[:1]):
        return {parameters[0].name: line}
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    words = [word for word in words if not word.startswith("-")]
    named = {name: value for name, _, value in (word.partition("=") for word in words)}
    by_name = set(named) <= {parameter.name for parameter in parameters}
    if words and by_name and all("=" in word for word in words):
        return named
    *firsts, last = parameters or (None,)
    values = dict(zip((each.name for each in firsts if each), words, strict=False))
    rest = words[len(firsts) :]
    return values | ({last.name: " ".join(rest)} if last is not None and rest else {})


def _by_name(spec: CommandSpec, args: dict[str, Any], where: str, notes: Notes) -> dict[str, Any]:
    """Arguments under the command's own names, as far as one name is left that can be meant."""
    if spec.schema is not None or spec.open:
        return args
    known = {parameter.name: parameter for parameter in spec.parameters}
    unknown = [name for name in args if name not in known]
    free = [parameter for parameter in spec.parameters if parameter.name not in args]
    missing = [parameter for parameter in free if parameter.required] or free
    value = args[unknown[0]] if len(unknown) == 1 else None
    if value not in ("", None) and len(missing) == 1 and fits(missing[0], value):
        notes.append(f"{where}: `{unknown[0]:.40}` was taken as `{missing[0].name}`")
        args = {(missing[0].name if name == unknown[0] else name): value for name, value in args.items()}
    elif unknown and known and not free:
        notes.append(f"{where}: `{', '.join(unknown)[:80]}` was left out")
        args = {name: value for name, value in args.items() if name in known}
    schema = {"type": "object", "properties": json_schema(spec)["properties"]}
    fixed: dict[str, Any] = fitted(args, schema, notes, where) if set(args) & set(known) else args
    return fixed


def _numbered(actions: Sequence[Any], notes: Notes, *, whole: bool) -> list[Any]:
    """Actions with an id of their own each; what they depend on is one of these."""
    if not all(isinstance(action, dict) for action in actions):
        return list(actions)
    given = [action.get("id", "") for action in actions]
    right = all(given) and len(set(given)) == len(given)
    names = {old: old if right else str(number) for number, old in reversed([*enumerate(given, 1)])}
    if not right and any(given):
        notes.append("the ids of the steps were numbered anew")
    out = []
    for number, action in enumerate(actions, 1):
        waits = action.get("depends_on", [])
        waits = [str(each) for each in (waits if isinstance(waits, list) else [waits])]
        kept = [names.get(each, each) for each in waits if each in names or not whole]
        if len(kept) < len(waits):
            notes.append(f"step {number}: dependencies that are not in the plan were left out")
        ident = given[number - 1] if right else str(number)
        changed = {**action, "id": ident, "depends_on": kept}
        out.append(changed if kept else {key: value for key, value in changed.items() if key != "depends_on"})
    return out
