"""Slownesses of named classes that are put into a module, and benchmarks that show them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from engine.improve.code.source import Edit, Function, Source, called_name, parameters
from tests.benchmarks.evolve.bugs import Edits, inside


def _repeated(source: Source, kind: type[ast.AST]) -> Iterator[tuple[Function, ast.AST]]:
    """Nodes within a loop or comprehension of a function."""
    for function, node in inside(source, kind):
        if source.loops_around(node, function):
            yield function, node


def _uses(tree: ast.AST, name: str) -> list[ast.Name]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]


def membership(source: Source) -> Edits:
    """A set that only grows and is asked becomes a list; a table is made a list before it is asked."""
    for function, node in inside(source, ast.Assign):
        assert isinstance(node, ast.Assign)
        if called_name(node.value) != "set" or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        edits = [source.replace(node.value.func, "list")]  # type: ignore[attr-defined]
        for use in _uses(function, name)[1:]:
            above = source.parents[use]
            if isinstance(above, ast.Attribute) and above.attr == "add":
                edits.append(source.replace(above, f"{name}.append"))
            elif not (isinstance(above, ast.Compare) and use in above.comparators):
                break
        else:
            yield edits
    tables: set[str] = set()
    for place in source.tree.body:
        holds = isinstance(place, ast.Assign) and isinstance(place.value, (ast.Set, ast.Dict))
        if holds or called_name(getattr(place, "value", place)) in ("set", "frozenset", "dict"):
            tables |= {name.id for name in getattr(place, "targets", ()) if isinstance(name, ast.Name)}
    for _, node in inside(source, ast.Compare):
        assert isinstance(node, ast.Compare)
        where = node.comparators[-1]
        if (
            isinstance(node.ops[-1], (ast.In, ast.NotIn))
            and isinstance(where, ast.Name)
            and where.id in tables
        ):
            yield [source.replace(where, f"list({where.id})")]


def repeated_compile(source: Source) -> Edits:
    """A pattern that is compiled once is compiled where it is used."""
    patterns = {
        node.targets[0].id: source.of(node.value)
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        and called_name(node.value) == "compile" and "\n" not in source.of(node.value)
    }  # fmt: skip
    for _, node in inside(source, ast.Name):
        assert isinstance(node, ast.Name)
        if node.id in patterns and isinstance(source.parents[node], ast.Attribute):
            yield [source.replace(node, patterns[node.id])]


def concatenation(source: Source) -> Edits:
    """A list that grows in a loop is made anew in each round."""
    for function, node in _repeated(source, ast.Expr):
        assert isinstance(node, ast.Expr)
        call = node.value
        if called_name(call) == "append" and isinstance(call.func, ast.Attribute):  # type: ignore[attr-defined]
            name = call.func.value  # type: ignore[attr-defined]
            stored = [
                use for use in _uses(function, getattr(name, "id", "")) if isinstance(use.ctx, ast.Store)
            ]
            if len(stored) == 1:
                item = source.of(call.args[0])  # type: ignore[attr-defined]
                yield [source.replace(node, f"{name.id} = {name.id} + [{item}]")]


def repeated_sort(source: Source) -> Edits:
    """What is sorted once is sorted in each round, or for its least item only."""
    for function, node in inside(source, ast.Assign):
        assert isinstance(node, ast.Assign)
        if called_name(node.value) == "sorted" and isinstance(node.targets[0], ast.Name):
            for use in _uses(function, node.targets[0].id):
                if isinstance(use.ctx, ast.Load) and source.loops_around(use, function):
                    yield [source.replace(use, source.of(node.value))]
    for _, node in inside(source, ast.Call):
        assert isinstance(node, ast.Call)
        if (
            called_name(node) in ("min", "max")
            and len(node.args) == 1
            and not isinstance(node.args[0], ast.Starred)
        ):
            rest = source.text[source.span(node.args[0])[0] : source.span(node)[1]]
            yield [source.replace(node, f"sorted({rest}[{0 if called_name(node) == 'min' else -1}]")]
    for function, node in inside(source, ast.Return):
        assert isinstance(node, ast.Return)
        for use in _repeated_names(source, function):
            if isinstance(source.parents[use], (ast.For, ast.comprehension)):
                yield [source.replace(use, f"sorted({use.id})")]


def _repeated_names(source: Source, function: Function) -> Iterator[ast.Name]:
    given = {parameter.arg for parameter in parameters(function)}
    for owner, node in _repeated(source, ast.Name):
        assert isinstance(node, ast.Name)
        if owner is function and isinstance(node.ctx, ast.Load) and node.id in given:
            yield node


def needless_copy(source: Source) -> Edits:
    """A list or text is copied in each round before one item of it is looked at."""
    for _, function in source.functions:
        for use in _repeated_names(source, function):
            above = source.parents[use]
            if (isinstance(above, ast.Subscript) and above.value is use) or called_name(above) == "len":
                yield [source.replace(use, f"list({use.id})")]


def missing_cache(source: Source) -> Edits:
    """A function is no longer cached."""
    for _, function in source.functions:
        for node in function.decorator_list:
            if "cache" in ast.unparse(node).split("(")[0]:
                yield [Edit(source.offset(node.lineno, 0), source.span(node)[1] + 1, "")]


def nested_scan(source: Source) -> Edits:
    """What a table answers at once is looked for in it."""
    for _, node in inside(source, ast.Call):
        assert isinstance(node, ast.Call)
        if called_name(node) == "get" and isinstance(node.func, ast.Attribute) and 0 < len(node.args) < 3:
            table, key = source.of(node.func.value), source.of(node.args[0])
            other = source.of(node.args[1]) if len(node.args) == 2 else "None"
            words = f"next((value for name, value in {table}.items() if name == {key}), {other})"
            yield [source.replace(node, words)]
    for _, node in inside(source, ast.Compare):
        assert isinstance(node, ast.Compare)
        if isinstance(node.ops[0], ast.In) and isinstance(node.comparators[0], ast.Name):
            where, item = source.of(node.comparators[0]), source.of(node.left)
            yield [source.replace(node, f"any(name == {item} for name in {where})")]


_SPECIAL = set(".^$*+?{}[]\\|()")


def fixed_regex(source: Source) -> Edits:
    """A text is looked for as if it were a pattern."""
    for _, node in inside(source, ast.Call):
        assert isinstance(node, ast.Call)
        texts = [
            arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
        ]
        if not texts or set(texts[0]) & _SPECIAL or not isinstance(node.func, ast.Attribute) or node.keywords:
            continue
        text, first = source.of(node.func.value), source.of(node.args[0])
        match node.func.attr, len(node.args):
            case "replace", 2 if len(texts) == 2 and "\\" not in texts[1]:
                yield _with_re(source, node, f"re.sub({first}, {source.of(node.args[1])}, {text})")
            case "startswith", 1:
                yield _with_re(source, node, f"bool(re.match({first}, {text}))")
            case "split", 1:
                yield _with_re(source, node, f"re.split({first}, {text})")
            case _:
                pass
    for _, node in inside(source, ast.Compare):
        assert isinstance(node, ast.Compare)
        item, where = node.left, node.comparators[0]
        fixed = (
            isinstance(item, ast.Constant) and isinstance(item.value, str) and not set(item.value) & _SPECIAL
        )
        if fixed and isinstance(node.ops[0], ast.In) and isinstance(where, ast.Name):
            yield _with_re(source, node, f"bool(re.search({source.of(item)}, {where.id}))")


def _with_re(source: Source, node: ast.expr, words: str) -> list[Edit]:
    edits = [source.replace(node, words)]
    if not any(isinstance(name, ast.Import) and name.names[0].name == "re" for name in source.tree.body):
        after = [
            place for place in source.tree.body
            if isinstance(place, (ast.Import, ast.ImportFrom)) or source.tree.body[0] is place
        ]  # fmt: skip
        edits.append(source.after(after[-1], "import re"))
    return edits


SLOWNESSES: dict[str, Callable[[Source], Edits]] = {
    "membership in a list": membership,
    "repeated compile": repeated_compile,
    "quadratic concatenation": concatenation,
    "repeated sort": repeated_sort,
    "needless copy": needless_copy,
    "missing cache": missing_cache,
    "nested scan": nested_scan,
    "regex for a fixed string": fixed_regex,
}
_SPEND = """
def spend(value):
    return list(value) if hasattr(value, "__next__") else value
