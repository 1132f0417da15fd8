"""Mends a failing test by search: small changes on suspect lines, tried in the jail, kept where they help.

A change is one expression or statement replaced, of a sort that people get wrong often. It is kept when the
failing test passes with it and no test that passed before fails; whether it is right beyond these tests is
for the judge to say. Suspect are lines that failing tests run and passing ones do not (Ochiai's measure). How
plausible a sort of change is, is a number between 0 and 1 that only orders them.
"""

from __future__ import annotations

import ast
import asyncio
import math
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core.offload import in_thread
from engine.improve.code.projects import Project, SlowError, Tests, project_box, run_tests
from engine.improve.code.source import Edit, Function, Source, called_name, parameters, used_names
from engine.improve.judge.box import Box, BoxError, Boxes, BoxLimits
from engine.value import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change."""

    edit: Edit
    line: int
    plausible: float
    words: str
    """What is put in the place of what."""


_COMPARED: dict[type[ast.cmpop], tuple[str, tuple[tuple[str, float], ...]]] = {
    ast.Lt: ("<", (("<=", 0.95), (">", 0.6), (">=", 0.5))),
    ast.LtE: ("<=", (("<", 0.95), (">=", 0.6), (">", 0.5))),
    ast.Gt: (">", ((">=", 0.95), ("<", 0.6), ("<=", 0.5))),
    ast.GtE: (">=", ((">", 0.95), ("<=", 0.6), ("<", 0.5))),
    ast.Eq: ("==", (("!=", 0.7),)),
    ast.NotEq: ("!=", (("==", 0.7),)),
    ast.Is: ("is", (("is not", 0.7),)),
    ast.IsNot: ("is not", (("is", 0.7),)),
    ast.In: ("in", (("not in", 0.7),)),
    ast.NotIn: ("not in", (("in", 0.7),)),
}
"""The sign of each comparison, and what may be meant instead."""
_COMPUTED: dict[type[ast.operator], tuple[tuple[str, float], ...]] = {
    ast.Add: (("-", 0.9), ("*", 0.4)),
    ast.Sub: (("+", 0.9), ("/", 0.2)),
    ast.Mult: (("/", 0.6), ("+", 0.5), ("**", 0.4)),
    ast.Div: (("//", 0.8), ("*", 0.6)),
    ast.FloorDiv: (("/", 0.8), ("%", 0.5)),
    ast.Mod: (("//", 0.6),),
    ast.BitAnd: (("|", 0.6),),
    ast.BitOr: (("&", 0.6),),
}
_PAIRS = (
    *(("min", "max"), ("any", "all"), ("append", "extend"), ("lower", "upper"), ("floor", "ceil")),
    *(("startswith", "endswith"), ("lstrip", "rstrip"), ("union", "intersection")),
)
_WORDS = {
    **{word: other for pair in _PAIRS for word, other in (pair, pair[::-1])},
    "find": "rfind",
    "split": "rsplit",
    "index": "rindex",
}


def mutations(source: Source, lines: frozenset[int]) -> Iterator[Mutation]:
    """The changes on some lines, in the order of the tree.

    Args:
        source: the module.
        lines: lines on which a node has to begin; all nodes of a statement count for its first line.
    """
    owners = {node: function for _, function in source.functions for node in ast.walk(function)}
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.expr, ast.stmt)):
            continue
        statement = source.statement(node)
        if not {node.lineno, statement.lineno} & lines or _is_description(source, node):
            continue
        for edit, plausible, words in _changes(source, node, owners.get(node)):
            yield Mutation(edit, node.lineno, plausible, words)


Change = tuple[Edit, float, str]


def _is_description(source: Source, node: ast.AST) -> bool:
    holder = node if isinstance(node, ast.Expr) else source.parents.get(node)
    return isinstance(holder, ast.Expr) and isinstance(holder.value, ast.Constant)


def _changes(source: Source, node: ast.expr | ast.stmt, owner: Function | None) -> Iterator[Change]:
    match node:
        case ast.Compare():
            yield from _operators(source, node)
        case ast.BinOp():
            for sign, plausible in _COMPUTED.get(type(node.op), ()):
                yield _instead(
                    source, node, f"{_part(source, node.left)} {sign} {_part(source, node.right)}", plausible
                )
            if isinstance(node.op, (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)):
                flipped = f"{_part(source, node.right)} {_sign(source, node)} {_part(source, node.left)}"
                yield _instead(source, node, flipped, 0.5)
        case ast.AugAssign():
            yield from _grown(source, node)
        case ast.Constant():
            yield from _constants(source, node)
        case ast.BoolOp():
            word = " or " if isinstance(node.op, ast.And) else " and "
            yield _instead(source, node, word.join(_part(source, value) for value in node.values), 0.8)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield _instead(source, node, source.of(node.operand), 0.7)
        case ast.If() | ast.While():
            if not isinstance(node.test, (ast.Compare, ast.UnaryOp)):
                yield _instead(source, node.test, f"not ({source.of(node.test)})", 0.6)
        case ast.Call():
            yield from _calls(source, node)
        case ast.Name() | ast.Attribute() if isinstance(node.ctx, ast.Load):
            yield from _used(source, node, owner)
        case ast.Expr() | ast.Assign():
            yield from _returns(source, node, owner)
        case _:
            return


def _instead(source: Source, node: ast.expr | ast.stmt, text: str, plausible: float) -> Change:
    above = source.parents.get(node)
    if isinstance(node, ast.BinOp) and isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Attribute)):
        start, end = source.span(node)
        if source.text[start - 1 : start] != "(" or source.text[end : end + 1] != ")":
            text = f"({text})"
    return source.replace(node, text), plausible, f"`{text}` in the place of `{source.of(node)}`"


def _part(source: Source, node: ast.expr) -> str:
    """An operand as it stands, with the brackets that the tree does not tell."""
    words = source.of(node)
    return (
        f"({words})"
        if isinstance(node, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda))
        else words
    )


def _sign(source: Source, node: ast.BinOp) -> str:
    between = source.text[source.span(node.left)[1] : source.span(node.right)[0]]
    return between.strip(" ()\n\\\t") or "-"


def _operators(source: Source, node: ast.Compare) -> Iterator[Change]:
    before = [node.left, *node.comparators]
    for place, operator in enumerate(node.ops):
        for sign, plausible in _COMPARED[type(operator)][1]:
            signs = [_COMPARED[type(operator)][0] for operator in node.ops]
            signs[place] = sign
            words = _part(source, node.left)
            for operator_, part in zip(signs, before[1:], strict=True):
                words += f" {operator_} {_part(source, part)}"
            yield _instead(source, node, words, plausible)


def _grown(source: Source, node: ast.AugAssign) -> Iterator[Change]:
    target, value = source.of(node.target), source.of(node.value)
    for sign, plausible in _COMPUTED.get(type(node.op), ()):
        yield _instead(source, node, f"{target} {sign}= {value}", plausible)
    yield _instead(source, node, f"{target} = {value}", 0.3)


def _constants(source: Source, node: ast.Constant) -> Iterator[Change]:
    if isinstance(source.parents.get(node), (ast.JoinedStr, ast.FormattedValue)):
        return
    if isinstance(node.value, bool):
        yield _instead(source, node, str(not node.value), 0.7)
    elif isinstance(node.value, int):
        for other in dict.fromkeys((node.value + 1, node.value - 1, 0, 1)):
            if other != node.value:
                near = abs(other - node.value) == 1
                text = str(other) if other >= 0 else f"({other})"
                yield _instead(source, node, text, 0.85 if near else 0.3)


def _calls(source: Source, node: ast.Call) -> Iterator[Change]:
    word = called_name(node)
    if word in _WORDS:
        function = source.of(node.func)
        other = function.removesuffix(word) + _WORDS[word]
        yield _instead(source, node.func, other, 0.6)
    if len(node.args) == 2 and not any(isinstance(arg, ast.Starred) for arg in node.args):
        first, second = node.args
        start, end = source.span(first)[0], source.span(second)[1]
        words = f"{source.of(second)}, {source.of(first)}"
        yield Edit(start, end, words), 0.6, f"`{words}` in the place of `{source.text[start:end]}`"
    above = source.parents.get(node)
    if isinstance(above, ast.Slice) or (isinstance(above, ast.Subscript) and above.slice is node):
        yield from (_off(source, node, 0.75, by) for by in ("- 1", "+ 1"))
    if isinstance(node.func, ast.Name) and word == "range":
        yield from (_off(source, argument, 0.8, by) for argument in node.args[-1:] for by in ("+ 1", "- 1"))
    if (
        isinstance(node.func, ast.Name)
        and word in ("sorted", "reversed", "int", "abs", "round")
        and node.args
    ):
        yield _instead(source, node, source.of(node.args[0]), 0.35)


def _off(source: Source, node: ast.expr, plausible: float, by: str) -> Change:
    return _instead(source, node, f"{_part(source, node)} {by}", plausible)


def _used(source: Source, node: ast.Name | ast.Attribute, owner: Function | None) -> Iterator[Change]:
    above = source.parents.get(node)
    if isinstance(above, ast.Slice) or (isinstance(above, ast.Subscript) and above.slice is node):
        yield from (_off(source, node, 0.75, by) for by in ("- 1", "+ 1"))
    if (
        owner is None
        or not isinstance(node, ast.Name)
        or (isinstance(above, ast.Call) and above.func is node)
    ):
        return
    names = [name for name in ast.walk(owner) if isinstance(name, ast.Name)]
    local = {name.arg for name in parameters(owner)}
    local |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
    for name in sorted(local - {node.id}) if node.id in local else ():
        yield _instead(source, node, name, 0.45)


def _returns(source: Source, node: ast.Expr | ast.Assign, owner: Function | None) -> Iterator[Change]:
    if owner is None or not owner.body or owner.body[-1] is not node:
        return
    if isinstance(node, ast.Expr):
        yield _instead(source, node, f"return {source.of(node.value)}", 0.8)
    elif isinstance(node.targets[0], ast.Name):
        words = f"return {node.targets[0].id}"
        yield source.after(node, words), 0.8, f"`{words}` at its end"


Suspicion = dict[tuple[str, int], float]
"""By file and line, 0 to 1."""
BAD = ("failed", "error")


def suspiciousness(tests: Mapping[str, Mapping[str, Any]], failing: Collection[str]) -> Suspicion:
    """How suspect each line is of what fails in some tests.

    Args:
        tests: the results of all tests, with the lines of each; those of other failing tests do not count.
        failing: ids of the tests that are to be mended.
    """
    bad: Counter[tuple[str, int]] = Counter()
    good: Counter[tuple[str, int]] = Counter()
    for test, result in tests.items():
        count = bad if test in failing else good if result["outcome"] == "passed" else None
        if count is not None:
            count.update((path, line) for path, lines in result.get("lines", {}).items() for line in lines)
    return {
        place: times / math.sqrt(len(failing) * (times + good[place]))
        for place, times in bad.items()
        if times
    }


MOST = 160
"""Changes that are tried for one test."""
_BOXES = 2
"""Boxes that changes are tried in side by side."""
_LEAST_S, _TIMES = 2.0, 4
"""A run of tests with a change may take so many seconds, and times what all tests took without it."""
_LIMITS = BoxLimits(processor_s=600, whole_s=1800.0)
_MODULE_LEVEL = 0.5
"""How suspect a module's own line is, of the most suspect line that uses what it binds."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A change that makes a failing test pass."""

    test: str
    path: str
    """From the project's directory."""
    text: str
    line: int
    words: str
    tried: int
    """Changes that were tried for this test."""
    others: tuple[str, ...] = ()
    """Further tests that pass with it."""


