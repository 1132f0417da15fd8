"""Campaigns as jobs: which component is meant, running it, and applying the result."""

from __future__ import annotations

import asyncio
import operator
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from engine.core import campaigns as me
from engine.core.improvement import (
    RESUMABLE,
    Campaign,
    CampaignBudget,
    CampaignStatus,
    Candidate,
    Component,
    Finding,
    ItemStatus,
    JobStatus,
    MastermindSettings,
    MastermindState,
    Proposal,
    Ruling,
    Shadow,
    Verdict,
)
from engine.core.reasons import Reason
from engine.core.text import clean, clean_line
from engine.improve.backlog import Backlog, ComponentMatch, best_matches, match_components, unknown_names
from engine.improve.campaigns.applier import Applier, FileMovedError
from engine.improve.campaigns.campaign import CampaignRun
from engine.improve.campaigns.files import copy_with_files, texts_of
from engine.improve.campaigns.parts import CampaignParts
from engine.improve.campaigns.report import (
    CHOICES,
    cleaned_verdict,
    components_text,
    count_checks,
    report,
    shadow_text,
)
from engine.improve.ports import (
    AuditUnavailable,
    JobRefused,
    JobRequest,
    JobResult,
    NotJudged,
    Progress,
    Suite,
)
from engine.improve.state import EventStream
from engine.models.choice import NO_MODEL
from engine.tools.parameters.paths import references

ASKED = ("seed", "candidates", "seconds", "usd", "tokens", "allow")
"""What was asked for besides, and counts once it is known which component is meant."""


_mark = operator.attrgetter("target", "concern", "path", "name")
"""What findings have in common that are one; lines do not count, for they move."""


