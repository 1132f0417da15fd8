"""Mechanical fixes: what they mend, what they leave alone, and that nothing else of the text changes."""

from __future__ import annotations

import ast
import random

import pytest

from engine.improve.code.inputs import broken_promises, draw_arguments, example_arguments, odd_arguments
from engine.improve.code.mutations import guards, mutations
from engine.improve.code.repair import suspiciousness
from engine.improve.code.slow_code import Slowness, fix_slow_place, slow_places
from engine.improve.code.source import Source


def mended(text: str, kind: Slowness) -> str | None:
    source = Source(text)
    (place,) = [place for place in slow_places(source) if place.kind is kind]
    return fix_slow_place(source, place)


def value(text: str, *arguments: object) -> object:
    room: dict[str, object] = {}
    exec(compile(text, "module", "exec"), room)
    function = room["work"]
    assert callable(function)
    return function(*arguments)


@pytest.mark.parametrize(
    ("kind", "text", "arguments", "has"),
    [
        (
            Slowness.MEMBERSHIP,
            "def work(xs):\n    seen = []  # ä ü\n    for x in xs:\n        if x not in seen: # once\n"
            "            seen.append(x)\n    return seen\n",
            ([3, 1, 3, 2, 1],),
            "seen_set.add(x)",
        ),
        (
            Slowness.MEMBERSHIP,
            "def work(xs: list[int], known: list[int]):\n    known_set = 0\n"
            "    return [x for x in xs if x in known]\n",
            ([3, 1, 9], [1, 3]),
            "known_set2 = set(known)",
        ),
        (
            Slowness.CONCATENATION,
            "def work(xs):\n    text = 'a'\n    for x in xs:\n        if x:\n"
            "            text += str(x) + ','\n    return text\n",
            ([1, 0, 2],),
            '"".join(text_pieces)',
        ),
    ],
)
def test_a_slow_place_is_mended_and_does_the_same(
    kind: Slowness, text: str, arguments: tuple[object, ...], has: str
) -> None:
    after = mended(text, kind)
    assert after is not None
    assert has in after
    assert value(after, *arguments) == value(text, *arguments)
    assert kind not in {place.kind for place in slow_places(Source(after))}
    kept = [line for line in text.splitlines() if line in after.splitlines()]
    assert len(kept) >= len(text.splitlines()) - 2


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            Slowness.MEMBERSHIP,
            "def work(xs):\n    a = []\n    for x in xs:\n        if x in a:\n            a.remove(x)\n"
            "        a.append(x)\n    return a\n",
        ),
        (
            Slowness.MEMBERSHIP,
            "def work(xs, f):\n    a = []\n    for x in xs:\n        f(a)\n        if x not in a:\n"
            "            a.append(x)\n    return a\n",
        ),
        (
            Slowness.CONCATENATION,
            "def work(xs):\n    t = ''\n    for x in xs:\n        t += x\n        print(t)\n    return t\n",
        ),
    ],
)
def test_what_cannot_be_seen_through_is_left_alone(kind: Slowness, text: str) -> None:
    assert mended(text, kind) is None


def test_a_list_is_asked_faster_and_still_has_items_without_a_hash() -> None:
    text = (
        "import os\n\n@staticmethod\ndef other(): ...\n\ndef work(xs):\n    seen = []\n    for x in xs:\n"
        "        if x not in seen:\n            seen.append(x)\n    return seen\n"
    )
    after = mended(text, Slowness.MEMBERSHIP)
    assert after is not None
    for items in ([[1], [1], 1, {2}, frozenset({2}), frozenset({3}), {3}, 1.0], [3, 1, 3], []):
        assert value(after, items) == value(text, items)
    many = list(range(2_000))
    assert value(after, many + many) == many


def test_only_what_repeats_is_slow() -> None:
    text = (
        "def work(xs: list[int], y):\n    if y in xs:\n        return ''\n    text = ''\n    text += 'a'\n"
        "    for x in xs:\n        y += x\n    return text\n"
    )
    assert slow_places(Source(text)) == []


def test_suspicion_points_at_what_only_failing_tests_run() -> None:
    tests = {
        "good": {"outcome": "passed", "lines": {"m.py": [1, 2]}},
        "bad": {"outcome": "failed", "lines": {"m.py": [1, 3]}},
        "other": {"outcome": "failed", "lines": {"m.py": [4]}},
    }
    found = suspiciousness(tests, ["bad"])
    assert found[("m.py", 3)] == 1.0
    assert 0.7 < found[("m.py", 1)] < 0.71
    assert ("m.py", 4) not in found


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("a < b", "a <= b"),
        ("a + b * 2", "a - b * 2"),
        ("(a + b) * 2", "(a - b) * 2"),
        ("a[1:b]", "a[1:b - 1]"),
        ("a and b", "a or b"),
        ("not a", "a"),
        ("divmod(a, b)", "divmod(b, a)"),
        ("range(a)", "range(a + 1)"),
        ("min(a, b)", "max(a, b)"),
        ("a if b else 0", "a if a else 0"),
        ("a - b", "b - a"),
        ("a == 2", "a == 3"),
        ("a[len(a)]", "a[len(a) - 1]"),
        ("a * b + 1", "a * (b + 1)"),
        ("not a or b", "not (a or b)"),
        ("f(1, b, a)", "f(1, a, b)"),
    ],
)
def test_usual_mistakes_are_among_the_mutations(wrong: str, right: str) -> None:
    source = Source(f"def work(a, b):\n    return {wrong}\n")
    texts = {source.edited([one.edit]) for one in mutations(source, frozenset({2}))}
    wanted = ast.dump(ast.parse(f"def work(a, b):\n    return {right}\n"))
    assert wanted in {ast.dump(ast.parse(text)) for text in texts if text is not None}