"""


def benchmarks(module: str, name: str, inputs: Sequence[tuple[object, ...]]) -> Iterator[str]:
    """Benchmarks of a function, after inputs of its tests: many calls, long lists, long texts."""
    head = f"from {module} import {name}\n\n{_SPEND}\n"
    some = [given for given in inputs if given][:8]
    if some:
        yield (
            f"{head}\nINPUTS = {some!r}\n\n\ndef bench_{name}(size):\n"
            f"    return lambda: [spend({name}(*INPUTS[number % len(INPUTS)])) for number in range(size)]\n"
        )
    for given in some[:4]:
        for place, value in enumerate(given):
            for grown in _grown(value):
                words = [repr(other) for other in given]
                words[place] = "long"
                yield (
                    f"{head}\ndef bench_{name}(size):\n    long = {grown}\n"
                    f"    return lambda: spend({name}({', '.join(words)}))\n"
                )


def _grown(value: object) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield f"({value!r} * size)[: 4 * size]"
        yield f'" ".join(f"{{part}}{{number}}" for number in range(size) for part in [{value!r}])'
    elif isinstance(value, (list, tuple)) and value:
        kind = type(value).__name__
        yield f"{kind}({value!r} * size)[:size]"
        if all(type(item) is int for item in value):
            yield f"{kind}(range(size))"
        if all(isinstance(item, str) for item in value):
            yield f'{kind}(f"{{word}}{{number}}" for number in range(size) for word in {value[:1]!r})'
    elif isinstance(value, dict) and value:
        yield f"dict((f'{{number}}', {next(iter(value.values()))!r}) for number in range(size))"