async def repair_test(
    boxes: Boxes,
    root: Path,
    project: Project,
    tests: Tests,
    sources: Mapping[str, Source],
    failing: str,
    rng: random.Random,
    suite_s: float,
) -> list[Repair]:
    """Changes that make one failing test pass, the most plausible first; empty when none of those tried does.

    Args:
        boxes: makes the boxes that changes are tried in.
        root: the directory that paths count from.
        project: the project.
        tests: the results of its tests, with the lines of each; from the same tree.
        sources: the modules that may be changed, by path from the project's directory.
        failing: the test's id.
        rng: breaks ties.
        suite_s: seconds that all tests took.

    Raises:
        SlowError: no change helps, and some took too long to say so.
        BoxError: nothing could be run.
    """
    suspects = suspiciousness(tests, [failing])
    places = {path for path, _ in suspects}
    suspected = {path: source for path, source in sorted(sources.items()) if path in places}
    mutations = await in_thread(_ordered, suspected, suspects, rng)
    if not mutations:
        return []
    passing: list[set[str]] = [set() for _ in mutations]
    late: list[int] = []
    waiting = iter(range(len(mutations)))

    async def try_some() -> None:
        async with project_box(boxes, root, project, limits=_LIMITS) as box:
            for number in waiting:
                path, _, text = mutations[number]
                try:
                    passing[number] = await _passing(
                        box, {project.path(path): text}, failing, project.asked, suite_s
                    )
                except SlowError:
                    late.append(number)
                except BoxError:
                    passing[number] = set()
                if not box.alive:
                    return

    await asyncio.gather(*(try_some() for _ in range(_BOXES)))
    held = {test for test, entry in tests.items() if entry["outcome"] == "passed"}
    bad = {test for test, entry in tests.items() if entry["outcome"] in BAD} - {failing}
    kept = [
        Repair(failing, path, text, change.line, change.words, len(mutations), tuple(sorted(bad & passes)))
        for (path, change, text), passes in zip(mutations, passing, strict=True)
        if failing in passes and held <= passes
    ]
    if late and not kept:
        raise SlowError(f"{len(late)} of {len(mutations)} changes that were tried ran out of time")
    return sorted(kept, key=lambda repair: -len(repair.others))


