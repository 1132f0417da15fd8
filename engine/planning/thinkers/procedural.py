"""The procedural thinker: plans by the plan library alone, with no model and no cost.

For a clause that no recipe covers it names the nearest examples.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from engine.core.goals import Goal
from engine.core.plan import Op, PlanStep, Provenance, Uncovered
from engine.core.recovery import FailureKind
from engine.core.text import clean_line
from engine.core.thinking import Decision, DecisionRequest, PlanProposal, PlanRequest, ThinkingError
from engine.planning.library.matcher import Match, MatchAttempt, Matcher
from engine.planning.library.parameters import Reference, Shape, Value, fault, fill, value_of
from engine.planning.library.plan_library import PlanLibrary
from engine.planning.library.recipe import Recipe, RecipeStep
from engine.planning.thinkers.clauses import Clause, Context, split_clauses
from engine.value import dataclass

_CLIP = 80
"""Characters compared; bounds the time whatever a clause holds."""


def nearest_examples(clause: str, examples: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The examples most like a clause, nearest first, by shared words and then by shared letters."""
    given = clause[:_CLIP].casefold()
    words = set(given.split())
    matcher = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(given)

    def likeness(example: str) -> float:
        other = example[:_CLIP].casefold()
        others = set(other.split())
        matcher.set_seq1(other)
        return len(words & others) / len(words | others) + matcher.ratio()

    unique = dict.fromkeys(examples)
    return tuple(sorted(unique, key=likeness, reverse=True)[:count])


NEEDS_A_MODEL = "this step needs a model to think about it: put a command in its place, or settle it by hand"
MAX_GOAL = 8_000
"""Longest goal that is read, in characters."""
MAX_CLAUSES = 100
"""Most clauses of one goal."""

_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_LONE_SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_NO_RECIPE = "no recipe says this: put it as in one of the examples, or add a recipe to recipes/"


class ProceduralThinker:
    """Covers a goal clause by clause with recipes; what no recipe says it lists as uncovered."""

    name = "procedural"
    free = True

    def __init__(self, library: PlanLibrary) -> None:
        self._library = library

    async def plan(self, request: PlanRequest) -> PlanProposal:
        """Propose the steps of all clauses that recipes cover, in the order of the clauses.

        Never raises for what the goal's text holds.
        """
        # A long goal takes longer than the event loop may be kept waiting.
        return await asyncio.to_thread(self.propose, request)

    async def decide(self, request: DecisionRequest) -> Decision:
        """Nothing can be decided by recipes.

        Raises:
            ThinkingError: always; it says what to do.
        """
        raise ThinkingError(FailureKind.TOOL_UNAVAILABLE, NEEDS_A_MODEL)

    def propose(self, request: PlanRequest) -> PlanProposal:
        """As `plan`, blocking."""
        text = request.goal.text
        if why := _unreadable(text):
            return self._refuse(text, why)
        clauses = split_clauses(text, self._library)
        if not clauses:
            return self._refuse(text, "the goal names nothing to do: say in plain English what is to be done")
        if len(clauses) > MAX_CLAUSES:
            why = f"the goal has {len(clauses)} clauses and at most {MAX_CLAUSES} are read"
            return self._refuse(text, f"{why}: split it into several goals")
        plan = _Draft(self._library, Context(request.session))
        for clause in clauses:
            plan.cover(clause)
        return PlanProposal(tuple(plan.steps), tuple(plan.uncovered), self.name)

    def examples(
        self, text: str, count: int, *, steps: int = 4
    ) -> tuple[tuple[str, tuple[PlanStep, ...]], ...]:
        """Goals of the library that are most like a text, nearest first, with their plans.

        Args:
            text: a goal.
            count: how many.
            steps: most steps of a plan that is shown.
        """
        near = nearest_examples(text, (recipe.example for recipe in self._library.recipes), 2 * count)
        plans = ((example, self.propose(PlanRequest(Goal("", example)))) for example in near)
        whole = [(e, plan.steps) for e, plan in plans if not plan.uncovered and 0 < len(plan.steps) <= steps]
        return tuple(whole[:count])

    def _refuse(self, text: str, why: str) -> PlanProposal:
        clause = text.strip() if len(text) <= 200 else text[:199] + "…"
        examples = nearest_examples(clause, (recipe.example for recipe in self._library.recipes))
        return PlanProposal((), (Uncovered(clause, 1, why, examples),), self.name)


def _unreadable(text: str) -> str:
    """Why a goal's text is not read at all; empty when it is."""
    if len(text) > MAX_GOAL:
        why = f"the goal has {len(text)} characters and at most {MAX_GOAL} are read"
        return f"{why}: split it into several goals"
    if not any(char.isalnum() for char in text):
        return "the goal holds no words: say in plain English what is to be done"
    if match_ := _UNREADABLE.search(text):
        character = f"a control character (U+{ord(match_[0]):04X}) at {match_.start() + 1}"
        return f"the goal holds {character}: remove it"
    return ""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A recipe that says what a clause says."""

    recipe: Recipe
    matcher: Matcher
    match: Match

    @property
    def rank(self) -> tuple[int, int, bool]:
        """How specific it is: literal words, then few free words, then the operator's own recipes."""
        return self.match.literals, -self.match.loose, self.recipe.by_operator


class _UnmetError(Exception):
    """A recipe that matches cannot be used; the message says why."""


