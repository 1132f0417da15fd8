"""A campaign as a page of HTML."""

from __future__ import annotations

from app.projection.campaign_page import page
from engine.core.improvement import Campaign, Candidate, Component, ComponentKind, Gain, Ruling, Verdict


def judged(name: str, parent: str, ruling: Ruling, gain: Gain | None, *reasons: str) -> Candidate:
    verdict = Verdict(ruling, reasons, gain, seconds=4.0)
    return Candidate(name, "sample", "<script>alert(1)</script>", "fixer", parent=parent, verdict=verdict)


def test_a_page_shows_gains_costs_and_the_family_and_runs_nothing() -> None:
    worse = judged(
        "k1.1", "", Ruling.NO_BETTER, Gain(-2.0, -3.0, 1.0, 6, "% saved", 1.0, 1.1), "its gain is not shown"
    )
    better = judged("k1.2", "k1.1", Ruling.BETTER, Gain(40.0, 35.0, 45.0, 6, "% saved", 1.0, 0.6))
    component = Component("sample", ComponentKind.PROJECT, "the project sample")
    campaign = Campaign("k1", "sample", component, candidates=(worse, better), chosen="k1.2")
    text = page(campaign, {"k1.2": "-a < b\n+a <= b"})
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "2 % more (-3 to +1), no better" in text
    gains = text[text.index("<h2>Gains") : text.index("<h2>What it cost")]
    assert 'class="warning"' in gains
    assert 'class="success"' in gains
    assert "its gain is not shown" in text
    assert "-a &lt; b" in text
    assert "35 after 8.0 s of processor" in text
    family = text[text.index("<h2>Candidates") : text.index("<h2>What was tried")]
    assert family.index("k1.1") < family.index("└ k1.2")
    assert ", chosen" in family


def test_a_campaign_without_candidates_has_a_page() -> None:
    campaign = Campaign("k1", "sample", Component("sample", ComponentKind.PROJECT, "the project sample"))
    assert "nothing was judged yet" in page(campaign, {})