def test_a_missing_return_is_among_the_mutations() -> None:
    source = Source("def work(a):\n    total = a + 1\n")
    assert "def work(a):\n    total = a + 1\n    return total\n" in {
        source.edited([one.edit]) for one in mutations(source, frozenset({2}))
    }


def test_a_promised_exception_that_nothing_raises_is_asked_about_with_odd_inputs() -> None:
    text = (
        'def loose(x: str):\n    """Read.\n\n    Raises:\n        OrderError: it is none.\n    """\n'
        "    return int(x)\n\ndef plain(x):\n    return int(x)\n"
    )
    loose, plain = [function for _, function in Source(text).functions]
    assert broken_promises(loose) == ["OrderError"]
    assert broken_promises(plain) == []
    assert odd_arguments(loose)[0] == "('',)"


def test_inputs_are_drawn_around_the_tests_and_the_same_for_a_seed() -> None:
    tests = Source(
        "import pytest\n@pytest.mark.parametrize(('v', 'w'), [([1, 2], 3), ([4], 5)])\n"
        "def test_f(v, w):\n    assert f(v) == w\n    g('x')\n"
    )
    known = example_arguments([tests])
    assert known["f"] == [([1, 2],), ([4],)]
    function = Source("def f(v):\n    return sum(v)\n").functions[0][1]
    typed = Source("def h(a: dict[str, list[float]], b: int = 2):\n    return a\n").functions[0][1]
    drawn = [
        [draw_arguments(one, known["f"], random.Random(3)) for _ in range(3)] for one in (function, function)
    ]
    assert drawn[0] == drawn[1]
    assert all(isinstance(given[0], list) for given in drawn[0] if given)
    given = draw_arguments(typed, [], random.Random(1))
    assert given is not None
    assert isinstance(given[0], dict)
    assert draw_arguments(Source("def k(x):\n    return x\n").functions[0][1], [], random.Random(1)) is None


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("def work(a, b='-'):\n    return a\n", "def work(a, b='_'):\n    return a\n"),
        (
            "def work(a):\n    try:\n        return f(a)\n    except KeyError:\n        pass\n",
            "def work(a):\n    try:\n        return f(a)\n    except KeyError:\n        raise\n",
        ),
        (
            "def work(a):\n    try:\n        a = f(a)\n        return a\n    except OSError:\n        pass\n",
            "def work(a):\n    a = f(a)\n    return a\n",
        ),
        (
            "def work(a):\n    return a[0]\n",
            "def work(a):\n    if not a:\n        return a\n    return a[0]\n",
        ),
    ],
)
def test_mistakes_of_statements_are_among_the_changes(wrong: str, right: str) -> None:
    source, lines = Source(wrong), frozenset(range(1, 8))
    texts = {source.with_edit(one.edit) for one in (*mutations(source, lines), *guards(source, lines))}
    assert ast.dump(ast.parse(right)) in {ast.dump(ast.parse(text)) for text in texts}


@pytest.mark.parametrize(
    ("slow", "quick"),
    [
        ("return sorted(a)[-1]", "return max(a)"),
        ("return list(a)[2]", "return a[2]"),
        ("return any(x == b for x in a)", "return (b in a)"),
        ("return next((v for k, v in a.items() if k == b), 0)", "return a.get(b, 0)"),
        ("return sum(1 for x in a if x == b)", "return a.count(b)"),
        ("return re.sub('x', 'y', a)", "return a.replace('x', 'y')"),
        ("return re.sub('x.', 'y', a)", ""),
        (
            "return [c for c in b if c in sorted(a)]",
            "a_sorted = sorted(a)\n    return [c for c in b if c in a_sorted]",
        ),
        ("return re.compile('x+').sub(a, b)", "return _WORK_PATTERN.sub(a, b)"),
        ("return work(a - 1) + work(a - 2)", "return work(a - 1) + work(a - 2)"),
    ],
)
def test_a_slow_form_has_a_quick_one(slow: str, quick: str) -> None:
    source = Source(f"import re\n\n\ndef work(a, b):\n    {slow}\n")
    texts = [fix_slow_place(source, place) or "" for place in slow_places(source)]
    assert any(quick in text for text in texts) if quick else not texts
