"""The types' machines and what is computed: lines 26 to 40 of the checklist (ontology spec §6), pure."""

from __future__ import annotations

from typing import Any

import pytest

from engine.crew.methods import debate as d
from engine.crew.methods import debate_judge as j
from engine.crew.methods import dialogue as g
from engine.crew.methods import pipeline as p
from engine.crew.methods.dialogue import lint_reply
from engine.crew.ontology.criteria import Subject, check, check_all, failed, question_count
from engine.crew.ontology.kinds import InvalidError
from engine.crew.ontology.results import FormulaError, compute, opportunity
from engine.crew.ontology.spec import Criterion, DebateSpec, GuidedStep, Phase

STEPS = (
    GuidedStep(id="segments", title="Segments", required=True),
    GuidedStep(id="value", title="Value", required=True, depends_on=("segments",)),
    GuidedStep(id="channels", title="Channels", depends_on=("value",)),
    GuidedStep(id="budget", title="Budget", input="number", skippable=False),
)


def said(steps: tuple[GuidedStep, ...], session: g.GuidedSession, *values: Any) -> g.GuidedSession:
    for value in values:
        session = g.answer(steps, session, value)
    return session


def test_back_keeps_data_and_is_refused_at_the_first_step() -> None:
    """Line 39."""
    start = g.begin(STEPS)
    with pytest.raises(g.MoveRefused, match="first step"):
        g.back(STEPS, start)
    two = said(STEPS, start, "shops", "speed")
    assert two.active == "channels"
    went = g.back(STEPS, two)
    assert (went.active, went.answers) == ("value", two.answers)
    jumped = g.jump(STEPS, two, "budget")
    assert g.back(STEPS, jumped).active == "channels"


def test_a_changed_answer_makes_exactly_its_dependants_stale() -> None:
    """Line 39."""
    done = said(STEPS, g.begin(STEPS), "shops", "speed", "web", "12")
    assert g.unfinished(STEPS, done) == ()
    same = g.answer(STEPS, g.jump(STEPS, done, "segments"), "shops")
    assert g.stale(same) == ()
    other = g.answer(STEPS, g.jump(STEPS, done, "segments"), "farms")
    assert g.stale(other) == ("value", "channels")
    assert other.active == "value"
    with pytest.raises(g.MoveRefused, match="stale"):
        g.finish(STEPS, other)
    settled = g.confirm(STEPS, g.confirm(STEPS, other, "value"), "channels")
    assert g.finish(STEPS, settled)["segments"] == "farms"


def test_a_required_step_says_why_it_stays_and_a_session_resumes() -> None:
    """Line 40."""
    start = g.begin(STEPS)
    with pytest.raises(g.MoveRefused, match="required"):
        g.skip(STEPS, start)
    two = said(STEPS, start, "shops", "speed")
    skipped = g.skip(STEPS, two, "later")
    assert (skipped.active, skipped.of("channels").reason) == ("budget", "later")
    with pytest.raises(g.MoveRefused, match="number"):
        g.answer(STEPS, skipped, "many")
    with pytest.raises(g.MoveRefused, match="cannot be skipped"):
        g.skip(STEPS, skipped)
    saved = g.GuidedSession.model_validate_json(g.leave(skipped).model_dump_json())
    assert saved.saved
    again = g.resume(STEPS, saved)
    assert (again.active, again.history, again.answers) == (skipped.active, skipped.history, skipped.answers)
    other = (STEPS[0], STEPS[3], GuidedStep(id="new", title="New"))
    assert set(g.resume(other, saved).steps) == {"segments", "budget", "new"}
    assert "*skipped*: later" in g.export("Canvas", STEPS, skipped)


PHASES = (
    Phase(id="clarify", name="Clarify", inputs=("task",), outputs=("questions",)),
    Phase.model_validate(
        {
            "id": "analyze",
            "name": "Analyze",
            "inputs": ["questions"],
            "outputs": ["driving_forces"],
            "checkpoint": {
                "criteria": [{"check": "min_items", "field": "driving_forces", "n": 20}],
                "max_retries": 1,
            },
        }
    ),
)


