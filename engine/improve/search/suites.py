"""Searches components that are no projects, and judges them by tasks that no proposer has seen.

AgentSpeak(L) plans cannot leave the world that they run in (no files, processes or clock), so the judge runs
them itself, in worlds drawn from its own seed.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_program
from engine.bdi.syntax import Program
from engine.core.improvement import Component, ComponentKind, Finding, Proposal
from engine.core.journal import JournalReadError
from engine.improve.ports import (
    AuditUnavailable,
    Check,
    JobRefused,
    MastermindHost,
    Measure,
    NothingProposed,
    NotJudged,
    Outcome,
    Progress,
    ProposalRequest,
    Report,
    Split,
    Suite,
)
from engine.improve.search.audit import audit
from engine.improve.search.components import RECIPES, SEARCHED, TRIED, components, current_texts
from engine.improve.search.history import read_history
from engine.improve.search.plan_search import COUNTED, WorldResult, run_in_world, search_library, world_tasks
from engine.improve.search.recipes import RecipesSuite, propose_recipes, recipe_texts
from engine.improve.search.settings import AGENT_PREFIX
from engine.improve.search.trial_suite import (
    NO_MODEL,
    TrialSuite,
    TriedThresholds,
    TriedWords,
    best_change,
    tried_for,
)
from engine.value import dataclass, field


def _library_text(component: Component, tree: Path) -> str:
    """The text of a plan library in a tree, or what stands for it where there is no file yet; blocking.

    Raises:
        JobRefused: the file cannot be read.
    """
    try:
        return current_texts(component, tree)[component.paths[0]]
    except (OSError, ValueError) as error:
        raise JobRefused(f"{component.id} cannot be read: {error}") from None


def _better_library(
    text: str, rng: random.Random, cancelled: Callable[[], bool]
) -> tuple[str, str, str] | None:
    """The changes of a plan library that save cycles, the whole new text, and why they are proposed."""
    library = search_library(text, rng, stopped=cancelled)
    if library is None:
        return None
    why = (
        f"of {library.tried} libraries tried the best; in {library.worlds} choose worlds "
        f"{library.before:.1f} cycles in the mean before, {library.after:.1f} with it"
    )
    return "; ".join(library.changes), library.text, why


class SearchedComponents:
    """Audits the components that are no projects by the journal, searches them and makes their suites.

    Args:
        host: the engine.
    """

    name = "search"

    def __init__(self, host: MastermindHost) -> None:
        self._host, self._store = host, host.store

    def fits(self, component: Component) -> bool:
        """Whether agents leave traces of such a component in the journal, and there are tasks for it."""
        return component.kind in SEARCHED

    async def components(self) -> Sequence[Component]:
        """All components beside projects."""
        states = [await self._host.view(agent) for agent in self._host.agents]
        agents = [state.agent_id for state in states if state.agent_type == "bdi_agent"]
        return await asyncio.to_thread(components, self._host.workspace, agents)

    async def audit(self, component: Component, tree: Path, progress: Progress) -> Sequence[Finding]:
        """What the journal shows about a component.

        Raises:
            AuditUnavailable: the journal cannot be read.
        """
        try:
            findings = await audit(self._host.workspace, self._store, lambda: progress.cancelled)
        except JournalReadError as error:
            raise AuditUnavailable(str(error)) from error
        return [finding for finding in findings if finding.target == component.id]

    def proposes(self, component: Component) -> bool:
        """Whether such a component is searched; words are not."""
        return self.fits(component) and component.kind is not ComponentKind.PROMPT

    async def propose(self, asked: ProposalRequest) -> Iterable[Proposal]:
        """What a search without a model found to be better; it costs nothing.

        Raises:
            NothingProposed: the component cannot be searched as it is.
        """
        ended = False
        try:
            return await self._searched(asked, lambda: ended)
        except (OSError, ValueError, JobRefused, JournalReadError, ProgramError) as error:
            raise NothingProposed(f"{asked.component.id}: {error}") from error
        finally:
            # Cancelled or not, a search in a thread is to end with this.
            ended = True

    async def _searched(self, asked: ProposalRequest, cancelled: Callable[[], bool]) -> tuple[Proposal, ...]:
        component, tree, findings = asked.component, asked.tree, asked.findings
        if component.kind is ComponentKind.RECIPES:
            history = await read_history(self._store, cancelled)
            texts = await asyncio.to_thread(recipe_texts, tree / RECIPES)
            return await asyncio.to_thread(propose_recipes, texts, component, history, findings, cancelled)
        if component.kind in TRIED:
            best = await best_change(await self.trials(component, 0), tree, asked.rng)
        else:
            text = await asyncio.to_thread(_library_text, component, tree)
            best = await asyncio.to_thread(_better_library, text, asked.rng, cancelled)
        if best is None:
            return ()
        title, text, why = best
        answers = tuple(finding for finding in findings if finding.target == component.id)
        origin = f"search:{component.kind}"
        return (Proposal(title, origin, {component.paths[0]: text}, why=why, answers=answers),)

    def roots(self, component: Component) -> tuple[str, ...]:
        """The component's own files; of recipes all, as they are matched together."""
        return (RECIPES,) if component.kind is ComponentKind.RECIPES else component.paths

    async def sets(self, component: Component, workspace: Path) -> Mapping[str, str]:
        """What is asked, in words by split; see `engine.improve.ports.SuiteMaker`."""
        if component.kind is ComponentKind.RECIPES:
            return {
                "work": "every other recorded goal that begins with the same word",
                "choose": "none: recipes are learned, and not chosen",
                "sealed": "the other recorded goals, and all shipped examples",
            }
        if component.kind in TRIED:
            tried = TriedWords if component.kind is ComponentKind.PROMPT else TriedThresholds
            each = f" in each of {len(tried.groups)} styles, done by the model" if tried.asks else ""
            return {split.value: f"{count} small tasks{each}" for split, count in tried.sizes.items()}
        await self.make(component, workspace, 0)
        return {split.value: f"{count} worlds of the explorer" for split, count in PLANS_SIZES.items()}

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        """The suite of a component.

        Raises:
            JobRefused: it cannot be judged; the message says why.
            NotJudged: it takes a model and there is none, or it is for a world that there is not.
        """
        if component.kind in TRIED:
            return await self.trials(component, seed)
        if component.kind is ComponentKind.PLANS:
            text = await asyncio.to_thread(_library_text, component, before)
            check_explorer_library(text, component.paths[0])
            return PlansSuite(component, seed)
        try:
            history = await read_history(self._store)
        except JournalReadError as error:
            raise JobRefused(str(error)) from error
        return await asyncio.to_thread(RecipesSuite.of, component, before, history)

    async def trials(self, component: Component, seed: int) -> TrialSuite:
        """The suite of thresholds, words or a specification.

        Raises:
            JobRefused: the agent is not there, or follows a program.
            NotJudged: it takes a model and there is none.
        """
        created: dict[str, Any] = {}
        if component.kind is ComponentKind.AGENT:
            try:
                history = await read_history(self._store)
            except JournalReadError as error:
                raise JobRefused(str(error)) from error
            created = history.agents.get(component.id.removeprefix(AGENT_PREFIX), {})
            if created.get("type") != "bdi_agent":
                raise JobRefused(
                    f"{component.id} follows a program or is another one's: nothing tries it here"
                )
        tried = tried_for(component, created)
        if tried.asks and not self._host.model_name:
            raise NotJudged(NO_MODEL)
        return TrialSuite(component, seed, self._host.open_scratch, tried, self._host.model_name)


