"""Models that fill the memory browser and the gauges of meta-cognition."""

from __future__ import annotations

from widgets.dialogs.memory_browser import (
    BrowserModel,
    FoundLine,
    LinkLine,
    MemoryDetail,
    MemorySearch,
    VersionLine,
)
from widgets.dialogs.metacognition import BackgroundLine, Gauge, MetaModel

FOUND = (
    FoundLine("m7", "the index answers slowly before noon", "semantic", "fact", "3h", 7.0, 0.91, "words 0.9"),
    FoundLine("m5", "create_venv took 4 s", "episodic", "action_log", "4m", 5.0, 0.4),
    FoundLine("m6", "is there a proxy?", "working", "question", "now", 2.0, 0.12),
)
BROWSER = BrowserModel(
    agent="pilot-1",
    work="w3 build api_client",
    search=MemorySearch(),
    found=FOUND,
    levels=("working", "episodic", "semantic", "procedural"),
    types=("fact", "question"),
)
DETAIL = MemoryDetail(
    "m7",
    "the index answers slowly before noon\nretry after 4 s works",
    "semantic",
    "fact",
    7.0,
    0.9,
    source="action a12",
    tags=("network", "pip"),
    created="2026-03-01 14:03 by pilot-1",
    used="3 times, 4m ago",
    in_mind=True,
    focal=True,
    links=(
        LinkLine("m5", True, "supports", 0.8, "create_venv took 4 s"),
        LinkLine("m6", False, "question_of", 0.5, "is there a proxy?"),
    ),
    history=(
        VersionLine("14:20:11", "operator:ada", "importance 5 → 7"),
        VersionLine("14:03:09", "agent", "made"),
    ),
)
META = MetaModel(
    agent="pilot-1",
    gauges=(
        Gauge("reflect", "reflect", 4.5, 7, "successes", "waits", "in 3 successes", "7 successes",
              "done: summary", adjustable=True),
        Gauge("consolidate", "consolidate", 12, 12, "successes", "due", "due now", adjustable=True),
        Gauge("optimise", "working memory", 2, 8, "loops", "runs", "runs"),
        Gauge("maintain", "maintenance", 3, 50, "loops", "vetoed", "vetoed"),
    ),
    running=(BackgroundLine("q4", "optimise", "8 loops", "3s"),
             BackgroundLine("q5", "promote", "15 loops", "1s")),
    limit=10,
    ended=(BackgroundLine("q3", "reflect", "7 successes", "2m", "timed_out", "60 s were over"),),
    facts=(("failures", "2 of the last 50 actions (4%)"),),
    signals=("three times the same: run ls",),
    feedback=("operator: look at the tests first",),
)  # fmt: skip