def test_a_failing_checkpoint_shows_measured_against_wanted_and_resume_skips_what_counts() -> None:
    """Line 38."""
    context = {"task": "t"}
    first = p.checkpoint(PHASES, context, p.PipelineRun(), {"questions": ["a"]})
    assert first.what == "committed"
    second = p.checkpoint(PHASES, context, first.run, {"driving_forces": ["x"] * 17})
    assert (second.what, "17 < 20" in second.message) == ("retry", True)
    assert "17 < 20" in p.failure_report(second.run)
    third = p.checkpoint(PHASES, context, second.run, {"driving_forces": []})
    assert third.what == "ask_user"
    assert len(third.outcomes) == 2, "all criteria are looked at"
    with pytest.raises(ValueError, match="reason"):
        p.accept_anyway(PHASES, context, third.run, {"driving_forces": ["x"]}, " ")
    accepted = p.accept_anyway(PHASES, context, third.run, {"driving_forces": ["x"]}, "enough for now")
    assert p.next_phase(PHASES, accepted) is None
    stored = p.PipelineRun.model_validate_json(accepted.model_dump_json())
    assert p.resumed(PHASES, context, stored).records == accepted.records
    changed = (PHASES[0], PHASES[1].model_copy(update={"description": "other"}))
    assert [one.phase for one in p.resumed(changed, context, stored).records] == ["clarify"]
    assert p.resumed(PHASES, {"task": "another"}, stored).records == ()


SPEC = DebateSpec.model_validate(
    {
        "sides": [
            {"label": "A", "agent_id": "pws-validation", "stance": "for it"},
            {"label": "B", "agent_id": "devil", "stance": "against it"},
        ],
        "early_stop": False,
    }
)
SOURCES = {"report": "Churn fell to 4 %\nin March."}


def opening(*texts: str, quote: str = "") -> d.TurnAnswer:
    evidence = [{"source": "report", "quote": quote}] if quote else []
    return d.TurnAnswer.model_validate({"claims": [{"text": text, "evidence": evidence} for text in texts]})


def rebuttal(*replies: tuple[str, str], claims: tuple[str, ...] = (), recommends: str = "") -> d.TurnAnswer:
    answers = [{"claim": ident, "kind": kind, "text": "because"} for ident, kind in replies]
    return d.TurnAnswer.model_validate(
        {
            "restated": "they say",
            "replies": answers,
            "claims": [{"text": one} for one in claims],
            "recommends": recommends,
        }
    )


def opened() -> d.Debate:
    start = d.begin(SPEC, "We ship it")
    return d.close_round(
        start,
        {
            "A": opening("it saves money", quote="Churn fell to 4 % in March."),
            "B": opening("it is late", quote="never said"),
        },
        SOURCES,
    )


def test_openings_are_blind_and_a_round_shows_nothing_of_itself() -> None:
    """Line 26."""
    start = d.begin(SPEC, "We ship it")
    assert "debate so far" not in d.turn_prompt(start, "A")
    after = opened()
    told = d.turn_prompt(after, "A")
    assert "it is late" in told
    then = d.close_round(
        after, {"A": rebuttal(("B1", "refute")), "B": rebuttal(("A1", "undercut"), claims=("a new one",))}
    )
    assert "a new one" not in told
    assert "a new one" in d.turn_prompt(then, "A")


def test_a_rebuttal_of_nothing_is_sent_back_and_then_stands_as_none() -> None:
    """Line 27."""
    after = opened()
    _, wrong = d.parse_turn(after, "A", rebuttal(("B9", "refute")).model_dump())
    assert "by its id (B1)" in wrong[0]
    _, wrong = d.parse_turn(after, "A", rebuttal(("B1", "refute"), claims=("word " * 260,)).model_dump())
    assert wrong == ("say it in 250 words; these are 263",)
    then = d.close_round(after, {"A": rebuttal(("B9", "refute")), "B": rebuttal(("A1", "refute"))})
    assert [turn.no_rebuttal for turn in then.turns if turn.round == 1] == [True, False]
    assert "B9 is no claim" in then.turns[2].dropped


def test_what_is_answered_and_not_defended_is_rebutted() -> None:
    after = opened()
    one = d.close_round(after, {"A": rebuttal(("B1", "refute")), "B": rebuttal(("A1", "refute"))})
    assert [claim.status for claim in one.claims] == ["standing", "standing"]
    two = d.close_round(
        one, {"A": rebuttal(("B1", "refute"), ("A1", "defend")), "B": rebuttal(("A1", "undercut"))}
    )
    assert {claim.id: claim.status.value for claim in two.claims} == {"A1": "standing", "B1": "rebutted"}
    assert two.ended == "rounds done"


