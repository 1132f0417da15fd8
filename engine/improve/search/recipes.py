"""Recipes: what they plan for a goal, learning them from goals done by hand, and how they are judged.

One recipe stands for several goals of one shape; the words that differ become its parameters. It is made only
where filling it in gives back, for each of the goals, exactly the steps that were done. Half of the recorded
goals are learned from and half are sealed, by their order in the journal, so that learning and judging split
them alike.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.core.goals import Goal
from engine.core.improvement import Component, Finding, Proposal
from engine.core.thinking import PlanRequest
from engine.improve.ports import Check, Measure, Outcome, Report, Split, Suite
from engine.improve.search.history import CHANGES_PLAN, History, Json
from engine.planning.library.parameters import FILTERS, TYPES, ParameterType, fill
from engine.planning.library.pattern import MAX_LENGTH
from engine.planning.library.plan_library import PlanLibrary, toml_files
from engine.planning.library.recipe import parse_recipes
from engine.planning.library.words import words_of
from engine.planning.thinkers.clauses import split_clauses as clauses_of
from engine.planning.thinkers.procedural import ProceduralThinker
from engine.value import dataclass

Calls = tuple[str, ...]
"""Calls in order, each as canonical JSON of operation, tool, command and arguments."""


@dataclass(frozen=True, slots=True)
class PlannedGoal:
    """What recipes make of a goal."""

    calls: Calls
    uncovered: int
    """Clauses that no recipe covers."""


@dataclass(frozen=True, slots=True)
class DoneClause:
    """A clause of a goal that was achieved, and the steps that did it."""

    ref: str
    """The event by which the goal was adopted."""
    text: str
    """The clause."""
    steps: tuple[Json, ...]
    by_hand: bool
    """Whether a person changed the plan, or recipes alone had none."""

    @property
    def calls(self) -> Calls:
        """The steps as calls."""
        return tuple(map(_call, self.steps))


def _call(step: Mapping[str, Any]) -> str:
    """One step without its id, status and words."""
    what = [step.get("op", "act"), step.get("tool", ""), step.get("command", ""), step.get("args", {})]
    return json.dumps(what, sort_keys=True, ensure_ascii=False)


def recipe_texts(directory: Path) -> dict[str, str]:
    """The recipe files of a directory by name; empty where there is none. Blocking."""
    texts: dict[str, str] = {}
    with suppress(OSError):
        for path in toml_files(directory):
            with suppress(OSError, UnicodeDecodeError):
                texts[path.name] = path.read_text(encoding="utf-8")
    return texts


def library_with(texts: Mapping[str, str]) -> PlanLibrary:
    """The shipped recipes and these files beside them; blocking."""
    return _library(tuple(sorted(texts.items())))


@lru_cache(4)
def _library(texts: tuple[tuple[str, str], ...]) -> PlanLibrary:
    with tempfile.TemporaryDirectory(prefix="pilothouse-recipes-") as place:
        for name, text in texts:
            Path(place, name).write_text(text, encoding="utf-8")
        return PlanLibrary.load(None, Path(place))


def plan_goal(library: PlanLibrary, text: str) -> PlannedGoal:
    """What the procedural thinker plans for a goal; blocking."""
    proposal = ProceduralThinker(library).propose(PlanRequest(Goal("g", text)))
    steps = (
        {"op": step.op.value, "tool": step.tool, "command": step.command, "args": step.args}
        for step in proposal.steps
    )
    return PlannedGoal(tuple(map(_call, steps)), len(proposal.uncovered))


def done_clauses(history: History, library: PlanLibrary) -> Iterator[DoneClause]:
    """What was done for each clause of each goal that was achieved, oldest first.

    Goals for which a result was given by hand are left out: it is unknown what achieved them.
    """
    for goal in history.goals.values():
        hands = {hand.do for hand in goal.hands}
        if goal.status != "achieved" or not goal.followed or "give_result" in hands:
            continue
        clauses = [clause.text for clause in clauses_of(goal.text, library)]
        if len(clauses) == 1:
            by_hand = bool(hands & CHANGES_PLAN or goal.uncovered) or goal.thinker != "procedural"
            yield DoneClause(goal.ref, clauses[0], tuple(goal.followed), by_hand)
            continue
        for clause, steps in _by_clause(goal.followed).items():
            if clause in clauses:
                changed = any((step.get("provenance") or {}).get("by") == "operator" for step in steps)
                yield DoneClause(goal.ref, clause, tuple(steps), changed)


def _by_clause(steps: Sequence[Json]) -> dict[str, list[Json]]:
    """The steps of each clause; what was put in between belongs to the clause before it."""
    clauses: dict[str, list[Json]] = {}
    now = ""
    for step in steps:
        now = str((step.get("provenance") or {}).get("clause", "")) or now
        clauses.setdefault(now, []).append(step)
    return clauses


LEAST = 2
"""Goals of one shape from which a recipe is learned."""
_PREFERRED = ("number", "url", "filename", "path", "quoted", "text")
"""Types of a parameter, the narrowest first."""
_SPECIAL = re.compile(r"[()\[\]|{}]")
_SLOT_LIKE = re.compile(r"\{([a-z][a-z0-9_]*(?:\|[a-z]+)*)\}")
_FILTERS = ("stem", "snake", "slug", "camel", "title")


@dataclass(frozen=True, slots=True)
class LearnedRecipe:
    """A recipe that was learned."""

    pattern: str
    text: str
    """As TOML."""
    of: tuple[DoneClause, ...]


def learn_recipes(done: Sequence[DoneClause]) -> Iterator[LearnedRecipe]:
    """A recipe for each shape of which there are enough goals, in the order of their first ones."""
    shapes: dict[tuple[object, ...], list[DoneClause]] = {}
    for clause in done:
        if clause.by_hand and (shape := _shape(clause)) is not None:
            shapes.setdefault(shape, []).append(clause)
    for those in shapes.values():
        if len({clause.ref for clause in those}) >= LEAST and (made := _recipe(those)) is not None:
            yield made


def _shape(clause: DoneClause) -> tuple[object, ...] | None:
    words = [word for word in words_of(clause.text) if not word.soft]
    if not words or not words[0].key or _SPECIAL.search(words[0].key):
        return None
    steps = tuple(
        (step.get("op", "act"), step.get("tool", ""), step.get("command", ""), *sorted(step.get("args", {})))
        for step in clause.steps
    )
    return words[0].key, len(words), steps


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    kind: ParameterType
    values: tuple[str, ...]
    """Of each goal."""


def _recipe(those: Sequence[DoneClause]) -> LearnedRecipe | None:
    rows = [[word for word in words_of(clause.text) if not word.soft] for clause in those]
    pieces: list[str] = []
    parameters: list[_Parameter] = []
    for column in zip(*rows, strict=True):
        first = column[0]
        if all(word.key == first.key and not word.quoted for word in column):
            if _SPECIAL.search(first.key):
                return None
            pieces.append(first.key)
            continue
        kind = next((TYPES[name] for name in _PREFERRED if all(map(TYPES[name].accepts, column))), None)
        if kind is None or not pieces:
            return None
        name = f"{kind.name}_{len(parameters) + 1}"
        parameters.append(_Parameter(name, kind, tuple(word.value for word in column)))
        pieces.append(f"{{{name}:{kind.name}}}")
    pattern = " ".join(pieces)
    steps = _steps(those, parameters)
    if steps is None or len(pattern) > MAX_LENGTH:
        return None
    digest = hashlib.sha256(json.dumps([pattern, steps], sort_keys=True).encode()).hexdigest()[:6]
    verb = re.sub(r"[^a-z0-9]+", "-", rows[0][0].key).strip("-") or "goal"
    name = f"learned-{verb[:30]}-{digest}"
    return LearnedRecipe(pattern, _toml(name, pattern, those, steps), tuple(those))


def _steps(those: Sequence[DoneClause], parameters: Sequence[_Parameter]) -> list[dict[str, Any]] | None:
    """The steps as templates; None where they do not give back what was done."""
    filled = [{p.name: p.values[row] for p in parameters} for row in range(len(those))]
    steps = []
    for place in range(len(those[0].steps)):
        column = [clause.steps[place] for clause in those]
        running = column[0].get("command") in ("run", "start")
        args = _template([step.get("args", {}) for step in column], filled, parameters, running)
        if args is None:
            return None
        called = {name: column[0][name] for name in ("tool", "command") if column[0].get(name)}
        steps.append({"op": column[0].get("op", "act"), **called, "args": args})
    return steps


def _template(
    values: Sequence[Any],
    filled: Sequence[Mapping[str, str]],
    parameters: Sequence[_Parameter],
    running: bool,
) -> Any:
    """A value that filling in turns into each of the values; None where there is none."""
    first = values[0]
    if len({type(value) for value in values}) > 1:
        return None
    if isinstance(first, str):
        candidates = _candidates(first, parameters, running)
        return next((each for each in candidates if [fill(each, row) for row in filled] == [*values]), None)
    places = _places(values)
    if places is None:
        return first if all(value == first for value in values) else None
    # A command as a list goes past the check of quoted parameters, and needs none.
    running = running and isinstance(first, dict)
    columns = {place: [value[place] for value in values] for place in places}
    made = {place: _template(column, filled, parameters, running) for place, column in columns.items()}
    if None in made.values():
        return None
    return made if isinstance(first, dict) else list(made.values())


def _places(values: Sequence[Any]) -> Sequence[Any] | None:
    """The keys or positions that containers have in common; None where they are none, or not alike."""
    first = values[0]
    if isinstance(first, dict):
        return list(first) if all(value.keys() == first.keys() for value in values) else None
    if isinstance(first, list):
        return range(len(first)) if len({len(value) for value in values}) == 1 else None
    return None


def _candidates(text: str, parameters: Sequence[_Parameter], running: bool) -> Iterator[str]:
    """Templates that a text may be of, the likeliest first."""
    plain = _SLOT_LIKE.sub(r"{{\1}}", text)
    ways: list[tuple[str, str]] = []
    for parameter in sorted(parameters, key=lambda candidate: -len(candidate.values[0])):
        end = "|shell" if running and parameter.kind.name != "number" else ""
        for chain in ("", *_FILTERS):
            value = FILTERS[chain](parameter.values[0]) if chain else parameter.values[0]
            slot = f"{{{parameter.name}{f'|{chain}' if chain else ''}{end}}}"
            if value and value in text:
                ways.append((value, slot))
    for bounded in (True, False):
        made = plain
        taken: list[str] = []
        for value, slot in ways:
            if any(value in other for other in taken):
                continue
            # Names of slots already put in are no text to be replaced.
            parts = re.split(r"(\{[a-z][a-z0-9_|]*\})", made)
            sought = rf"(?<!\w){re.escape(value)}(?!\w)" if bounded else re.escape(value)
            parts[::2] = [re.sub(sought, lambda _m, s=slot: s, part) for part in parts[::2]]
            if (now := "".join(parts)) != made:
                made = now
                taken.append(value)
        yield made
    yield plain


def _toml(name: str, pattern: str, those: Sequence[DoneClause], steps: Sequence[Mapping[str, Any]]) -> str:
    hand = f"Learned from {len(those)} goals that were done by hand."
    lines = [
        "[[recipe]]",
        f"name = {_value(name)}",
        f"summary = {_value(hand)}",
        f"example = {_value(those[0].text[:300])}",
        f"says = [{_value(pattern)}]",
    ]
    for step in steps:
        lines += ["", "[[recipe.steps]]"]
        lines += [f"{key} = {_value(value)}" for key, value in step.items()]
        words = f"{step.get('command') or step['op']} as in “{those[0].text}”"
        lines.append(f"description = {_value(_SLOT_LIKE.sub('', words)[:200])}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value as TOML; JSON's strings, numbers and switches are TOML's too."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(k))} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


FORMAT = "recorded goals 1"
MOST = 60
"""Recorded clauses of one split that are asked about: the newest."""
EXAMPLES = 40
"""Shipped examples that have to be planned as before."""


def split_clauses(done: Sequence[DoneClause]) -> dict[Split, tuple[DoneClause, ...]]:
    """Recorded clauses in halves, work and sealed: every other one of those that begin with the same word."""
    seen: Counter[str] = Counter()
    clauses: dict[Split, list[DoneClause]] = {Split.WORK: [], Split.SEALED: []}
    for clause in done:
        verb = clause.text.split()[0].casefold() if clause.text.split() else ""
        clauses[Split.SEALED if seen[verb] % 2 else Split.WORK].append(clause)
        seen[verb] += 1
    return {split: tuple(those[-MOST:]) for split, those in clauses.items()}


def _hits(before: PlanLibrary, after: PlanLibrary, done: Sequence[DoneClause]) -> int:
    """How many clauses another library plans as they were done, and were planned otherwise; blocking.

    0 where it plans one otherwise than before and not as it was done.
    """
    hits = 0
    for clause in done:
        new = plan_goal(after, clause.text)
        if new == plan_goal(before, clause.text):
            continue
        if new.uncovered or new.calls != clause.calls:
            return 0
        hits += 1
    return hits


def propose_recipes(
    texts: Mapping[str, str],
    component: Component,
    history: History,
    findings: Sequence[Finding],
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Proposal, ...]:
    """Recipes learned from the work half of history that hit and never misfire there; blocking.

    Args:
        texts: the workspace's recipe files by name.
        component: a file of recipes.
        history: what the journal says.
        findings: what it is to mend.
        cancelled: asked between two recipes.

    Returns:
        One proposal with all of them, and one for each where they are several.
    """
    path = component.paths[0]
    name = path.rpartition("/")[2]
    before = library_with(texts)
    work = split_clauses(tuple(done_clauses(history, before)))[Split.WORK]
    kept: list[tuple[LearnedRecipe, int]] = []
    for learned in learn_recipes(work):
        if cancelled():
            return ()
        text = _added(texts.get(name, ""), [learned])
        if parse_recipes(text.encode(), path, by_operator=True)[1]:
            continue
        if hits := _hits(before, library_with({**texts, name: text}), work):
            kept.append((learned, hits))
    groups = [kept] if len(kept) == 1 else [kept, *([recipe] for recipe in kept)] if kept else []
    return tuple(_proposal(component, texts.get(name, ""), group, findings) for group in groups)


def _proposal(
    component: Component, text: str, group: Sequence[tuple[LearnedRecipe, int]], findings: Sequence[Finding]
) -> Proposal:
    learned = [recipe for recipe, _ in group]
    names = ", ".join(f"“{recipe.pattern}”" for recipe in learned)
    refs = sorted({clause.ref for recipe in learned for clause in recipe.of})
    hits = sum(count for _, count in group)
    return Proposal(
        f"learn {len(group)} recipe{'s' * (len(group) > 1)}: {names}"[:300],
        "search:recipes",
        {component.paths[0]: _added(text, learned)},
        why=f"{hits} hits and 0 misfires on recorded goals; learned from {', '.join(refs[:8])}",
        answers=tuple(finding for finding in findings if finding.target == component.id),
    )


def _added(text: str, learned: Sequence[LearnedRecipe]) -> str:
    kept = text.rstrip()
    return "\n\n".join([*([kept] if kept else []), *(recipe.text.rstrip() for recipe in learned)]) + "\n"


@dataclass(frozen=True, slots=True)
class RecipesSuite(Suite):
    """Recipes are better when they plan more recorded goals as they were done, and nothing else otherwise."""

    component: Component
    goals: Mapping[Split, tuple[DoneClause, ...]]
    examples: tuple[tuple[str, str], ...]
    """Shipped examples, with what is planned for them before, as JSON."""

    @classmethod
    def of(cls, component: Component, before: Path, history: History) -> RecipesSuite:
        """The suite for a tree and what the journal says; blocking."""
        library = library_with(recipe_texts(before / "recipes"))
        shipped = [recipe for recipe in library.recipes if not recipe.by_operator]
        step = max(1, len(shipped) // EXAMPLES)
        examples = tuple((recipe.example, _shown(library, recipe.example)) for recipe in shipped[::step])
        return cls(component, split_clauses(tuple(done_clauses(history, library))), examples)

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        asked = {
            split.value: [[clause.text, clause.calls] for clause in those]
            for split, those in self.goals.items()
        }
        key = json.dumps([FORMAT, self.component.id, asked, self.examples], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()

    @property
    def measure(self) -> Measure | None:
        """None: a goal is planned as it was done, or it is not."""
        return None

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each recorded clause; the examples are visible."""
        checks = []
        for number, clause in enumerate(self.goals.get(split, ())):
            # Who gets the visible ones of a family right and the sealed ones wrong knows them by heart.
            name, family = f"{split} {number + 1}: {clause.text[:80]}", clause.text.split()[0].casefold()
            checks.append(Check(name, split, data=("goal", number), family=family))
        if split is Split.WORK:
            checks += [
                Check(f"example {number + 1}: {text[:80]}", split, data=("example", number))
                for number, (text, _) in enumerate(self.examples)
            ]
        return tuple(checks)

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """Whether the recipes of a tree plan one clause as they should."""
        return await asyncio.to_thread(self._examined, tree, check)

    def _examined(self, tree: Path, check: Check) -> Report:
        texts = recipe_texts(tree / "recipes")
        library = library_with(texts)
        broken = [error for error in library.errors if error.file in self.component.paths]
        if broken:
            return Report(check.id, Outcome.FAILS, str(broken[0]))
        kind, number = check.data
        if kind == "example":
            text, right = self.examples[number]
            now = _shown(library, text)
            return _report(check, now == right, f"planned as {now}")
        clause = self.goals[check.split][number]
        plan = plan_goal(library, clause.text)
        report = f"{plan.uncovered} clauses uncovered" if plan.uncovered else f"planned as {list(plan.calls)}"
        return _report(check, not plan.uncovered and plan.calls == clause.calls, report)


def _report(check: Check, holds: bool, text: str) -> Report:
    return Report(check.id, Outcome.HOLDS if holds else Outcome.FAILS, "" if holds else text)


def _shown(library: PlanLibrary, text: str) -> str:
    plan = plan_goal(library, text)
    return json.dumps([plan.calls, plan.uncovered])
