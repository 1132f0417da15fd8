"""Who audits, proposes and lays down how it is judged, for all components that are not projects.

Each fits what `engine.mastermind` puts itself together from. Source: mindX spec §6.4, steering spec §3
idea 13.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.bdi.problems import ProgramError
from engine.domain.improvement import Component, ComponentKind, Finding, Proposal
from engine.journal.errors import JournalReadError
from engine.mastermind.parts import NotJudged
from engine.mastermind.search.agent_specs import SpecError, read_spec, spec_changes
from engine.mastermind.search.audit import audit
from engine.mastermind.search.components import AGENT_PREFIX, RECIPES, beginning, components, library_of
from engine.mastermind.search.flight_search import Candidate, best_flown
from engine.mastermind.search.flight_suites import FlightSuite, in_scratch
from engine.mastermind.search.flights import Opener
from engine.mastermind.search.history import History, read_created, read_history
from engine.mastermind.search.plan_changes import Library
from engine.mastermind.search.plan_search import Better, Effort, better_than, look_for_better
from engine.mastermind.search.planning import recipe_texts
from engine.mastermind.search.plans_suite import PlansSuite
from engine.mastermind.search.prompts import NO_MODEL, ModelOpener, PromptSuite
from engine.mastermind.search.recipes import RecipesSuite, propose_recipes
from engine.mastermind.search.recorded_goals import read_recordings
from engine.mastermind.search.recorded_suite import RecordedSuite
from engine.mastermind.search.recorded_suite import look_for_better as look_in_record
from engine.mastermind.search.thresholds import neighbours, written
from engine.parameters.thresholds import ThresholdsError, read_thresholds

SEARCHED = frozenset(
    {
        ComponentKind.PLANS,
        ComponentKind.RECIPES,
        ComponentKind.PROMPT,
        ComponentKind.THRESHOLDS,
        ComponentKind.AGENT,
    }
)
"""Kinds of components that are searched and judged here."""


class UnsearchableError(ValueError):
    """A component cannot be searched or judged as it is; the message says why and what to do, in one line."""


@dataclass(slots=True)
class Searching:
    """The searchable part of a workspace.

    Args:
        workspace: its directory.
        opener: opens an engine on a scratch workspace, without a model.
        effort: how much is tried for plan libraries.
        thinking: opens one with the model that thinks; None where there is none.
        model: that model's name.
    """

    workspace: Path
    opener: Opener
    effort: Effort = field(default_factory=Effort)
    thinking: ModelOpener | None = None
    model: str = ""

    async def components(self, agents: Mapping[str, str] | None = None) -> tuple[Component, ...]:
        """What can be improved; `agents` are those that exist, with their types."""
        return await asyncio.to_thread(components, self.workspace, agents, self.model)

    async def audit(
        self, component: Component | None = None, cancelled: Callable[[], bool] = lambda: False
    ) -> tuple[Finding, ...]:
        """What the journal shows, of one component or of all.

        Raises:
            JournalReadError: the journal cannot be read.
        """
        found = await audit(self.workspace, cancelled)
        return tuple(one for one in found if component is None or one.target == component.id)

    # ------------------------------------------------------------------ proposing

    async def propose(
        self,
        component: Component,
        findings: Sequence[Finding],
        rng: random.Random,
        cancelled: Callable[[], bool] = lambda: False,
        tree: Path | None = None,
    ) -> Iterable[Proposal]:
        """What a search without a model found to be better; none where nothing was.

        Args:
            component: one of `components`.
            findings: what is to be mended.
            rng: all randomness; the same gives the same.
            cancelled: asked while it is searched.
            tree: a copy of the workspace's files to build upon; the workspace itself when left out.

        Raises:
            UnsearchableError: the component cannot be searched as it is.
            JournalReadError: the journal cannot be read.
        """
        answers = tuple(one for one in findings if one.target == component.id)
        base = tree or self.workspace
        match component.kind:
            case ComponentKind.PLANS:
                return await self._plans(component, base, answers, rng, cancelled)
            case ComponentKind.RECIPES:
                history = await read_history(self.workspace, cancelled)
                texts = await asyncio.to_thread(recipe_texts, base / RECIPES)
                return await asyncio.to_thread(
                    propose_recipes, texts, component, history, findings, cancelled
                )
            case ComponentKind.THRESHOLDS:
                return await self._thresholds(component, base, answers, rng)
            case ComponentKind.AGENT:
                return await self._agent(component, base, answers, rng)
        return ()

    async def _plans(
        self,
        component: Component,
        base: Path,
        answers: tuple[Finding, ...],
        rng: random.Random,
        cancelled: Callable[[], bool],
    ) -> tuple[Proposal, ...]:
        (text,) = (await self.now(component, base)).values()
        try:
            if not _is_explorers(text, component.paths[0]):
                recordings = await asyncio.to_thread(read_recordings, self.workspace)
                here = (await self.now(component)).values()
                suite = await asyncio.to_thread(RecordedSuite.of, component, base, recordings, list(here))
                return await asyncio.to_thread(look_in_record, suite, text, answers, rng, cancelled)
            found = await asyncio.to_thread(look_for_better, text, rng, self.effort, cancelled)
        except ProgramError as error:
            raise UnsearchableError(f"{component.paths[0]} cannot be read: {error}") from None
        if found is not None:
            return (_plans_proposal(component, found, answers),)
        for ref, worked in generated_that_worked(await read_history(self.workspace, cancelled), component):
            what = f"the plans that a model made for an agent ({ref})"
            try:
                found = await asyncio.to_thread(better_than, text, worked, what, rng, self.effort)
            except ProgramError:
                continue
            if found is not None:
                return (_plans_proposal(component, found, answers),)
        return ()

    async def _thresholds(
        self, component: Component, base: Path, answers: tuple[Finding, ...], rng: random.Random
    ) -> tuple[Proposal, ...]:
        (text,) = (await self.now(component, base)).values()
        try:
            tables = read_thresholds(text)
        except ThresholdsError as error:
            raise UnsearchableError(str(error)) from None
        candidates = (
            Candidate(what, new, thresholds=new)
            for what, changed in neighbours(tables, rng)
            for new in (written(changed),)
        )
        return await self._flown(component, Candidate("now", text, thresholds=text), candidates, answers, rng)

    async def _agent(
        self, component: Component, base: Path, answers: tuple[Finding, ...], rng: random.Random
    ) -> tuple[Proposal, ...]:
        agent = component.id.removeprefix(AGENT_PREFIX)
        (text,) = (await self.now(component, base)).values()
        try:
            spec = read_spec(text, agent)
            if spec["type"] != "bdi_agent":
                raise UnsearchableError(
                    f"{agent} follows a program: evolve its plan library, not its specification"
                )
            candidates = [
                Candidate(what, new, config=in_scratch(read_spec(new, agent)["config"]))
                for what, new in spec_changes(text, agent, rng)
            ]
        except SpecError as error:
            raise UnsearchableError(str(error)) from None
        now = Candidate("now", text, config=in_scratch(spec["config"]))
        return await self._flown(component, now, candidates, answers, rng)

    async def _flown(
        self,
        component: Component,
        now: Candidate,
        candidates: Iterable[Candidate],
        answers: tuple[Finding, ...],
        rng: random.Random,
    ) -> tuple[Proposal, ...]:
        found = await best_flown(self.opener, now, candidates, rng)
        if found is None:
            return ()
        why = (
            f"the best of {found.tried} changes on work tasks; on choose tasks {found.before:g} points lost "
            f"before and {found.after:g} with it"
        )
        origin = f"search:{component.kind}"
        files = {component.paths[0]: found.candidate.text}
        return (Proposal(found.candidate.what, origin, files, why=why, answers=answers),)

    # ------------------------------------------------------------------ judging

    async def suite(self, component: Component, before: Path, seed: int) -> Any:
        """How a component is judged (`engine.mastermind.judge.suite.Suite`).

        Args:
            component: one of `components`.
            before: a copy of the workspace's files that it needs.
            seed: of the campaign.

        Raises:
            UnsearchableError: it cannot be judged here; the message says why.
            NotJudged: it takes a model, or a record, and there is none.
            JournalReadError: the journal cannot be read.
        """
        match component.kind:
            case ComponentKind.PLANS:
                return await self._plans_suite(component, before, seed)
            case ComponentKind.RECIPES:
                history = await read_history(self.workspace)
                return await asyncio.to_thread(RecipesSuite.of, component, before, history)
            case ComponentKind.PROMPT:
                if self.thinking is None:
                    raise NotJudged(NO_MODEL)
                return PromptSuite(component, seed, self.thinking, self.model)
            case ComponentKind.THRESHOLDS:
                return FlightSuite(component, seed, self.opener)
            case ComponentKind.AGENT:
                created = await self._created(component)
                if created.get("type") != "bdi_agent":
                    raise UnsearchableError(f"{component.id} follows a program: evolve its plan library")
                return FlightSuite(component, seed, self.opener, created["meta"])
        raise UnsearchableError(f"{component.title} is not judged here: there are no tasks for it")

    async def _plans_suite(self, component: Component, before: Path, seed: int) -> PlansSuite | RecordedSuite:
        """Worlds for a library of the explorer's, recorded goals for any other one."""
        (text,) = (await self.now(component, before)).values()
        try:
            if _is_explorers(text, component.paths[0]):
                return PlansSuite(component, seed)
            recordings = await asyncio.to_thread(read_recordings, self.workspace)
            return await asyncio.to_thread(RecordedSuite.of, component, before, recordings)
        except ProgramError as error:
            raise UnsearchableError(f"{component.paths[0]} cannot be read: {error}") from None

    async def now(self, component: Component, tree: Path | None = None) -> dict[str, str]:
        """The text of each file of a component as it is, or as it begins where there is none yet.

        Args:
            component: one of `components`.
            tree: a copy of the workspace's files; the workspace itself when left out.

        Raises:
            UnsearchableError: a file cannot be read.
        """
        created = await self._created(component) if component.kind is ComponentKind.AGENT else {}
        try:
            return await asyncio.to_thread(beginning, component, tree or self.workspace, created)
        except (OSError, ValueError) as error:
            raise UnsearchableError(f"{component.id} cannot be read: {error}") from None

    async def _created(self, component: Component) -> dict[str, Any]:
        try:
            created = await read_created(self.workspace)
        except JournalReadError as error:
            raise UnsearchableError(str(error)) from None
        return created.get(component.id.removeprefix(AGENT_PREFIX), {})