def test_a_quote_that_is_not_in_its_source_is_unverified_and_lowers_the_confidence() -> None:
    """Line 28."""
    start = d.begin(SPEC, "We ship it")
    ledger = d.close_round(
        start,
        {
            "A": d.TurnAnswer.model_validate(
                {
                    "claims": [
                        {
                            "text": "one",
                            "evidence": [{"source": "report", "quote": "Churn fell to 4 % in March."}],
                        },
                        {"text": "two"},
                        {"text": "three", "evidence": [{"source": "report", "quote": "Churn rose"}]},
                    ]
                }
            ),
            "B": opening("it is late"),
        },
        SOURCES,
    )
    assert [claim.shown for claim in ledger.claims] == ["standing", "standing", "unverified", "standing"]
    passes = [
        j.parse_judgement(ledger, {"winner": "A", "confidence": 0.8, "decisive_claim_ids": ["A1"]}),
        j.parse_judgement(ledger, {"winner": "A", "confidence": 0.7, "decisive_claim_ids": ["A1", "A3"]}),
    ]
    stands = j.verdict(ledger, passes)
    assert (stands.winner, stands.confidence, stands.contested) == ("A", 0.5625, False)
    assert stands.dissent == ("B1: it is late",)


def test_two_passes_that_differ_are_undecided() -> None:
    """Line 29."""
    after = opened()
    both = [
        j.parse_judgement(after, {"winner": "A", "confidence": 0.9}),
        j.parse_judgement(after, {"winner": "B", "confidence": 0.8}),
    ]
    open_one = j.verdict(after, both)
    assert (open_one.winner, open_one.confidence, open_one.contested) == ("undecided", 0.5, True)
    assert j.overridden(open_one, "ship it").winner == "undecided"
    with pytest.raises(InvalidError, match="no claim"):
        j.parse_judgement(after, {"winner": "A", "confidence": 1, "decisive_claim_ids": ["A9"]})


def test_the_judge_sees_no_names_and_the_same_text_in_both_orders() -> None:
    """Line 30."""
    start = d.begin(SPEC, "We ship it")
    after = d.close_round(start, {"A": opening("as pws-validation I say yes"), "B": opening("Devil says no")})
    prompts = [j.judge_prompt(after, order) for order in j.orders(after)]
    assert prompts[0] != prompts[1]
    assert sorted(prompts[0].split("\n\n")) == sorted(prompts[1].split("\n\n"))
    assert all("pws-validation" not in one and "devil" not in one.casefold() for one in prompts)


def test_new_claims_in_the_last_round_are_refused_and_a_round_without_change_is_the_last() -> None:
    """Line 31."""
    assert SPEC.calls == 8
    after = opened()
    one = d.close_round(after, {"A": rebuttal(("B1", "refute")), "B": rebuttal(("A1", "refute"))})
    assert one.last
    two = d.close_round(
        one, {"A": rebuttal(("B1", "refute"), claims=("too late",)), "B": rebuttal(("A1", "refute"))}
    )
    assert len(two.claims) == 2
    assert any("last round" in line for line in two.turns[-2].dropped)
    stops = SPEC.model_copy(update={"early_stop": True, "rounds": 4})
    quiet = d.close_round(d.begin(stops, "m"), {"A": opening("a"), "B": opening("b")})
    silent = d.TurnAnswer()
    assert d.close_round(quiet, {"A": silent, "B": silent}).ended == "nothing new"
    agreed = rebuttal(("B1", "refute"), recommends="Wait."), rebuttal(("A1", "refute"), recommends="wait")
    assert d.close_round(quiet, dict(zip("AB", agreed, strict=True))).ended == "consensus"
    gave_in = {"A": rebuttal(("A1", "concede")), "B": rebuttal(("A1", "refute"))}
    assert d.close_round(quiet, gave_in).ended == "conceded"
    assert d.one_more(two).ended == ""
    assert d.call_time(quiet).ended == "called by the operator"


def test_a_round_needs_a_turn_of_each_side() -> None:
    """Line 32: no verdict comes of one side alone."""
    with pytest.raises(ValueError, match="each side"):
        d.close_round(d.begin(SPEC, "m"), {"A": opening("a")})
    with pytest.raises(InvalidError, match="motion"):
        d.begin(SPEC, " ")


