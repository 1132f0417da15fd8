"""Searches components that are no projects, and judges them by tasks that no proposer has seen.

Thresholds and specifications are tried on small tasks: the engine runs real agents in its jail, in a scratch
workspace. All tasks of a split run together and are kept, as opening a workspace costs more than a task.

AgentSpeak(L) plans cannot leave the world that they run in (no files, processes or clock), so the judge runs
them itself, in worlds drawn from its own seed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.agent.settings import ThresholdsError, read_thresholds
from engine.bdi.errors import ProgramError
from engine.bdi.parser import parse_program
from engine.bdi.syntax import Program
from engine.core.improvement import Component, ComponentKind, Finding, Proposal
from engine.core.journal import JournalReadError
from engine.core.store.port import JournalStore
from engine.improve.ports import (
    Check,
    JobRefused,
    Measure,
    NothingProposed,
    NotJudged,
    Outcome,
    Report,
    Split,
    Suite,
)
from engine.improve.search import prompts
from engine.improve.search.components import (
    AGENT_PREFIX,
    RECIPES,
    SEARCHED,
    SpecError,
    current_texts,
    loosened_limits,
    neighbouring_thresholds,
    read_spec,
    spec_changes,
    thresholds_text,
)
from engine.improve.search.history import read_created, read_history
from engine.improve.search.plan_search import (
    COUNTED,
    SearchEffort,
    WorldResult,
    run_in_world,
    search_library,
    world_tasks,
)
from engine.improve.search.recipes import RecipesSuite, propose_recipes, recipe_texts
from engine.improve.search.trial_tasks import (
    FAILED_GOAL_COST,
    ModelOpener,
    Opener,
    SettingsCandidate,
    TrialResult,
    TrialTask,
    best_settings,
    draw_trial_tasks,
    run_trial_tasks,
)
from engine.value import dataclass, field

TRIAL_FORMAT = "small tasks 1"
TRIAL_SIZES = {Split.WORK: 6, Split.CHOOSE: 6, Split.SEALED: 18}
UNIT = f"points (an action 1, a goal not achieved {FAILED_GOAL_COST})"


@dataclass(slots=True)
class ComponentSearch:
    """What searching and judging components of a workspace needs.

    Args:
        workspace: its directory.
        store: its journal.
        opener: opens an engine on a scratch workspace, without a model.
        effort: how much is tried for plan libraries.
        thinking: opens an engine with the model that thinks; None where there is none.
        model: that model's name.
    """

    workspace: Path
    store: JournalStore
    opener: Opener
    effort: SearchEffort = field(default_factory=SearchEffort)
    thinking: ModelOpener | None = None
    model: str = ""

    async def created(self, component: Component) -> dict[str, Any]:
        """What an agent was created with; empty for other components.

        Raises:
            JournalReadError: the journal cannot be read.
        """
        if component.kind is not ComponentKind.AGENT:
            return {}
        return (await read_created(self.store)).get(component.id.removeprefix(AGENT_PREFIX), {})

    async def text(self, component: Component, tree: Path) -> str:
        """The text of a component's one file in a tree, or what stands for it where there is no file yet.

        Raises:
            JobRefused: the file cannot be read.
            JournalReadError: the journal cannot be read.
        """
        created = await self.created(component)
        try:
            (text,) = (await asyncio.to_thread(current_texts, component, tree, created)).values()
        except (OSError, ValueError) as error:
            raise JobRefused(f"{component.id} cannot be read: {error}") from None
        return text


class SearchProposer:
    """Proposes what a search without a model found to be better."""

    name = "search"

    def __init__(self, searching: ComponentSearch) -> None:
        self._searching = searching

    def fits(self, component: Component) -> bool:
        """Whether such a component is searched; words are not."""
        return component.kind in SEARCHED and component.kind is not ComponentKind.PROMPT

    async def propose(
        self,
        component: Component,
        tree: Path,
        findings: Sequence[Finding],
        rng: random.Random,
        budget_usd: float,
    ) -> Iterable[Proposal]:
        """The proposals of a search; they cost nothing.

        Raises:
            NothingProposed: the component cannot be searched as it is.
        """
        ended = False
        try:
            return await self._searched(component, tree, findings, rng, lambda: ended)
        except (JobRefused, JournalReadError, ProgramError, SpecError, ThresholdsError) as error:
            raise NothingProposed(f"{component.id}: {error}") from error
        finally:
            # Cancelled or not, a search in a thread is to end with this.
            ended = True

    async def _searched(
        self,
        component: Component,
        tree: Path,
        findings: Sequence[Finding],
        rng: random.Random,
        cancelled: Callable[[], bool],
    ) -> tuple[Proposal, ...]:
        searching = self._searching
        if component.kind is ComponentKind.RECIPES:
            history = await read_history(searching.store, cancelled)
            texts = await asyncio.to_thread(recipe_texts, tree / RECIPES)
            return await asyncio.to_thread(propose_recipes, texts, component, history, findings, cancelled)
        text = await searching.text(component, tree)
        if component.kind is ComponentKind.PLANS:
            library = await asyncio.to_thread(search_library, text, rng, searching.effort, cancelled)
            if library is None:
                return ()
            title, better = "; ".join(library.changes), library.text
            why = (
                f"of {library.tried} libraries tried the best; in {library.worlds} choose worlds "
                f"{library.before:.1f} cycles in the mean before, {library.after:.1f} with it"
            )
        else:
            now, candidates = _settings(component, text, rng)
            best = await best_settings(searching.opener, now, candidates, rng)
            if best is None:
                return ()
            title, better = best.candidate.what, best.candidate.text
            why = (
                f"the best of {best.tried} changes on work tasks; on choose tasks {best.before:g} points "
                f"lost before and {best.after:g} with it"
            )
        answers = tuple(finding for finding in findings if finding.target == component.id)
        origin = f"search:{component.kind}"
        return (Proposal(title, origin, {component.paths[0]: better}, why=why, answers=answers),)


def _settings(
    component: Component, text: str, rng: random.Random
) -> tuple[SettingsCandidate, list[SettingsCandidate]]:
    """The settings as they are, and each set that differs from them in one value."""
    if component.kind is ComponentKind.THRESHOLDS:
        changes = neighbouring_thresholds(read_thresholds(text), rng)
        texts = [(what, thresholds_text(changed)) for what, changed in changes]
        now = SettingsCandidate("now", text, thresholds=text)
        return now, [SettingsCandidate(what, new, thresholds=new) for what, new in texts]
    agent = component.id.removeprefix(AGENT_PREFIX)
    spec = read_spec(text, agent)
    if spec["type"] != "bdi_agent":
        raise SpecError(f"{agent} follows a program: evolve its plan library, not its specification")
    now = SettingsCandidate("now", text, config=scratch_config(spec["config"]))
    return now, [
        SettingsCandidate(what, new, config=scratch_config(read_spec(new, agent)["config"]))
        for what, new in spec_changes(text, agent, rng)
    ]


class SearchSuites:
    """Makes the suites of components that are no projects."""

    def __init__(self, searching: ComponentSearch) -> None:
        self._searching = searching

    def fits(self, component: Component) -> bool:
        """Whether there are tasks for such a component."""
        return component.kind in SEARCHED

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
        if component.kind is ComponentKind.PLANS:
            await self.make(component, workspace, 0)
            return {split.value: f"{count} worlds of the explorer" for split, count in PLANS_SIZES.items()}
        sizes, what = TRIAL_SIZES, "small tasks"
        if component.kind is ComponentKind.PROMPT:
            sizes, what = prompts.SIZES, "tasks of each style, run by the model"
        return {split.value: f"{count} {what}, drawn from the seed" for split, count in sizes.items()}

    async def make(self, component: Component, before: Path, seed: int) -> Suite:
        """The suite of a component.

        Raises:
            JobRefused: it cannot be judged; the message says why.
            NotJudged: it takes a model and there is none, or it is for a world that there is not.
        """
        try:
            return await self._made(component, before, seed)
        except JournalReadError as error:
            raise JobRefused(str(error)) from error

    async def _made(self, component: Component, before: Path, seed: int) -> Suite:
        searching = self._searching
        match component.kind:
            case ComponentKind.PLANS:
                check_explorer_library(await searching.text(component, before), component.paths[0])
                return PlansSuite(component, seed)
            case ComponentKind.RECIPES:
                history = await read_history(searching.store)
                return await asyncio.to_thread(RecipesSuite.of, component, before, history)
            case ComponentKind.PROMPT:
                if searching.thinking is None:
                    raise NotJudged(prompts.NO_MODEL)
                return prompts.PromptSuite(component, seed, searching.thinking, searching.model)
            case ComponentKind.THRESHOLDS:
                return TrialSuite(component, seed, searching.opener)
        created = await searching.created(component)
        if created.get("type") != "bdi_agent":
            raise JobRefused(f"{component.id} follows a program: evolve its plan library")
        return TrialSuite(component, seed, searching.opener, created["meta"])


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


@dataclass(frozen=True, slots=True)
class TrialSuite:
    """A candidate is better when it achieves more goals, or the same with fewer actions."""

    component: Component
    """Thresholds, or an agent's specification."""
    seed: int
    """Of the campaign; the tasks follow from it."""
    opener: Opener
    before: Mapping[str, Any] = field(default_factory=dict)
    """An agent's configuration before, which no candidate may loosen."""
    _results: dict[tuple[str, Split], asyncio.Task[tuple[TrialResult, ...]]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Names everything that is asked."""
        rules = json.dumps(self.before, sort_keys=True)
        sizes = sorted(TRIAL_SIZES.items())
        key = f"{TRIAL_FORMAT}/{self.component.id}/{self.seed}/{sizes}/{FAILED_GOAL_COST}/{rules}"
        return hashlib.sha256(key.encode()).hexdigest()

    @property
    def measure(self) -> Measure:
        """Points lost on the way."""
        return Measure(UNIT)

    def checks(self, split: Split) -> Sequence[Check]:
        """One check for each task; whether a candidate can be used and loosens nothing is one more."""
        checks = [
            Check(f"{split} {number + 1}: {task.name}", split, data=number, measured=True)
            for number, task in enumerate(self._tasks(split))
        ]
        rules = [Check("loosens nothing", split, data="rules")] if split is Split.WORK else []
        return [*checks, *rules]

    def owns(self, path: str) -> bool:
        """No file is the suite's."""
        return False

    async def examine(self, tree: Path, check: Check, *, seed: int) -> Report:
        """The result of a task with the candidate of a tree."""
        try:
            text = await asyncio.to_thread(self._text, tree)
            thresholds, config = self._candidate(text)
        except (OSError, ValueError) as error:
            return Report(check.id, Outcome.FAILS, str(error), cost=float(FAILED_GOAL_COST))
        if check.data == "rules":
            return Report(check.id, Outcome.HOLDS)
        result = (await self._run(text, check.split, thresholds, config))[check.data]
        outcome = Outcome.HOLDS if result.achieved else Outcome.FAILS
        return Report(check.id, outcome, result.why or f"{result.actions} actions", cost=result.cost)

    def _tasks(self, split: Split) -> tuple[TrialTask, ...]:
        return draw_trial_tasks(split.value, f"judge {self.seed}", TRIAL_SIZES[split])

    def _text(self, tree: Path) -> str:
        created = {"type": "bdi_agent", "meta": dict(self.before)}
        return current_texts(self.component, tree, created)[self.component.paths[0]]

    def _candidate(self, text: str) -> tuple[str, dict[str, Any]]:
        if self.component.kind is ComponentKind.THRESHOLDS:
            read_thresholds(text)
            return text, {}
        spec = read_spec(text, self.component.id.removeprefix(AGENT_PREFIX))
        if spec["type"] != "bdi_agent":
            raise SpecError("an agent with a program is judged by its plan library")
        if wrong := loosened_limits(self.before, spec["config"]):
            raise SpecError(wrong)
        return "", scratch_config(spec["config"])

    async def _run(
        self, text: str, split: Split, thresholds: str, config: dict[str, Any]
    ) -> tuple[TrialResult, ...]:
        name = (hashlib.sha256(text.encode()).hexdigest(), split)
        if name not in self._results:
            trial = run_trial_tasks(self.opener, self._tasks(split), thresholds=thresholds, config=config)
            self._results[name] = asyncio.create_task(trial, name=f"trial {split}")
        try:
            return await self._results[name]
        except BaseException:
            # One that was cut off says nothing of those that are asked later.
            self._results.pop(name, None)
            raise


def scratch_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as it is tried: without what has a meaning in its own workspace only."""
    left_out = {"parent", "budget", "approvals", "thinker", "style"}
    return {name: value for name, value in config.items() if name not in left_out}


PLANS_FORMAT = "explorer worlds 1"
"""Changes whenever the same seed would give other worlds, so that no old verdict is taken for a new one."""
PLANS_SIZES = {Split.WORK: 40, Split.CHOOSE: 160, Split.SEALED: 400}
"""Worlds of each split; with 400 a tenth of the steps saved shows, where the ways stay the same much less."""


@dataclass(frozen=True, slots=True)
class PlansSuite:
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

    def owns(self, path: str) -> bool:
        """No file is the suite's."""
        return False

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