class _Draft:
    """A plan in the making."""

    def __init__(self, library: PlanLibrary, context: Context) -> None:
        self.steps: list[PlanStep] = []
        self.uncovered: list[Uncovered] = []
        self._library = library
        self._context = context
        self._index = 0

    def cover(self, clause: Clause) -> None:
        """Add the steps for a clause, or say why there are none."""
        rest: Clause | None = clause
        while rest is not None:
            rest = self._cover_beginning(rest)

    def _cover_beginning(self, clause: Clause) -> Clause | None:
        """Cover a clause, or its longest beginning that a recipe covers; answers what is left of it."""
        self._index += 1
        if unclosed := next((word for word in clause.words if word.unclosed), None):
            # Where the quoted text should end is anyone's guess, so no recipe may guess it.
            self._miss(clause, f"the quote that starts at “{unclosed.text[:30]}” is not closed: close it")
            return None
        tried = [
            (recipe, matcher, matcher.run(clause.words, clause.stops))
            for recipe, matcher in self._library.starting_with(clause.words[0].key)
        ]
        whole = [_Candidate(r, m, attempt.match) for r, m, attempt in tried if attempt.match]
        if whole:
            self._use(clause, whole)
            return None
        end = max((attempt.prefix.end for _, _, attempt in tried if attempt.prefix), default=0)
        if end:
            starts = [_Candidate(r, m, a.prefix) for r, m, a in tried if a.prefix and a.prefix.end == end]
            self._use(Clause(clause.words[:end], clause.source), starts)
            return clause.after(end)
        self._miss(clause, _why(clause, tried))
        return None

    def _use(self, clause: Clause, candidates: list[_Candidate]) -> None:
        """Add the steps of the most specific candidate that can be used."""
        why = ""
        for candidate in sorted(candidates, key=lambda c: c.rank, reverse=True):
            try:
                values = self._values(clause, candidate)
            except _UnmetError as unmet:
                why = why or str(unmet)
            else:
                self._add(clause, candidate.recipe, values)
                return
        self._miss(clause, why)

    def _values(self, clause: Clause, candidate: _Candidate) -> dict[str, Value]:
        values: dict[str, Value] = {"project": self._context.project, **candidate.recipe.defaults}
        types = candidate.matcher.pattern.parameters
        for name, first, last in candidate.match.captures:
            kind = types[name]
            value = value_of(kind, clause.words[first : last + 1], clause.source)
            if isinstance(value, Reference):
                meant = self._context.resolve(value, kind)
                if meant is None:
                    raise _UnmetError(f"nothing named before is what “{value.text}” can mean: say the name")
                value = (meant,) if kind.shape is Shape.LIST else meant
            if why := fault(kind, value):
                raise _UnmetError(why)
            values[name] = value
        return values

    def _add(self, clause: Clause, recipe: Recipe, values: dict[str, Value]) -> None:
        for kind, template in recipe.names.items():
            self._context.name(kind, _named(template, values))
        provenance = Provenance("procedural", recipe.id, clause.text, self._index)
        ids: dict[str, tuple[str, ...]] = {}
        for step in recipe.steps:
            needed = tuple(i for name in step.depends_on for i in ids[name])
            given: list[str] = []
            for item in _items(values[step.each]) if step.each else ("",):
                made = self._step(step, {**values, "item": item}, needed, provenance)
                given.append(made.id)
            if step.id:
                ids[step.id] = tuple(given)

    def _step(
        self, step: RecipeStep, values: Mapping[str, Value], needed: tuple[str, ...], provenance: Provenance
    ) -> PlanStep:
        made = PlanStep(
            id=str(len(self.steps) + 1),
            description=clean_line(fill(step.description, values), limit=200),
            op=Op(step.op),
            tool=step.tool,
            command=step.command,
            args={name: _filled(value, values) for name, value in step.args.items()},
            depends_on=needed,
            provenance=provenance,
        )
        self.steps.append(made)
        if made.op is Op.ACT and made.tool == "simple_coder" and made.command == "cd":
            self._context.enter(str(made.args.get("path", ".")))
        return made

    def _miss(self, clause: Clause, why: str) -> None:
        examples = nearest_examples(clause.text, (recipe.example for recipe in self._library.recipes))
        self.uncovered.append(Uncovered(clause.text, self._index, why, examples))


def _named(template: str, values: Mapping[str, Value]) -> str:
    """What a recipe names; of a list, its last item."""
    lone = _LONE_SLOT.fullmatch(template)
    value = values[lone[1]] if lone else ""
    return value[-1] if isinstance(value, tuple) else fill(template, values)


def _items(value: Value) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _filled(value: Any, values: Mapping[str, Value]) -> Any:
    if isinstance(value, str):
        return fill(value, values)
    if isinstance(value, dict):
        return {name: _filled(item, values) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    return value


def _why(clause: Clause, tried: Sequence[tuple[Recipe, Matcher, MatchAttempt]]) -> str:
    """Why no recipe covers a clause: the nearest one's missing or unfit parameter when that is known."""
    furthest = max((attempt.reached for _, _, attempt in tried), default=0)
    reaching = [entry for entry in tried if entry[2].reached == furthest]
    reaching.sort(key=lambda entry: entry[2].literals, reverse=True)
    missing = [_words_for(recipe, attempt.missing) for recipe, _, attempt in reaching if attempt.missing]
    if missing:
        open_ended = len(clause.words) == 1 and len({recipe.id for recipe, _, _ in reaching}) > 1
        return f"{f'what to {clause.words[0].key}' if open_ended else missing[0]} is missing"
    for recipe, matcher, attempt in reaching:
        kind = matcher.pattern.parameters.get(attempt.refused)
        # After nothing but the verb, a word without quotes says more likely something else.
        if kind is not None and (attempt.literals > 1 or kind.name != "quoted"):
            what = _words_for(recipe, attempt.refused)
            return f"“{clause.words[furthest].text[:60]}” cannot be {what} ({kind.rule})"
    return _NO_RECIPE


def _words_for(recipe: Recipe, parameter: str) -> str:
    return recipe.missing.get(parameter, f"the {parameter.replace('_', ' ')}")