def test_the_verdict_is_computed() -> None:
    """Line 36."""
    pillars = {"problem": 22, "solution": 18, "business_case": 20, "people": 12}
    found = compute("pws", {**pillars, "verdict": "GO"})
    assert (found.data["total"], found.data["verdict"]) == (72, "PIVOT")
    assert any("'GO' becomes 'PIVOT'" in line for line in found.corrected)
    bare = {name: {"score": 25, "evidence": []} for name in pillars}
    assert compute("pws", {"pillars": bare}).data["total"] == 48
    with pytest.raises(FormulaError, match=r"people\.score"):
        compute("pws", {**pillars, "people": 26})
    assert (opportunity(8, 4), opportunity(4, 9)) == (12, 4)
    jobs = [{"importance": 4, "satisfaction": 9, "opportunity": -1}, {"importance": 8, "satisfaction": 4}]
    assert [job["opportunity"] for job in compute("jtbd", {"jobs": jobs}).data["jobs"]] == [12, 4]
    names = [{"name": name} for name in "abcd"]
    options = [{"name": "x", "survives": ["a", "b", "c", "d"]}, {"name": "y", "survives": ["a"], "tier": 1}]
    tiers = [
        one["tier"] for one in compute("scenarios", {"scenarios": names, "options": options}).data["options"]
    ]
    assert tiers == [1, 4]


def test_a_reply_of_a_clarifier() -> None:
    """Line 34."""
    assert not failed(lint_reply("Who feels this most?", ready=False))
    assert len(failed(lint_reply("Who? And when?", ready=False))) == 1
    assert "recommend" in failed(lint_reply("I recommend a pilot. Who feels it?", ready=False))[0].message
    assert not failed(lint_reply("I recommend a pilot. Shall we?", ready=True))
    assert failed(lint_reply("- a\n- b\nWhich?", ready=True))[0].message == "say it without a list"
    assert question_count("Really?! Why??") == 2


def outcome(subject: Subject, **criterion: Any) -> bool | None:
    return check(Criterion.model_validate(criterion), subject).passed


def test_criteria_are_pure_and_a_rubric_is_never_passed_by_default() -> None:
    data = {
        "reasons": [{"text": "cheap to run"}, {"text": "quick to build"}],
        "score": 7,
        "parts": [3, 4],
        "kind": "b",
        "quotes": [{"quote": "4 %", "source": "report"}],
    }
    subject = Subject("# Situation\nx\n# Complication\ny [report]\n# Question\nwhy?", data, SOURCES)
    good = [
        {"check": "non_empty", "field": "reasons"},
        {"check": "min_items", "field": "reasons", "n": 2},
        {"check": "max_items", "field": "reasons", "n": 5},
        {"check": "max_words", "field": "reasons[].text", "n": 3},
        {"check": "regex", "pattern": r"why\?"},
        {"check": "regex", "pattern": "excellent", "absent": True},
        {"check": "sections_in_order", "sections": ["situation", "complication", "question"]},
        {"check": "number_range", "field": "score", "low": 0, "high": 10},
        {"check": "sum_equals", "field": "parts", "equals": "score"},
        {"check": "one_of", "field": "kind", "values": ["a", "b"]},
        {"check": "unique", "field": "reasons", "key": "text", "overlap": 0.6},
        {"check": "cites_resolve"},
        {"check": "quote_in_source", "field": "quotes"},
        {"check": "no_placeholder"},
        {"check": "question_count", "n": 1},
        {"check": "json_schema", "schema": {"type": "object", "required": ["score"]}},
    ]
    outcomes = check_all([Criterion.model_validate(one) for one in good], subject)
    assert [one.message for one in failed(outcomes)] == []
    assert outcome(subject, check="sections_in_order", sections=["question", "situation"]) is False
    assert outcome(subject, check="unique", fields=["kind", "kind"]) is False
    assert outcome(subject, check="min_items", field="nowhere", n=1) is False
    assert outcome(subject, check="min_items", field="reasons") is False, "an argument is missing"
    assert outcome(subject, check="regex", pattern="(") is False
    assert outcome(Subject("see [nowhere]", {}, SOURCES), check="cites_resolve") is False
    assert outcome(Subject("TODO: write"), check="no_placeholder") is False
    assert outcome(subject, check="llm_rubric", rubric="is it kind") is None
