"""Recipes learned from history, and how recipes are judged: by what was really done for recorded goals.

Half of the recorded goals are learned from and half are sealed, by their order in the journal, so that who
learns and who judges part them alike without a word between them. Source: steering spec §3 ideas 12 and 13.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.domain.improvement import Component, Finding, Proposal
from engine.library.plan_library import PlanLibrary
from engine.library.recipe_file import parse_recipes
from engine.mastermind.judge.suite import Check, Measure, Outcome, Report, Split
from engine.mastermind.search.generalising import Learned, learn, same
from engine.mastermind.search.history import History
from engine.mastermind.search.planning import Done, done_in, library_with, planned, recipe_texts

FORMAT = "recorded goals 1"
MOST = 60
"""Recorded clauses of one split that are asked about: the newest."""
EXAMPLES = 40
"""Shipped examples that have to be planned as before."""


def divided(done: Sequence[Done]) -> dict[Split, tuple[Done, ...]]:
    """Recorded clauses in halves, work and sealed: every other one of those that begin with the same word."""
    seen: Counter[str] = Counter()
    found: dict[Split, list[Done]] = {Split.WORK: [], Split.SEALED: []}
    for one in done:
        verb = one.text.split()[0].casefold() if one.text.split() else ""
        found[Split.SEALED if seen[verb] % 2 else Split.WORK].append(one)
        seen[verb] += 1
    return {split: tuple(those[-MOST:]) for split, those in found.items()}


@dataclass(frozen=True, slots=True)
class Fit:
    """How a learned recipe would have served recorded goals (steering spec §3 idea 12)."""

    hits: int
    """Clauses that it plans as they were done in the end, and that were planned otherwise without it."""
    misfires: int
    """Clauses that it plans otherwise than without it, and not as they were done."""


def fit(before: PlanLibrary, after: PlanLibrary, done: Sequence[Done]) -> Fit:
    """What another library would have changed; blocking."""
    hits = misfires = 0
    for one in done:
        new = planned(after, one.text)
        if new == planned(before, one.text):
            continue
        right = not new.uncovered and same(one, new.calls)
        hits, misfires = hits + right, misfires + (not right)
    return Fit(hits, misfires)


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
    work = divided(tuple(done_in(history, before)))[Split.WORK]
    kept: list[tuple[Learned, Fit]] = []
    for learned in learn(work):
        if cancelled():
            return ()
        text = _added(texts.get(name, ""), [learned])
        if parse_recipes(text.encode(), path, by_operator=True)[1]:
            continue
        fits = fit(before, library_with({**texts, name: text}), work)
        if fits.hits and not fits.misfires:
            kept.append((learned, fits))
    groups = [kept] if len(kept) == 1 else [kept, *([one] for one in kept)] if kept else []
    return tuple(_proposal(component, texts.get(name, ""), group, findings) for group in groups)


def _proposal(
    component: Component, text: str, group: Sequence[tuple[Learned, Fit]], findings: Sequence[Finding]
) -> Proposal:
    hits = sum(fits.hits for _, fits in group)
    names = ", ".join(f"“{learned.pattern}”" for learned, _ in group)
    refs = sorted({one.ref for learned, _ in group for one in learned.of})
    return Proposal(
        f"learn {len(group)} recipe{'s' * (len(group) > 1)}: {names}"[:300],
        "search:recipes",
        {component.paths[0]: _added(text, [learned for learned, _ in group])},
        why=f"{hits} hits and 0 misfires on recorded goals; learned from {', '.join(refs[:8])}",
        answers=tuple(one for one in findings if one.target == component.id),
    )


def _added(text: str, learned: Sequence[Learned]) -> str:
    kept = text.rstrip()
    return "\n\n".join([*([kept] if kept else []), *(one.text.rstrip() for one in learned)]) + "\n"


@dataclass(frozen=True, slots=True)
class RecipesSuite:
    """Recipes are better when they plan more recorded goals as they were done, and plan nothing else anew."""

    component: Component
    goals: Mapping[Split, tuple[Done, ...]]
    examples: tuple[tuple[str, str], ...]
    """Shipped examples, with what is planned for them before, as JSON."""

    @classmethod
    def of(cls, component: Component, before: Path, history: History) -> RecipesSuite:
        """The suite for a tree and what the journal says; blocking."""
        library = library_with(recipe_texts(before / "recipes"))
        shipped = [recipe for recipe in library.recipes if not recipe.by_operator]
        step = max(1, len(shipped) // EXAMPLES)
        examples = tuple((recipe.example, _shown(library, recipe.example)) for recipe in shipped[::step])
        return cls(component, divided(tuple(done_in(history, library))), examples)

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        asked = {split.value: [[one.text, one.calls] for one in those] for split, those in self.goals.items()}
        said = json.dumps([FORMAT, self.component.id, asked, self.examples], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def measure(self) -> Measure | None:
        """None: a goal is planned as it was done, or it is not."""
        return None

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each recorded clause; the examples are visible."""
        found = [
            Check(
                f"{split} {number + 1}: {one.text[:80]}",
                split,
                data=("goal", number),
                # Who gets the visible ones of a family right and the sealed ones wrong knows them by heart.
                family=one.text.split()[0].casefold(),
            )
            for number, one in enumerate(self.goals.get(split, ()))
        ]
        if split is Split.WORK:
            found += [
                Check(f"example {number + 1}: {text[:80]}", split, data=("example", number))
                for number, (text, _) in enumerate(self.examples)
            ]
        return tuple(found)

    def owns(self, path: str) -> bool:
        """No file is the suite's."""
        return False

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
        one = self.goals[check.split][number]
        plan = planned(library, one.text)
        said = f"{plan.uncovered} clauses uncovered" if plan.uncovered else f"planned as {list(plan.calls)}"
        return _report(check, not plan.uncovered and same(one, plan.calls), said)


def _report(check: Check, holds: bool, said: str) -> Report:
    return Report(check.id, Outcome.HOLDS if holds else Outcome.FAILS, "" if holds else said)


def _shown(library: PlanLibrary, text: str) -> str:
    plan = planned(library, text)
    return json.dumps([plan.calls, plan.uncovered])