async def _passing(
    box: Box, files: Mapping[str, str], failing: str, asked: Sequence[str], suite_s: float
) -> set[str]:
    """The tests that pass with other contents of files; none where the failing one still fails."""
    limit_s = _LEAST_S + _TIMES * suite_s
    first = await run_tests(box, [failing], files=files, limit_s=limit_s)
    if first.get(failing, {}).get("outcome") != "passed":
        return set()
    tests = await run_tests(box, asked, files=files, limit_s=limit_s)
    return {test for test, entry in tests.items() if entry["outcome"] == "passed"}


def _ordered(
    sources: Mapping[str, Source], suspects: Suspicion, rng: random.Random
) -> list[tuple[str, Mutation, str]]:
    """The most plausible changes with their texts, each once; what is no Python fails where it is tried."""
    ordered: dict[tuple[str, Edit], tuple[float, Mutation]] = {}
    for path, source in sources.items():
        lines = {line: suspect for (where, line), suspect in suspects.items() if where == path}
        lines |= _module_level(source, lines)
        for change in mutations(source, frozenset(lines)):
            ordered.setdefault((path, change.edit), (lines.get(change.line, min(lines.values())), change))
    entries = [(suspect, path, change) for (path, _), (suspect, change) in ordered.items()]
    rng.shuffle(entries)
    entries.sort(key=lambda entry: -entry[0] * entry[2].plausible)
    return [(path, change, sources[path].with_edit(change.edit)) for _, path, change in entries[:MOST]]


def _module_level(source: Source, lines: Mapping[int, float]) -> dict[int, float]:
    """Lines of constants of the module that suspect lines use, which no test runs as it runs a function."""
    used: dict[str, float] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.lineno in lines:
            used[node.id] = max(used.get(node.id, 0.0), lines[node.lineno])
    owners = {}
    for node in source.tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = {name for target in targets for name in used_names(target)}
            worst = max((used[name] for name in bound & used.keys()), default=0.0)
            if worst and node.lineno not in lines:
                owners[node.lineno] = worst * _MODULE_LEVEL
    return owners
