"""Campaigns as jobs: which component is meant, the way there, and applying what was found.

Source: mindX spec §5.1, §5.2, §6.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from engine.domain.improvement import (
    CampaignStatus,
    Component,
    ComponentKind,
    Finding,
    ItemStatus,
    Proposal,
    Ruling,
)
from engine.domain.mastermind import (
    Campaign,
    CampaignBudget,
    Candidate,
    JobStatus,
    MastermindSettings,
    MastermindState,
)
from engine.domain.text import clean, clean_line
from engine.journal import mastermind_events as me
from engine.journal.blobs import BlobStore
from engine.mastermind.applying import Applier, MovedError
from engine.mastermind.backlog import Backlog
from engine.mastermind.campaign import Flight, Parts
from engine.mastermind.files import Places
from engine.mastermind.foretelling import sets_of, shadow_text
from engine.mastermind.parts import Asked, AuditUnavailable, JobRefused, NotJudged, Outcome, Paying, Progress
from engine.mastermind.resolving import Reading, close, readings, unknown
from engine.mastermind.shadowing import shadow_run
from engine.mastermind.state import Spine
from engine.mastermind.telling import CHOICES, listed, report
from engine.mastermind.trees import contents
from engine.mastermind.watching import Watch
from engine.parameters.components import references

ASKED = ("seed", "candidates", "seconds", "usd")
"""What was asked for besides, and counts once it is known which component is meant."""
RESUMABLE = (
    CampaignStatus.CANCELLED,
    CampaignStatus.INTERRUPTED,
    CampaignStatus.FAILED,
    CampaignStatus.NEEDS_OPERATOR,
    CampaignStatus.ROLLED_BACK,
)


class Improver:
    """Does `evolve`, `coord_improve`, `campaign_resume`, `coord_shadow` and `coord_apply`.

    Args:
        spine: where events go.
        parts: who audits, proposes, lays down suites and judges.
        backlog: takes the findings that are left.
        applier: writes to the workspace.
        watch: looks after what was applied.
        places: the workspace's files.
        blobs: where contents go.
        settings: budgets.
        scratch: a directory for trees.
        seed: draws a campaign's seed.
        begin_watch: told of a campaign that is applied, with the place in the journal from which it counts.
    """

    def __init__(
        self,
        spine: Spine,
        parts: Parts,
        backlog: Backlog,
        applier: Applier,
        watch: Watch,
        places: Places,
        blobs: BlobStore,
        settings: MastermindSettings,
        scratch: Path,
        seed: Callable[[], int],
        begin_watch: Callable[[str, int], None],
    ) -> None:
        self._spine = spine
        self._parts = parts
        self._backlog = backlog
        self._applier = applier
        self._watch = watch
        self._places = places
        self._blobs = blobs
        self._settings = settings
        self._scratch = scratch
        self._seed = seed
        self._begin_watch = begin_watch

    @property
    def _state(self) -> MastermindState:
        return self._spine.state

    # -------------------------------------------------------------- components

    async def components(self) -> dict[str, Component]:
        """Everything that can be improved, by id in order."""
        found = {one.id: one for auditor in self._parts.auditors for one in await auditor.components()}
        return {name: found[name] for name in sorted(found)}

    async def meant(self, directive: str, chosen: str = "", *, alone: bool = True) -> list[Reading]:
        """The components that a directive means: one, or several that are close.

        Args:
            directive: what was typed.
            chosen: the id of the component that the operator chose; empty for none.
            alone: whether the only component there is may be meant without being named.

        Raises:
            JobRefused: none is meant, or what was chosen is none.
        """
        there = await self.components()
        if chosen:
            if chosen not in there:
                raise JobRefused(f"there is no component {clean_line(chosen, limit=80)!r}; {listed(there)}")
            return [Reading(there[chosen], "the operator chose it", 0.0)]
        if not alone and directive in there:
            return [Reading(there[directive], f"{directive} is its id", 0.0)]
        found = close(readings(directive, there.values()))
        if found:
            strange = unknown(directive, found)
            more = f"; nothing here is called {' or '.join(strange)}" if strange else ""
            return [replace(one, rule=one.rule + more) for one in found]
        if len(there) == 1 and alone and not references(directive):
            (only,) = there.values()
            return [Reading(only, "it is the only component", 0.0)]
        raise JobRefused(f"no component is named in {clean_line(directive, limit=80)!r}; {listed(there)}")

    # -------------------------------------------------------------- evolve, coord_improve

    async def evolve(self, asked: Asked, progress: Progress) -> Outcome:
        """`evolve DIRECTIVE`: find out which component is meant, and run a campaign on it."""
        if not asked.argument.strip():
            raise JobRefused("evolve needs a directive, such as: evolve the sample project")
        return await self._improve(asked, progress, asked.argument, asked.argument, alone=True)

    async def improve(self, asked: Asked, progress: Progress) -> Outcome:
        """`coord_improve COMPONENT [context]`: run a campaign on a component."""
        name, _, context = asked.argument.strip().partition(" ")
        if not name:
            raise JobRefused("coord_improve needs a component; " + listed(await self.components()))
        there = await self.components()
        wanted = name if name in there else asked.argument
        context = context.strip() if name in there else ""
        return await self._improve(asked, progress, wanted, context, alone=False)

    async def _improve(
        self, asked: Asked, progress: Progress, wanted: str, context: str, *, alone: bool
    ) -> Outcome:
        found = await self.meant(wanted, str(asked.options.get("component") or ""), alone=alone)
        if len(found) > 1:
            choices = [{"component": one.component.id, "rule": one.rule} for one in found[:CHOICES]]
            told = "; ".join(f"{one.component.id} ({one.rule})" for one in found[:CHOICES])
            self._spine.tell("directive.asked", f"{asked.job}: {told}", actor=asked.actor)
            return Outcome(
                JobStatus.NEEDS_OPERATOR,
                f"several components are meant: {told}",
                {
                    "choices": choices,
                    "asked": {name: asked.options[name] for name in ASKED if name in asked.options},
                },
            )
        campaign = self.begin(asked, found[0], asked.argument.strip(), "")
        return await self.fly(campaign, asked, progress, context)

    def begin(self, asked: Asked, reading: Reading, directive: str, item: str) -> Campaign:
        """Begin a campaign on a component, with the budget and the seed that were asked for."""
        name = f"k{len(self._state.campaigns) + 1}"
        seed = asked.options.get("seed")
        begun = me.CampaignBegun(
            campaign=name,
            directive=clean(directive, limit=8_000),
            component=reading.component,
            rule=clean_line(reading.rule),
            seed=int(seed) if seed is not None else self._seed(),
            budget=self.budget(asked),
            job=asked.job,
            item=item,
        )
        self._spine.append(begun, actor=asked.actor)
        return self._state.campaigns[name]

    def budget(self, asked: Asked) -> CampaignBudget:
        """What a campaign may take: as it was asked for, else as the settings say."""
        usual = self._settings.budget
        said = {
            name: asked.options[name]
            for name in ("candidates", "seconds", "usd")
            if asked.options.get(name) is not None
        }
        return replace(usual, **said)

    async def sets(self, component: Component) -> dict[str, str]:
        """What a component is judged by, in words by split, before anything runs."""
        try:
            return await sets_of(self._parts.maker(component), component, self._places.workspace)
        except (JobRefused, NotJudged, OSError, ValueError) as error:
            return {"sealed": f"unknown: {error}"}

    async def resume(self, asked: Asked, progress: Progress) -> Outcome:
        """`campaign_resume ID`: go on with a campaign that was cut off or whose files moved on."""
        campaign = self.campaign(asked.argument)
        if campaign.status not in RESUMABLE:
            raise JobRefused(f"{campaign.id} is {campaign.status}; there is nothing to go on with")
        said = me.CampaignStaged(
            campaign=campaign.id, status=CampaignStatus.AUDITING, text="it goes on", job=asked.job
        )
        self._spine.append(said, actor=asked.actor)
        return await self.fly(campaign, asked, progress, "")

    def campaign(self, wanted: str) -> Campaign:
        """A campaign by its id.

        Raises:
            JobRefused: there is none.
        """
        found = self._state.campaigns.get(wanted.strip())
        if found is None:
            known = ", ".join(list(self._state.campaigns)[-CHOICES:]) or "none yet"
            raise JobRefused(f"there is no campaign {clean_line(wanted, limit=40)!r}; campaigns: {known}")
        return found

    async def fly(self, campaign: Campaign, asked: Asked, progress: Progress, context: str) -> Outcome:
        """Let a campaign go its way, and put the findings that are left into the backlog.

        Raises:
            JobRefused: the component cannot be judged.
        """
        flight = Flight(
            self._spine,
            campaign.id,
            self._parts,
            self._places,
            self._blobs,
            self._scratch / campaign.id,
            progress,
        )
        try:
            left = await flight.fly(context)
        except AuditUnavailable as error:
            return Outcome(JobStatus.FAILED, f"no audit could be made: {error}", {"campaign": campaign.id})
        campaign = self._state.campaigns[campaign.id]
        entered = [
            self._backlog.add_finding(one, source="audit", component=campaign.component) for one in left
        ]
        await self._spine.commit()
        critical = campaign.component is not None and campaign.component.critical
        waits = campaign.status is CampaignStatus.NEEDS_OPERATOR
        if waits and asked.options.get("apply") and not critical:
            return await self._apply(campaign, asked, progress)
        answer = report(campaign) | {"backlog": [one.item.id for one in entered]}
        more = f"; {len(entered)} findings are left, in the backlog" if entered else ""
        return Outcome(
            JobStatus.NEEDS_OPERATOR if waits else JobStatus.DONE, f"{campaign.message}{more}", answer
        )

    # -------------------------------------------------------------- shadow

    async def shadow(self, asked: Asked, progress: Progress) -> Outcome:
        """`coord_shadow ID`: run the candidate that waits beside what is there, with no effect."""
        campaign = self.campaign(asked.argument)
        candidate = campaign.candidate(self.waiting(campaign))
        assert candidate is not None
        progress.tell(0, 0, f"{candidate.id} runs beside what is there, on tasks drawn for this")
        scratch = self._scratch / f"{campaign.id}-shadow"
        ran = await shadow_run(campaign, candidate, self._parts, self._places, self._blobs, scratch)
        await self._spine.write(me.ShadowRun(campaign=campaign.id, shadow=ran), actor=asked.actor)
        campaign = self._state.campaigns[campaign.id]
        return Outcome(JobStatus.NEEDS_OPERATOR, shadow_text(campaign), report(campaign))

    # -------------------------------------------------------------- applying

    async def apply(self, asked: Asked, progress: Progress) -> Outcome:
        """`coord_apply ID`: write the candidate that waits to the workspace."""
        return await self._apply(self.campaign(asked.argument), asked, progress)

    async def _apply(self, campaign: Campaign, asked: Asked, progress: Progress) -> Outcome:
        candidate = self.waiting(campaign, str(asked.options.get("diff") or ""))
        progress.tell(0, 0, f"{candidate} is written and looked at again")
        chosen = campaign.candidate(candidate)
        assert chosen is not None
        since = await self._watch.head()
        try:
            told = await self._applier.apply(
                campaign,
                chosen,
                actor=asked.actor,
                validate=lambda now: self._still_good(now),
                rates=self._watch.rates,
            )
        except MovedError as error:
            stage = me.CampaignStaged(
                campaign=campaign.id, status=CampaignStatus.NEEDS_OPERATOR, text=str(error)
            )
            await self._spine.write(stage)
            return Outcome(JobStatus.NEEDS_OPERATOR, str(error), {"campaign": campaign.id})
        campaign = self._state.campaigns[campaign.id]
        applied = campaign.status is CampaignStatus.APPLIED
        if applied:
            self._mended(campaign, chosen)
            await self._spine.commit()
            self._begin_watch(campaign.id, since)
            told += _not_live(campaign)
        elif campaign.item:
            self._backlog.move(campaign.item, ItemStatus.FAILED, told, campaign.id)
            await self._spine.commit()
        answer = report(campaign) | {"files": sorted(chosen.files)}
        return Outcome(JobStatus.DONE if applied else JobStatus.FAILED, told, answer)

    def _mended(self, campaign: Campaign, chosen: Candidate) -> None:
        """Close the items of the backlog that an applied candidate, or one it was made from, answers."""
        answered: list[Finding] = []
        made: Candidate | None = chosen
        while made is not None:
            answered += made.answers
            made = campaign.candidate(made.parent)
        marks = {(one.target, one.concern, one.path, one.name) for one in answered}
        for item in list(self._state.items.values()):
            found = item.finding
            if found is None or item.status not in (ItemStatus.PENDING, ItemStatus.FAILED):
                continue
            if (found.target, found.concern, found.path, found.name) in marks:
                self._backlog.move(item.id, ItemStatus.COMPLETED, f"{chosen.id} is applied", campaign.id)

    def waiting(self, campaign: Campaign, seen: str = "") -> str:
        """The candidate of a campaign that waits for the operator.

        Raises:
            JobRefused: none does, or the operator saw another difference.
        """
        candidate = campaign.candidate(campaign.chosen)
        if campaign.status is not CampaignStatus.NEEDS_OPERATOR or candidate is None:
            raise JobRefused(f"{campaign.id} is {campaign.status}; no candidate of it waits for you")
        if seen and seen != candidate.diff:
            raise JobRefused(f"{candidate.id} has another difference than the one that was shown; look again")
        return candidate.id

    async def _still_good(self, campaign: Campaign) -> tuple[str, ...]:
        """What does not hold in the workspace with the candidate in it (behaviour 69)."""
        component, application = campaign.component, campaign.application
        assert component is not None
        assert application is not None
        maker, comparer = self._parts.maker(component), self._parts.comparer
        assert comparer is not None
        self._parts.prepare()
        scratch = self._scratch / f"{campaign.id}-applied"
        try:
            after, before = scratch / "after", scratch / "before"
            roots = dict.fromkeys((*maker.roots(component), *component.paths))
            await asyncio.to_thread(self._places.copy_clean, roots, after)
            await asyncio.to_thread(self._places.copy_clean, roots, before)
            await asyncio.to_thread(self._put_back, before, campaign)
            suite = await maker.make(component, before, campaign.seed)
            if isinstance(suite, Paying):  # what was paid for is not paid for again
                return await asyncio.to_thread(suite.unsound, after)
            there = await asyncio.to_thread(contents, after)
            said = {
                path: there[path].decode("utf-8", "replace") if path in there else None
                for path in application.after
            }
            verdict = await comparer.compare(
                before,
                after,
                component,
                Proposal("what is applied", "campaign", said),
                suite,
                seed=campaign.seed,
                seconds=campaign.budget.seconds,
                sealed=False,
            )
        finally:
            await asyncio.to_thread(self._places.discard, scratch)
        if verdict.ruling in (Ruling.BETTER, Ruling.NO_BETTER):
            return ()
        return verdict.reasons or verdict.broken or (str(verdict.ruling),)

    def _put_back(self, tree: Path, campaign: Campaign) -> None:
        assert campaign.application is not None
        for path, touched in campaign.application.before.items():
            there = tree / path
            if touched.blob is None:
                there.unlink(missing_ok=True)
            else:
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(self._blobs.read(touched.blob))


def _not_live(campaign: Campaign) -> str:
    """What an applied specification does not change: the agent that lives; empty for other components."""
    component = campaign.component
    if component is None or component.kind is not ComponentKind.AGENT:
        return ""
    agent = component.id.partition(":")[2]
    file = ", ".join(component.paths)
    return f"; {agent} itself keeps the settings that it was made with: an agent made from {file} has these"