def check_explorer_library(text: str, path: str) -> None:
    """Refuse a library without plans for `!reach(X)`, which is not for the world that libraries are tried in.

    Raises:
        JobRefused: it cannot be read.
        NotJudged: it is not for the explorer's world.
    """
    try:
        plans = parse_program(text, path).plans
    except ProgramError as error:
        raise JobRefused(f"{path} cannot be read: {error}") from None
    goals = {getattr(plan.trigger.literal, "indicator", "") for plan in plans if plan.trigger.is_goal}
    if "reach/1" not in goals:
        raise NotJudged(
            f"{path} has no plan for !reach(X): only libraries for the explorer's world are judged"
        )


PLANS_FORMAT = "explorer worlds 1"
"""Changes whenever the same seed would give other worlds, so that no old verdict is taken for a new one."""
PLANS_SIZES = {Split.WORK: 40, Split.CHOOSE: 160, Split.SEALED: 400}
"""Worlds of each split; with 400 a tenth of the steps saved shows, where the ways stay the same much less."""


@dataclass(frozen=True, slots=True)
class PlansSuite(Suite):
    """A library is better when it leads home in fewer reasoning cycles, wherever the other one leads home."""

    component: Component
    seed: int
    """Of the campaign; the worlds follow from it."""
    _libraries: dict[str, Program] = field(default_factory=dict)
    """Parsed libraries, by the hash of their text."""
    _results: dict[tuple[str, str], WorldResult] = field(default_factory=dict)
    """By library and check; the same each time, so asked twice it is run once."""

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        key = f"{PLANS_FORMAT}/{self.component.paths}/{self.seed}/{sorted(PLANS_SIZES.items())}/{COUNTED}"
        return hashlib.sha256(key.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Cycles to the goal."""
        return Measure("reasoning cycles saved")

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each world."""
        return [
            Check(f"{split} world {number + 1}", split, data=number, measured=True)
            for number in range(PLANS_SIZES[split])
        ]

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """Whether the library of a tree leads home in one world, and in how many cycles."""
        return await asyncio.to_thread(self._examined, tree, check)

    def _examined(self, tree: Path, check: Check) -> Report:
        try:
            text = current_texts(self.component, tree)[self.component.paths[0]]
            name = hashlib.sha256(text.encode()).hexdigest()
            if name not in self._libraries:
                self._libraries[name] = parse_program(text, self.component.paths[0])
        except (ProgramError, OSError, ValueError) as error:
            words = f"the library cannot be read: {error}"
            return Report(check.id, Outcome.FAILS, words, cost=float(COUNTED))
        if (name, check.id) not in self._results:
            (task,) = world_tasks(check.split.value, f"judge {self.seed}", 1, first=check.data)
            self._results[name, check.id] = run_in_world(self._libraries[name], task)
        result = self._results[name, check.id]
        if result.reached:
            return Report(check.id, Outcome.HOLDS, f"home in {result.cycles} cycles", cost=float(result.cost))
        return Report(check.id, Outcome.FAILS, "home was not reached", cost=float(COUNTED))
