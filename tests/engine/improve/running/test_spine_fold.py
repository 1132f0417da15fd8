"""The fold of Mastermind's stream: any events in any order, told piece by piece or at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from words import component

from engine.core import campaigns as me
from engine.core.events import kinds
from engine.core.improvement import (
    Application,
    BacklogItem,
    CampaignBudget,
    CampaignStatus,
    Candidate,
    Concern,
    FileVersion,
    Gain,
    Identity,
    ItemStatus,
    JobStatus,
    MastermindState,
    Ruling,
    Shadow,
    Verdict,
)
from engine.core.journal import GENESIS, MASTERMIND, Event, Payload, chain_hash
from engine.improve.state import EventStream

NAMES = st.sampled_from(["1", "2", "3"])
TEXT = st.text(max_size=20)
VERDICT = Verdict(Ruling.BETTER, ("r",), Gain(1.0, 0.5, 1.5, 3, "words"), ("m",), (), 0.25)


def _candidate(name: str) -> Candidate:
    return Candidate(name, "texts", "t", "fixer:x", files={"a": "b", "c": None}, key="key")


def _payloads() -> st.SearchStrategy[Payload]:
    job, item, campaign = (NAMES.map(lambda n, p=prefix: f"{p}{n}") for prefix in "jik")  # type: ignore[misc]
    candidate = st.tuples(campaign, NAMES).map(".".join)
    application = Application("k1.1", {"a": FileVersion(None)}, {"a": FileVersion("b", 0o644)}, ("d",))
    given_: dict[type[Payload], dict[str, Any]] = {
        me.JobAsked: {"job": job, "verb": st.just("evolve"), "argument": TEXT},
        me.JobBegun: {"job": job},
        me.JobProgressed: {"job": job, "done": st.floats(0, 1), "text": TEXT},
        me.JobEnded: {"job": job, "status": st.sampled_from(JobStatus), "answer": st.just({"a": [1, {}]})},
        me.ItemAdded: {
            "item": item.map(lambda n: BacklogItem(n, "u" + n, "texts", Concern.IDEA, "s", evidence=("e",)))
        },
        me.ItemMerged: {"item": item, "priority": st.integers(1, 10)},
        me.ItemMoved: {"item": item, "status": st.sampled_from(ItemStatus), "decided": st.booleans()},
        me.CampaignBegun: {
            "campaign": campaign,
            "directive": TEXT,
            "component": st.just(component()),
            "seed": st.integers(0, 9),
            "budget": st.just(CampaignBudget()),
        },
        me.CampaignStaged: {"campaign": campaign, "status": st.sampled_from(CampaignStatus), "text": TEXT},
        me.CampaignFound: {"campaign": campaign, "findings": st.just(())},
        me.CampaignSplit: {"campaign": campaign, "sets": st.just({"work": 2, "sealed": 3})},
        me.ProposalsKept: {"campaign": campaign, "key": TEXT, "blob": TEXT, "usd": st.floats(0, 1)},
        me.ShadowRun: {"campaign": campaign, "shadow": st.just(Shadow("k1.1", 3, VERDICT, 5))},
        me.ModelCharged: {"model": TEXT, "tokens": st.integers(0, 9), "usd": st.floats(0, 1)},
        me.CandidateMade: {"campaign": campaign, "candidate": candidate.map(_candidate)},
        me.CandidateJudged: {
            "campaign": campaign,
            "candidate": candidate,
            "verdict": st.just(VERDICT),
            "again": st.sampled_from(["", "k1.1"]),
        },
        me.ApplyBegun: {"campaign": campaign, "application": st.just(application)},
        me.ApplyEnded: {"campaign": campaign, "tree": TEXT},
        me.RollbackBegun: {"campaign": campaign, "reason": TEXT},
        me.RolledBack: {"campaign": campaign, "tree": TEXT, "status": st.sampled_from(CampaignStatus)},
        me.WatchTold: {"campaign": campaign, "text": TEXT, "before": st.just(0), "after": st.just(3)},
        me.Noted: {"topic": st.just("agent.created"), "text": TEXT},
        me.IdentityCreated: {"identity": NAMES.map(lambda n: Identity("pilot", f"ph{n}", "00"))},
        me.IdentityDeprecated: {"address": NAMES.map(lambda n: f"ph{n}"), "reason": TEXT},
        me.AutonomyChanged: {"job": st.sampled_from(["", "j1"]), "reason": TEXT},
    }
    assert {one.kind for one in given_} == {kind for kind in kinds() if kind.startswith("mastermind.")}
    return st.one_of(*(st.builds(kind, **fields) for kind, fields in given_.items()))


def _chained(payloads: list[Payload]) -> list[Event]:
    events, head = [], GENESIS
    for version, said in enumerate(payloads, 1):
        at = f"2026-01-01T00:00:{version % 60:02}.000000Z"
        body = said.body()
        head = chain_hash(head, MASTERMIND, version, at, 0, "system", (), said.kind, body)
        events.append(Event(MASTERMIND, version, at, 0, "system", (), said.kind, body, head))
    return events


@given(st.lists(_payloads(), max_size=40), st.integers(0, 40))
def test_the_state_is_the_same_told_at_once_or_in_two_pieces(payloads: list[Payload], cut: int) -> None:
    events = _chained(payloads)
    whole = EventStream.fold(events)
    first = EventStream.fold(events[:cut])
    kept = first.copy()
    there = replace(kept)
    assert EventStream.fold(events[cut:], first) == whole
    assert kept == there
    assert whole.version == len(events)
    _sound(whole)


def _sound(state: MastermindState) -> None:
    assert all(name == job.id for name, job in state.jobs.items())
    assert all(1 <= item.priority <= 10 for item in state.items.values())
    for campaign in state.campaigns.values():
        assert campaign.seconds >= 0
        assert campaign.application is None or campaign.application.begun
    assert all(identity.created for identity in state.identities.values())