@dataclass(slots=True)
class CampaignRunner:
    """Does `evolve`, `coord_improve`, `campaign_resume`, `coord_shadow` and `coord_apply`.

    Args:
        parts: who audits, proposes, makes suites and judges.
        backlog: takes the findings that are left.
        applier: writes to the workspace.
        settings: budgets.
        seed: draws a campaign's seed.
    """

    _parts: CampaignParts
    _backlog: Backlog
    _applier: Applier
    _settings: MastermindSettings
    _seed: Callable[[], int]

    @property
    def _stream(self) -> EventStream:
        return self._parts.stream

    @property
    def _state(self) -> MastermindState:
        return self._parts.stream.state

    # -------------------------------------------------------------- components

    async def components(self) -> dict[str, Component]:
        """Everything that can be improved, by id in order."""
        components = {
            component.id: component
            for auditor in self._parts.auditors
            for component in await auditor.components()
        }
        return {name: components[name] for name in sorted(components)}

    async def matching_components(
        self, directive: str, chosen: str = "", *, alone: bool = True
    ) -> list[ComponentMatch]:
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
                raise JobRefused(
                    f"there is no component {clean_line(chosen, limit=80)!r}; {components_text(there)}"
                )
            return [ComponentMatch(there[chosen], "the operator chose it", 0.0)]
        if not alone and directive in there:
            return [ComponentMatch(there[directive], f"{directive} is its id", 0.0)]
        matches = best_matches(match_components(directive, there.values()))
        if matches:
            strange = unknown_names(directive, matches)
            more = f"; nothing here is called {' or '.join(strange)}" if strange else ""
            return [replace(match, rule=match.rule + more) for match in matches]
        if len(there) == 1 and alone and not references(directive):
            (only,) = there.values()
            return [ComponentMatch(only, "it is the only component", 0.0)]
        raise JobRefused(
            f"no component is named in {clean_line(directive, limit=80)!r}; {components_text(there)}"
        )

    # -------------------------------------------------------------- evolve, coord_improve

    async def evolve(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`evolve DIRECTIVE`: find out which component is meant, and run a campaign on it."""
        if not asked.argument.strip():
            raise JobRefused("evolve needs a directive, such as: evolve the sample project")
        return await self._improve(asked, progress, asked.argument, alone=True)

    async def improve(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`coord_improve COMPONENT [context]`: run a campaign on a component."""
        if not asked.argument.strip():
            raise JobRefused("coord_improve needs a component; " + components_text(await self.components()))
        directive = await self.named_component(asked.argument)
        return await self._improve(asked, progress, directive, alone=False)

    async def named_component(self, argument: str) -> str:
        """The component whose id begins what was typed behind `coord_improve`; all of it where none does."""
        name = argument.strip().partition(" ")[0]
        return name if name in await self.components() else argument

    async def _improve(
        self, asked: JobRequest, progress: Progress, directive: str, *, alone: bool
    ) -> JobResult:
        chosen = str(asked.options.get("component") or "")
        matches = await self.matching_components(directive, chosen, alone=alone)
        if len(matches) > 1:
            choices = [{"component": match.component.id, "rule": match.rule} for match in matches[:CHOICES]]
            listing = "; ".join(f"{match.component.id} ({match.rule})" for match in matches[:CHOICES])
            self._stream.tell("directive.asked", f"{asked.job}: {listing}", actor=asked.actor)
            besides = {name: asked.options[name] for name in ASKED if name in asked.options}
            message, answer = (
                f"several components are meant: {listing}",
                {"choices": choices, "asked": besides},
            )
            return JobResult(JobStatus.NEEDS_OPERATOR, message, answer)
        self.check_proposers(matches[0].component)
        campaign = self.begin(asked, matches[0], asked.argument.strip(), "")
        return await self.run_campaign(campaign, asked, progress)

    def check_proposers(self, component: Component) -> None:
        """Whether somebody can propose a change of a component.

        Raises:
            JobRefused: only a model could, and there is none.
        """
        if not any(proposer.proposes(component) for proposer in self._parts.proposers):
            raise JobRefused(f"only a model can propose changes of {component.id}, and {NO_MODEL}")

    def begin(self, asked: JobRequest, reading: ComponentMatch, directive: str, item: str) -> Campaign:
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
        self._stream.append(begun, actor=asked.actor)
        return self._state.campaigns[name]

    def budget(self, asked: JobRequest) -> CampaignBudget:
        """What a campaign may take: as it was asked for, else as the settings say."""
        usual = self._settings.budget
        options = {name: asked.options[name] for name in ASKED[1:] if asked.options.get(name) is not None}
        return replace(usual, **options)

    async def sets(self, component: Component) -> dict[str, str]:
        """What a component is judged by, in words by split, before anything runs."""
        try:
            return dict(await self._parts.maker(component).sets(component, self._parts.places.workspace))
        except (JobRefused, NotJudged, OSError, ValueError) as error:
            return {"sealed": f"unknown: {error}"}

    async def resume(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`campaign_resume ID`: resume a campaign that was cut off or whose files moved on."""
        campaign = self.campaign(asked.argument)
        if campaign.status not in RESUMABLE:
            raise JobRefused(f"{campaign.id} is {campaign.status}; there is nothing to resume")
        stage = me.CampaignStaged(
            campaign=campaign.id, status=CampaignStatus.AUDITING, text="it goes on", job=asked.job
        )
        self._stream.append(stage, actor=asked.actor)
        return await self.run_campaign(campaign, asked, progress)

    def campaign(self, name: str) -> Campaign:
        """A campaign by its id.

        Raises:
            JobRefused: there is none.
        """
        campaign = self._state.campaigns.get(name.strip())
        if campaign is None:
            known = ", ".join(list(self._state.campaigns)[-CHOICES:]) or "none yet"
            raise JobRefused(f"there is no campaign {clean_line(name, limit=40)!r}; campaigns: {known}")
        return campaign

    async def run_campaign(self, campaign: Campaign, asked: JobRequest, progress: Progress) -> JobResult:
        """Run a campaign, and put the findings that are left into the backlog.

        Raises:
            JobRefused: the component cannot be judged.
        """
        try:
            left = await CampaignRun(self._parts, campaign.id, progress).run()
        except AuditUnavailable as error:
            return JobResult(JobStatus.FAILED, f"no audit could be made: {error}", {"campaign": campaign.id})
        campaign = self._state.campaigns[campaign.id]
        entered = [self._backlog.add_finding(finding, campaign.component) for finding in left]
        await self._stream.commit()
        critical = self._backlog.critical(campaign.component.id, campaign.component)
        waits = campaign.status is CampaignStatus.NEEDS_OPERATOR
        if waits and asked.options.get("apply") and not critical:
            return await self._apply(campaign, asked, progress)
        answer = report(campaign) | {"backlog": [finding.item.id for finding in entered]}
        more = f"; {len(entered)} findings are left, in the backlog" if entered else ""
        ending = JobStatus.NEEDS_OPERATOR if waits else JobStatus.DONE
        return JobResult(ending, f"{campaign.message}{more}", answer)

    # -------------------------------------------------------------- shadow

    async def shadow(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`coord_shadow ID`: run the candidate that waits beside what is there, with no effect."""
        campaign = self.campaign(asked.argument)
        candidate = campaign.candidate(self.waiting(campaign))
        assert candidate is not None
        progress.tell(0, 0, f"{candidate.id} runs beside what is there, on tasks drawn for this")
        shadow = await self._shadow(campaign, candidate)
        await self._stream.write(me.ShadowRun(campaign=campaign.id, shadow=shadow), actor=asked.actor)
        campaign = self._state.campaigns[campaign.id]
        return JobResult(JobStatus.NEEDS_OPERATOR, shadow_text(campaign), report(campaign))

    async def _shadow(self, campaign: Campaign, candidate: Candidate) -> Shadow:
        """Judge a candidate against the workspace as it is, on sealed tasks that are drawn for this.

        Nothing in the workspace is changed by it, and it decides nothing. The seed follows from the
        campaign's and from how often this was done.

        Raises:
            JobRefused: files moved on since the difference was made, or nothing can be judged here.
            BlobError: a text of the candidate is gone.
        """
        for path, blob in sorted(candidate.before.items()):
            if (await asyncio.to_thread(self._parts.places.read, path)).digest != blob:
                again = f"campaign_resume {campaign.id} makes it anew"
                raise JobRefused(f"{path} changed since the difference was made; {again}")
        seed = random.Random(f"{campaign.seed} shadow {len(campaign.shadows) + 1}").randrange(2**63)
        files = await texts_of(candidate.files, self._parts.blobs)
        proposal = Proposal(candidate.title, candidate.origin, files, answers=candidate.answers)
        try:
            verdict, suite = await self._judged(campaign, proposal, seed, files, sealed=True)
        except NotJudged as lacking:
            raise JobRefused(f"{candidate.id} cannot be run as a shadow: {lacking}") from None
        sealed, fresh = count_checks(suite)["sealed"], suite.key != campaign.suite
        return Shadow(candidate.id, seed, cleaned_verdict(verdict), sealed, fresh)

    async def _judged(
        self,
        campaign: Campaign,
        proposal: Proposal,
        seed: int,
        files: Mapping[str, str | None],
        *,
        sealed: bool,
    ) -> tuple[Verdict, Suite]:
        """Judge the workspace as it is beside itself with other files: what is proposed, or what was before.

        Args:
            campaign: on what, within which limits.
            proposal: what the candidate says it is.
            seed: draws what is asked.
            files: the texts of the other files.
            sealed: whether they are the candidate, and asked what is sealed; else the workspace is.
        """
        component, budget = campaign.component, campaign.budget
        async with self._parts.trees(component, f"{campaign.id}-beside") as (maker, place, _):
            now, beside = place / "now", place / "beside"
            await asyncio.to_thread(copy_with_files, now, beside, files)
            before, after = (now, beside) if sealed else (beside, now)
            suite = await maker.make(component, before, seed)
            verdict = await self._parts.judge.compare(
                before, after, component, proposal, suite, seed=seed, seconds=budget.seconds, sealed=sealed,
                allow=budget.allow,
            )  # fmt: skip
            return verdict, suite

    # -------------------------------------------------------------- applying

    async def apply(self, asked: JobRequest, progress: Progress) -> JobResult:
        """`coord_apply ID`: write the candidate that waits to the workspace."""
        return await self._apply(self.campaign(asked.argument), asked, progress)

    async def _apply(self, campaign: Campaign, asked: JobRequest, progress: Progress) -> JobResult:
        candidate = self.waiting(campaign, str(asked.options.get("diff") or ""))
        progress.tell(0, 0, f"{candidate} is written and looked at again")
        chosen = campaign.candidate(candidate)
        assert chosen is not None
        try:
            message = await self._applier.apply(
                campaign, chosen, actor=asked.actor, validate=self._still_good
            )
        except FileMovedError as error:
            waits = CampaignStatus.NEEDS_OPERATOR
            await self._stream.write(me.CampaignStaged(campaign=campaign.id, status=waits, text=str(error)))
            return JobResult(JobStatus.NEEDS_OPERATOR, str(error), {"campaign": campaign.id})
        campaign = self._state.campaigns[campaign.id]
        applied = campaign.status is CampaignStatus.APPLIED
        if applied:
            self._mended(campaign, chosen)
        elif campaign.item:
            self._backlog.move(campaign.item, ItemStatus.FAILED, message, campaign.id)
        await self._stream.commit()
        answer = report(campaign) | {"files": sorted(chosen.files)}
        return JobResult(JobStatus.DONE if applied else JobStatus.FAILED, message, answer)

    def _mended(self, campaign: Campaign, chosen: Candidate) -> None:
        """Close the items of the backlog that an applied candidate, or one it was made from, answers."""
        answered: list[Finding] = []
        made: Candidate | None = chosen
        while made is not None:
            answered += made.answers
            made = campaign.candidate(made.parent)
        marks = set(map(_mark, answered))
        applied = Reason("item.applied", candidate=chosen.id)
        for item in list(self._state.items.values()):
            waits = item.status in (ItemStatus.PENDING, ItemStatus.FAILED)
            if waits and item.finding is not None and _mark(item.finding) in marks:
                self._backlog.move(item.id, ItemStatus.COMPLETED, applied, campaign.id)

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
        """What does not hold in the workspace with the candidate in it."""
        assert campaign.application is not None
        before, after = [
            await texts_of({path: file.blob for path, file in side.items()}, self._parts.blobs)
            for side in (campaign.application.before, campaign.application.after)
        ]
        proposal = Proposal("what is applied", "campaign", after)
        verdict, _ = await self._judged(campaign, proposal, campaign.seed, before, sealed=False)
        if verdict.ruling in (Ruling.BETTER, Ruling.NO_BETTER):
            return ()
        return verdict.reasons or verdict.broken or (str(verdict.ruling),)
