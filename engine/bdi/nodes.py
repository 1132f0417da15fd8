"""The nodes of compiled formulas (spec §1.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.bdi.ordering import in_order
from engine.bdi.patterns import Builder, Env, Matcher
from engine.bdi.problems import ErrorId, EvaluationError
from engine.bdi.queries import Node, Query
from engine.bdi.terms import FALSE, TRUE, Cell, Struct, Term, list_of, rewrite, same
from engine.bdi.unification import undo, unify


class Succeed(Node):
    """`true`."""

    __slots__ = ()

    def step(self, query: Query) -> Node | None:
        return self.next


class Test(Node):
    """A condition that binds nothing."""

    __slots__ = ("holds",)

    def __init__(self, holds: Callable[[Env], bool]) -> None:
        super().__init__()
        self.holds = holds

    def step(self, query: Query) -> Node | None:
        return self.next if self.holds(query.env) else None


class Write(Node):
    """`X = term` where X occurs for the first time."""

    __slots__ = ("make", "slot")

    def __init__(self, slot: int, make: Builder) -> None:
        super().__init__()
        self.slot = slot
        self.make = make

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = self.make(query.env)
        return self.next


class Unify(Node):
    r"""`left = right`; with `bind` false `left \= right`, which binds nothing."""

    __slots__ = ("bind", "left", "right")

    def __init__(self, left: Builder, right: Builder, bind: bool = True) -> None:
        super().__init__()
        self.left, self.right, self.bind = left, right, bind

    def step(self, query: Query) -> Node | None:
        mark = len(query.trail)
        fits = unify(self.left(query.env), self.right(query.env), query.trail)
        if not self.bind:
            undo(query.trail, mark)
        return self.next if fits == self.bind else None


class Initialise(Node):
    """Gives variables that several branches share a cell before the branches part."""

    __slots__ = ("slots",)

    def __init__(self, slots: list[int]) -> None:
        super().__init__()
        self.slots = slots

    def step(self, query: Query) -> Node | None:
        for slot in self.slots:
            query.env[slot] = Cell()
        return self.next


class Either(Node):
    """`a | b | …`."""

    __slots__ = ("branches",)

    def __init__(self, branches: list[Node]) -> None:
        super().__init__()
        self.branches = branches

    def step(self, query: Query) -> Node | None:
        return self._branch(query, 0)

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, int)
        return self._branch(query, state)

    def _branch(self, query: Query, at: int) -> Node:
        if at + 1 < len(self.branches):
            query.leave(self, at + 1, len(query.trail))
        return self.branches[at]


class Absent(Node):
    """`not formula`: the choice it leaves behind is taken when the formula has no answer."""

    __slots__ = ("inner", "slot")

    def __init__(self, inner: Node, slot: int) -> None:
        super().__init__()
        self.inner = inner
        self.slot = slot

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = len(query.choices)
        query.leave(self, None, len(query.trail))
        return self.inner

    def retry(self, query: Query, state: object) -> Node | None:
        return self.next


class Present(Node):
    """Reached when the formula under a `not` has an answer: forget its choices, and fail."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        super().__init__()
        self.slot = slot

    def step(self, query: Query) -> Node | None:
        _forget(query, self.slot)
        return None


def _forget(query: Query, slot: int) -> None:
    """Undo what was bound since the choice was left that a slot names, and forget it with all later ones."""
    height = query.env[slot]
    assert isinstance(height, int)
    undo(query.trail, query.choices[height][3])
    del query.choices[height:]


class Truth(Node):
    """`.eval(T, formula)`: the choice it leaves behind is taken when the formula has no answer."""

    __slots__ = ("inner", "result", "slot")

    def __init__(self, inner: Node, slot: int) -> None:
        super().__init__()
        self.inner = inner
        self.slot = slot
        self.result: Matcher | None = None

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = len(query.choices)
        query.leave(self, None, len(query.trail))
        return self.inner

    def retry(self, query: Query, state: object) -> Node | None:
        return self.judge(query, FALSE)

    def judge(self, query: Query, truth: Struct) -> Node | None:
        """Go on where the result fits."""
        fits = self.result is None or self.result(truth, query.env, query.trail)
        return self.next if fits else None


class Proved(Node):
    """Reached when the formula of a `Truth` has an answer: forget what it has bound and its choices."""

    __slots__ = ("asked",)

    def __init__(self, asked: Truth) -> None:
        super().__init__()
        self.asked = asked

    def step(self, query: Query) -> Node | None:
        _forget(query, self.asked.slot)
        return self.asked.judge(query, TRUE)


class Gather(Node):
    """`.findall`, `.setof` and `.count`: the choice it leaves behind holds what was found so far."""

    __slots__ = ("inner", "result", "slot", "value")

    def __init__(self, inner: Node, slot: int, value: Callable[[list[Term]], Term]) -> None:
        super().__init__()
        self.inner = inner
        self.slot = slot
        self.value = value
        self.result: Matcher | None = None

    def step(self, query: Query) -> Node | None:
        query.env[self.slot] = len(query.choices)
        query.leave(self, [], len(query.trail))
        return self.inner

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, list)
        fits = self.result is None or self.result(self.value(state), query.env, query.trail)
        return self.next if fits else None


class Found(Node):
    """One more answer for a `Gather`; asks for the next."""

    __slots__ = ("slot", "template")

    def __init__(self, slot: int, template: Builder) -> None:
        super().__init__()
        self.slot = slot
        self.template = template

    def step(self, query: Query) -> Node | None:
        height = query.env[self.slot]
        assert isinstance(height, int)
        found = query.choices[height][4]
        assert isinstance(found, list)
        fresh: dict[Term, Cell] = {}
        found.append(rewrite(self.template(query.env), lambda cell: fresh.setdefault(cell, Cell())))
        return None


def as_set(found: list[Term]) -> Term:
    """The list of what was found, in order and each once."""
    kept: list[Term] = []
    for one in in_order(found):
        if not kept or not same(kept[-1], one):
            kept.append(one)
    return list_of(kept)


class Internal(Node):
    """An internal action as a condition; it may have several answers."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: list[Builder]) -> None:
        super().__init__()
        self.name = name
        self.args = args

    def step(self, query: Query) -> Node | None:
        mark = len(query.trail)
        args = tuple([make(query.env) for make in self.args])
        answer = query.reasoner.invoke(self.name, args, query.trail)
        if isinstance(answer, bool):
            return self.next if answer else None
        return self._next_of(answer, query, mark)

    def retry(self, query: Query, state: object) -> Node | None:
        assert isinstance(state, Iterator)
        return self._next_of(state, query, len(query.trail))

    def _next_of(self, answers: Iterator[None], query: Query, mark: int) -> Node | None:
        for _ in answers:
            query.leave(self, answers, mark)
            return self.next
        return None


class Invalid(Node):
    """Something that is no formula."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def step(self, query: Query) -> Node | None:
        raise EvaluationError(ErrorId.EVALUATION_FAILED, f"{self.what} is not a formula")
