"""The searchable part of a workspace as Mastermind takes it in: auditor, proposers, maker of suites.

They have the shapes of `engine.mastermind.parts`. What cannot be done is told and ends nothing: other parts
may still have something to propose.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from engine.domain.improvement import Component, ComponentKind, Finding, Proposal
from engine.journal.errors import JournalReadError
from engine.mastermind.foretelling import counts_of
from engine.mastermind.parts import AuditUnavailable, JobRefused, NothingProposed, NotJudged, Progress
from engine.mastermind.search.components import RECIPES, beginning
from engine.mastermind.search.flight_suites import SIZES as FLIGHTS
from engine.mastermind.search.history import read_created
from engine.mastermind.search.modelling import FILE_LIMIT, ModelUnavailable, model_proposals
from engine.mastermind.search.plans_suite import PlansSuite
from engine.mastermind.search.prompts import SIZES as PROMPTS
from engine.mastermind.search.prompts import stands_for
from engine.mastermind.search.searching import SEARCHED, Searching, UnsearchableError
from engine.models import ModelClient, Recorder
from engine.models.port import unrecorded

BEGUN = (ComponentKind.PLANS, ComponentKind.PROMPT, ComponentKind.THRESHOLDS)
"""Kinds with something in force where there is no file yet."""
MOST_BESIDE = 40
"""Files that a model is shown beside those that it may change."""


class JournalAuditor:
    """Finds what the journal shows."""

    name = "journal"

    def __init__(self, searching: Searching, agents: Callable[[], Sequence[str]] = lambda: ()) -> None:
        self._searching, self._agents = searching, agents

    def fits(self, component: Component) -> bool:
        """It can look at everything that agents leave traces of."""
        return component.kind in SEARCHED

    async def components(self) -> Sequence[Component]:
        """What there is beside projects; agents are those that exist now."""
        here = set(self._agents())
        created = await read_created(self._searching.workspace) if here else {}
        known = {name: str(made["type"]) for name, made in created.items() if name in here}
        return await self._searching.components(known)

    async def audit(
        self, component: Component, tree: Path, context: str, progress: Progress
    ) -> Sequence[Finding]:
        """What the journal shows about a component.

        Raises:
            AuditUnavailable: the journal cannot be read.
        """
        try:
            return await self._searching.audit(component, lambda: progress.cancelled)
        except JournalReadError as error:
            raise AuditUnavailable(str(error)) from error


class SearchProposer:
    """Searches, without a model."""

    name = "search"

    def __init__(self, searching: Searching) -> None:
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
        """What a search found; it costs nothing.

        Raises:
            NothingProposed: it cannot be searched.
        """
        ended = False
        try:
            return await self._searching.propose(component, findings, rng, lambda: ended, tree)
        except (UnsearchableError, JournalReadError, NotJudged) as error:
            raise NothingProposed(str(error)) from error
        finally:
            # Cancelled or not, a search in a thread is to end with this.
            ended = True


class ModelProposer:
    """Asks the model that thinks, about components of every kind.

    Args:
        client: who carries the question.
        model: its name.
        record: told of every call.
    """

    name = "model"

    def __init__(self, client: ModelClient, model: str, record: Recorder = unrecorded) -> None:
        self._client, self._model, self._record = client, model, record

    def fits(self, component: Component) -> bool:
        """Whatever has files can be shown to a model."""
        return bool(component.paths)

    async def propose(
        self,
        component: Component,
        tree: Path,
        findings: Sequence[Finding],
        rng: random.Random,
        budget_usd: float,
    ) -> Iterable[Proposal]:
        """What the model proposes; nothing without a budget.

        Raises:
            NothingProposed: it sees nothing to make better, or nothing that it said could be used.
        """
        if budget_usd <= 0:
            return ()
        try:
            texts, beside = await asyncio.to_thread(_texts, tree, component)
        except (OSError, ValueError) as error:
            raise NothingProposed(f"{component.id} cannot be read: {error}") from None
        try:
            proposed = await model_proposals(
                self._client,
                self._model,
                component,
                texts,
                findings,
                budget_usd=budget_usd,
                beside=beside,
                record=self._record,
            )
        except ModelUnavailable as error:
            raise NothingProposed(str(error), error.cost_usd) from error
        if not proposed.proposals:
            raise NothingProposed("it sees nothing to make better", proposed.cost_usd)
        return proposed.proposals


class SearchSuites:
    """Lays down how components that are no projects are judged."""

    def __init__(self, searching: Searching) -> None:
        self._searching = searching

    def fits(self, component: Component) -> bool:
        """Whether there are tasks for such a component."""
        return component.kind in SEARCHED

    def roots(self, component: Component) -> tuple[str, ...]:
        """The component's own files; of recipes all, as they are matched together."""
        return (RECIPES,) if component.kind is ComponentKind.RECIPES else component.paths

    async def sets(self, component: Component, workspace: Path) -> Mapping[str, str]:
        """What is asked, in words by split; see `engine.mastermind.foretelling`."""
        if component.kind is ComponentKind.RECIPES:
            return {
                "work": "every other recorded goal that begins with the same word",
                "choose": "none: recipes are learned, and not chosen",
                "sealed": "the other recorded goals, and all shipped examples",
            }
        if component.kind is ComponentKind.PLANS:
            suite = await self.make(component, workspace, 0)
            what = "worlds of the explorer" if isinstance(suite, PlansSuite) else "checks on recorded goals"
            return {split: f"{count} {what}" for split, count in counts_of(suite).items()}
        if component.kind is ComponentKind.TOOL:
            return {"sealed": "the tests beside it"}
        sizes, what = FLIGHTS, "small tasks"
        if component.kind is ComponentKind.PROMPT:
            sizes, what = PROMPTS, "tasks of each style, flown by the model"
        return {split.value: f"{count} {what}, drawn from the seed" for split, count in sizes.items()}

    async def make(self, component: Component, before: Path, seed: int) -> Any:
        """The suite (`engine.mastermind.judge.suite.Suite`).

        Raises:
            JobRefused: it cannot be judged; the message says why.
            NotJudged: it takes a model, and there is none.
        """
        try:
            return await self._searching.suite(component, before, seed)
        except (UnsearchableError, JournalReadError) as error:
            raise JobRefused(str(error)) from error


def _texts(tree: Path, component: Component) -> tuple[dict[str, str], Mapping[str, str]]:
    """A component's files that are there, and the tests beside them."""
    texts = {path: text for path in component.paths if (text := _text(tree / path)) is not None}
    if component.kind in BEGUN:
        texts = beginning(component, tree) | texts
    rooms = {"/".join(PurePosixPath(path).parts[:2]) for path in component.paths if path.count("/") > 1}
    beside = stands_for(component) if component.kind is ComponentKind.PROMPT else {}
    for room in sorted(rooms):
        for file in sorted((tree / room).rglob("*test*.py"))[:MOST_BESIDE]:
            path = file.relative_to(tree).as_posix()
            if path not in texts and not file.is_symlink() and (text := _text(file)) is not None:
                beside[path] = text
    return texts, beside


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(4 * FILE_LIMIT).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