def _is_explorers(text: str, path: str) -> bool:
    """Whether a library is for the world in which libraries are tried: whether it has plans for !reach(X).

    Raises:
        ProgramError: it cannot be read.
    """
    plans = Library(text, path).program.plans
    goals = {getattr(plan.trigger.literal, "indicator", "") for plan in plans if plan.trigger.is_goal}
    return "reach/1" in goals


def generated_that_worked(history: History, component: Component) -> Iterator[tuple[str, str]]:
    """Plans that were generated for agents of a library whose goals were achieved then, as libraries.

    Args:
        history: what the journal says.
        component: the library that such agents were created from.
    """
    achieved = {agent for (agent, _), goal in history.goals.items() if goal.achieved}
    texts: dict[str, list[str]] = {}
    refs: dict[str, str] = {}
    for ref, agent, plans in history.generated:
        if agent in achieved and library_of(history.agents.get(agent, {})) == component.id:
            texts.setdefault(agent, []).extend(plans)
            refs[agent] = ref
    for agent, made in texts.items():
        yield refs[agent], "\n\n".join(dict.fromkeys(plan.strip() for plan in made)) + "\n"


def _plans_proposal(component: Component, found: Better, answers: tuple[Finding, ...]) -> Proposal:
    why = (
        f"of {found.tried} libraries tried the best; in {found.worlds} choose worlds "
        f"{found.before:.1f} cycles in the mean before, {found.after:.1f} with it"
    )
    return Proposal(
        "; ".join(found.changes), "search:plans", {component.paths[0]: found.text}, why=why, answers=answers
    )
