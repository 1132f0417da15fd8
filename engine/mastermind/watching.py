"""Watching what was applied: do actions that concern it fail more often than before?

An action concerns a component when its arguments or its answer name one of the component's files; for what
steers all agents (thresholds, recipes, prompts) every action does. Source: issue 8, item 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from engine.domain.action import ResultStatus
from engine.domain.improvement import CampaignStatus, Component, ComponentKind
from engine.domain.mastermind import Campaign, MastermindSettings
from engine.journal import mastermind_events as me
from engine.journal.event import Event, of_agent
from engine.journal.events import ActionFinished, ActionRequested
from engine.journal.store import JournalStore
from engine.mastermind.backlog import seconds_between
from engine.mastermind.state import Spine

NEWEST = 400
"""Events of either kind that are looked at for how it was before."""
LEAST = 5
"""Actions since it was applied before anything is told."""
ALL = (ComponentKind.THRESHOLDS, ComponentKind.RECIPES, ComponentKind.PROMPT)


class Tally:
    """Counts the actions that concern a component, and those of them that failed."""

    def __init__(self, component: Component) -> None:
        names = {path.removeprefix("sandbox/").rpartition("/")[2] for path in component.paths}
        self._names = tuple(json.dumps(name)[1:-1] for name in names if name)
        self._all = component.kind in ALL
        self._asked: set[tuple[str, str]] = set()
        self.failures = 0
        self.actions = 0

    def take(self, event: Event) -> None:
        """Count an event."""
        if event.kind == ActionRequested.kind and of_agent(event.stream):
            if self._concerns(event.body):
                self._asked.add((event.stream, json.loads(event.body)["action"]))
        elif event.kind == ActionFinished.kind and of_agent(event.stream):
            said = json.loads(event.body)
            action = (event.stream, said["action"])
            if action in self._asked or self._concerns(event.body):
                self._asked.discard(action)
                self.actions += 1
                self.failures += said["status"] != ResultStatus.SUCCESS

    def _concerns(self, body: str) -> bool:
        return self._all or any(name in body for name in self._names)


class Watch:
    """Looks after the campaigns that are applied.

    Args:
        spine: where it tells what it sees.
        store: the journal.
        settings: how long, and how much more is told.
    """

    def __init__(self, spine: Spine, store: JournalStore, settings: MastermindSettings) -> None:
        self._spine = spine
        self._store = store
        self._settings = settings

    async def rates(self, component: Component) -> tuple[int, int]:
        """Failures and actions of a component among the newest events.

        Raises:
            JournalError: the journal cannot be read.
        """
        tally = Tally(component)
        kinds = (ActionRequested.kind, ActionFinished.kind)
        events = [one for kind in kinds for one in await self._store.last(NEWEST, kind=kind)]
        for event in sorted(events, key=lambda one: one.seq):
            tally.take(event)
        return tally.failures, tally.actions

    async def head(self) -> int:
        """The place of the newest event."""
        return await self._store.head_seq()

    def watched(self, now: str) -> Iterable[Campaign]:
        """The campaigns that are applied, not told of, and young enough."""
        for campaign in self._spine.state.campaigns.values():
            application = campaign.application
            if application is None or campaign.told or not application.ended or campaign.component is None:
                continue
            young = seconds_between(application.ended, now) <= self._settings.watch_s
            if campaign.status is CampaignStatus.APPLIED and young:
                yield campaign

    async def follow(self, campaign: str, since: int) -> None:
        """Count what happens from a place in the journal on, until it is told or nobody watches any more."""
        found = self._spine.state.campaigns[campaign]
        assert found.component is not None
        assert found.application is not None
        tally, before = Tally(found.component), found.application
        async for event in self._store.events(since, follow=True):
            if event.kind not in (ActionRequested.kind, ActionFinished.kind):
                continue
            now = self._spine.state.campaigns[campaign]
            if now not in tuple(self.watched(event.at)):
                return
            tally.take(event)
            if self._worse(tally, before.failures_before, before.actions_before):
                text = (
                    f"since {campaign} was applied {tally.failures} of {tally.actions} actions on "
                    f"{found.component.id} failed, before it {before.failures_before} of "
                    f"{before.actions_before}: coord_rollback {campaign} undoes it"
                )
                told = me.WatchTold(
                    campaign=campaign, text=text, before=before.failures_before, after=tally.failures
                )
                await self._spine.write(told)
                return

    def _worse(self, tally: Tally, failures: int, actions: int) -> bool:
        if tally.actions < LEAST:
            return False
        expected = tally.actions * failures / actions if actions else 0.0
        return tally.failures >= expected + self._settings.watch_more
