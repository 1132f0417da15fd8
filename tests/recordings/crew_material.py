"""The answers for the crews among the examples, written by hand."""

# ruff: noqa: E501 - sentences as they are said
from __future__ import annotations

from typing import Any

from tests.recordings.written import Written, quote, reply, returned, turn

# ------------------------------------------------------------------ a code review

_TEST = {"command": "python -m unittest"}
_SHARE, _ROUND, _UPPER = (
    "share = cents // people",
    "return cents - round(cents * percent / 100)",
    "percent = CODES.get(code.upper(), 0)",
)
_FAILED = "999 != 1000"


def _finding(name: str, severity: str, line: str, problem: str, fix: str) -> dict[str, str]:
    return {
        "id": name,
        "severity": severity,
        "source": "basket.py",
        "quote": line,
        "problem": problem,
        "fix": fix,
    }


def _verdict(name: str, verdict: str, line: str, reason: str) -> dict[str, str]:
    return {"id": name, "verdict": verdict, "source": "basket.py", "quote": line, "reason": reason}


_REVIEW = [
    Written("You are Code reviewer", text="Before I say anything I run the tests.", tool="simple_coder__run", input=_TEST),
    returned(
        "Code reviewer:",
        "999 != 1000: split drops the rest of the division. Rounding: round(0.5) is 0 in Python, half to even, so 5 cents with 10 percent "
        "stay 5. And codes: is 'Spring10 ' with a blank found?",
        after=(_FAILED,),
        output="3 tests ran, 1 failed: the shares of 1000 cents among 3 add up to 999.\n\nF1, high: split drops what is left of the division.\n"
        "F2, medium: with_code rounds half a cent to the even number, which is against the customer every other time.\n"
        "F3, low: a code in lower case may not be found.",
        key_findings=[
            "F1 high: split(1000, 3) gives 999; the rest of the division is lost",
            "F2 medium: with_code(5, 'SPRING10') gives 5; half a cent was to be the customer's, so 4",
            "F3 low: a code in lower case may not be found",
        ],
        recommendations=["Do not release before F1 is mended"],
        confidence=0.75,
        data={
            "findings": [
                _finding("F1", "high", _SHARE, "The rest is lost: three times 333 are 999, and the docstring says that the shares add up.", "Give the first `cents % people` a cent more."),
                _finding("F2", "medium", _ROUND, "round() takes half to the even number: round(0.5) is 0, so the customer does not get the half cent.", "cents - (cents * percent + 50) // 100"),
                _finding("F3", "low", _UPPER, "A code in lower case may not be found.", "Compare without case."),
            ]
        },
    ),
    returned(
        "Review critic:",
        "F1: 1000 // 3 = 333, times 3 = 999. True. F2: 5 * 10 / 100 = 0.5; round(0.5) = 0; 5 - 0 = 5. True. F3: upper() stands right there.",
        output="Release after two changes, of which the first is urgent. F1 is confirmed: split loses a cent, and a test shows it. F2 is confirmed: "
        "5 cents with SPRING10 stay 5. It needs a test, as no test has half a cent. F3 is rejected: the code is made upper case before it is looked up.",
        key_findings=["2 of 3 findings are confirmed", "F2 has no test yet"],
        recommendations=["Give the first `cents % people` shares a cent more", "Add a test with half a cent before with_code is changed"],
        confidence=0.9,
        data={
            "verdicts": [
                _verdict("F1", "confirmed", _SHARE, "1000 // 3 is 333, and three of them are 999."),
                _verdict("F2", "confirmed", _ROUND, "5 * 10 / 100 is 0.5, and round(0.5) is 0 in Python."),
                _verdict("F3", "rejected", _UPPER, "upper() makes 'spring10' to 'SPRING10', and a test has it."),
            ]
        },
    ),
]  # fmt: skip

# ------------------------------------------------------------------ research with sources


def _evidence(name: str, source: str, words: str) -> dict[str, str]:
    return {"id": name, "source": source, "quote": words}


def _check(claim: str, verdict: str, source: str, words: str) -> dict[str, str]:
    return {"claim": claim, "verdict": verdict, "source": source, "quote": words}


def _ended(thinking: str, output: str, after: tuple[str, ...] = (), **outputs: Any) -> Written:
    tool_input = {"output": output, "outputs": outputs}
    return Written(
        "You are Source researcher", after=after, thinking=thinking, tool="checkpoint", input=tool_input
    )


_COME, _TRIED, _COST = (
    "How many would come, and who cannot come on other days?",
    "88, 131, 140 and 152 visits",
    "for five hours at Sunday rates cost 520 euros",
)
_RESEARCH = [
    _ended(
        "Who comes, what it costs, what is not known. And one against: do they only come on another day?",
        "Four questions, one of them against the obvious answer.",
        questions=[_COME, "How many came when it was tried?", "Do Sunday's visitors come instead of Saturday's?", "What does a Sunday cost, and who pays for a trial?"],
    ),
    _ended(
        "The survey asked only those who come today. The counts have the trial, and a drop on Saturdays: 410 to 365.",
        "Seven quotes from three sources; two of them speak against it.",
        (_COME,),
        evidence=[
            _evidence("E1", "survey.md", "122 said that they would come on Sundays as well"),
            _evidence("E2", "survey.md", "61 of 98 said that Saturday is the only day on which they can come"),
            _evidence("E3", "survey.md", "Nobody was asked who does not come today."),
            _evidence("E4", "counts.md", _TRIED),
            _evidence("E5", "counts.md", "fell to 365 on the Saturdays before those Sundays"),
            _evidence("E6", "budget.md", _COST),
            _evidence("E7", "budget.md", "The council has set aside 12,000 euros for a trial"),
        ],
    ),
    _ended(
        "615 a Sunday in winter; 12,000 / 615 = 19. Visits grow, and Saturdays lose 45. Answer: a trial, and count Saturdays.",
        "The report, with three things that stay open.",
        (_COME, "E7"),
        report="Yes, as a trial until June. Of 340 visitors 122 would come on Sundays [E1], and most who work full-time can come on Saturdays only [E2]. "
        "When it was tried, visits rose from 88 to 152 in four Sundays [E4]. Some of them are Saturday's: these fell to 365 [E5]. "
        "A Sunday costs 520 euros for two librarians [E6], so the 12,000 euros of the council [E7] last for about nineteen Sundays in winter. "
        "Everybody in Elmford would gain from it. Whether new people come is not known, as only visitors were asked [E3].",
        open=["Would people come who do not come today?", "Would as many come when librarians are paid and no volunteers invite?", "Does Saturday go on falling?"],
    ),
    returned(
        "Fact checker:",
        "Figures first. 122 of 340: stands. Most full-time: 61 of 98 is 62 percent: stands. Everybody gains: no source.",
        output="One sentence has to go: that everybody in Elmford would gain stands in no source; only visitors were asked. One needs a word more: "
        "nineteen Sundays reckons with 615 euros, which is the 520 and the 95 for heating in winter. All other figures stand as they are.",
        key_findings=["1 claim is unsupported, 1 is short of a figure", "The other figures stand in the sources"],
        recommendations=["Take out 'Everybody in Elmford would gain from it'", "Name the 95 euros for heating and cleaning"],
        confidence=0.9,
        data={
            "checks": [
                _check("122 of 340 would come on Sundays", "supported", "survey.md", "122 said that they would come on Sundays as well"),
                _check("Most who work full-time can come on Saturdays only", "supported", "survey.md", "61 of 98 said that Saturday is the only day on which they can come"),
                _check("Visits rose from 88 to 152", "supported", "counts.md", _TRIED),
                _check("The money lasts for about nineteen Sundays", "overstated", "budget.md", "Heating and cleaning cost 95 euros more in winter"),
                _check("Everybody in Elmford would gain from it", "unsupported", "survey.md", "Nobody was asked who does not come today."),
            ]
        },
    ),
]  # fmt: skip

# ------------------------------------------------------------------ a product decision

_OFFLINE = {
    "claims": [
        {
            "text": "People leave over this: of 14 who lost text, 5 have cancelled.",
            "evidence": quote("interviews.md", "5 of these 14 have cancelled since"),
        },
        {
            "text": "It makes the other one cheaper: shared notebooks need merging, and offline editing brings it.",
            "evidence": quote(
                "engineering.md",
                "Shared notebooks take 6 to 9 weeks if merging is there, and 11 to 15 weeks if it is not",
            ),
        },
        {"text": "Everybody expects a notes app to work on a train."},
    ],
    "recommends": "offline editing first, with merging as its first part",
}
_SHARED = {
    "claims": [
        {
            "text": "The money is with teams: those who asked for shared notebooks are on the plan that earns 60 percent.",
            "evidence": quote(
                "interviews.md", "all of them on the team plan, which is 60 percent of the revenue"
            ),
        },
        {
            "text": "Offline editing takes up to 14 weeks, and nothing else is built meanwhile.",
            "evidence": quote("engineering.md", "Offline editing takes 10 to 14 weeks"),
        },
    ],
    "recommends": "shared notebooks first, for the team plan",
}
_OFFLINE_FIRST = {
    "restated": "They say that teams pay more, so teams come first.",
    "replies": [
        reply(
            "B1",
            "undercut",
            "9 of 40 asked; none of them has left. 5 of 14 have. A wish is not a cancellation.",
        ),
        reply(
            "B2",
            "refute",
            "Together offline first takes 16 to 23 weeks. Shared first takes 11 to 15, and then offline editing still has to come.",
        ),
        reply("A3", "concede", "No source says so, and it is not needed."),
    ],
}
_SHARED_FIRST = {
    "restated": "They say that merging serves both, and that people leave.",
    "replies": [
        reply(
            "A1",
            "undercut",
            "5 of 40 are few, and nobody says on which plan they were. If they paid little, little is lost.",
        ),
        reply(
            "A2",
            "concede",
            "It is true: without merging two people overwrite each other, so it has to be built either way.",
        ),
    ],
}
_PRODUCT_JUDGED = {
    "winner": "A",
    "decisive_claim_ids": ["A1", "A2"],
    "reasons": {
        "evidence": "A1 rests on customers who left, A2 on the team's own estimate. B1 rests on wishes.",
        "rebuttal": "B gave A2 up: merging has to be built either way. That takes most of the weight from B2.",
        "fit": "Both features are wanted. The order offline, then shared is the shorter one by the estimates.",
    },
}
_PRODUCT = [
    turn("A", "", "What is strongest? Cancellations, then merging. The train I can only assert.", "Offline first: people leave over it, and merging serves both.", _OFFLINE),
    turn("B", "", "Who pays? Teams. And what stands still for 14 weeks?", "Shared notebooks first: that is where the money is.", _SHARED),
    turn("A", "Round 1 of", "B2 adds up wrong: 10 + 6 = 16, 14 + 9 = 23. I give A3 up.", "The order offline, then shared is shorter, and keeps customers.", _OFFLINE_FIRST),
    turn("B", "Round 1 of", "A2 is true; I should say so. A1: which plan were they on? Nobody knows.", "Merging first is fair. That they leave over it is not shown for those who pay.", _SHARED_FIRST),
    *(
        returned(
            "Judge:",
            thinking,
            when=when,
            output="A: offline editing first, as merging has to be built either way. B is right that nobody knows on which plan the five were.",
            data={**_PRODUCT_JUDGED, "confidence": confidence},
        )
        for when, confidence, thinking in (
            (r"Side A\n.*Side B\n", 0.7, "What did people do, and what was given up? A first."),
            (r"Side B\n.*Side A\n", 0.64, "B first this time. The revenue stands, yet it stands for wishes."),
        )
    ),
]  # fmt: skip

# ------------------------------------------------------------------ an incident

_DEPLOY = "deploy checkout 4.8.0 to 2 of 4 servers, config pool.size=5 (was 50)"


def _at(time: str, line: str, means: str) -> dict[str, str]:
    return {"time": time, "source": "checkout.log", "quote": line, "means": means}


_DRAFTS = {
    "How bad is it?": "Severity 2: customers on web-3 and web-4 cannot order, 41 timeouts in ten minutes against 118 orders.\nThree cards were charged without an order (88121, 88124, 88130).\nThe lead on duty has to be called.",
    "What stops the damage now": "Roll back: `deploy checkout --to 4.7.1`. It takes 4 minutes and can be undone.\nThen payments refund the three cards today. A refund cannot be undone.",
    "Why did it happen?": "4.8.0 went to two of four servers with pool.size=5 instead of 50. 28 seconds later web-3 had 5 of 5 connections in use and 31 waiting.\nweb-1 and web-2 with 4.7.1 had no timeouts.",
    "What are customers and colleagues told?": "Since 14:02 some orders failed with a timeout. We are going back to the version of before; it takes four minutes.\nWho was charged without an order gets the money back today.",
    "What keeps it from happening again": "A deploy refuses a pool.size below 20: checkout team, Friday.\nA canary stops by itself at 5 timeouts in a minute: platform team, end of the month.\nA card is charged after the order is written: payments, to be planned on Monday.",
}  # fmt: skip
_INCIDENT = [
    returned(
        "Incident analyst:",
        "First wrong line: 14:02:05, the pool. 28 seconds before it: the deploy, 5 instead of 50. web-1 and web-2 are healthy with the old version.",
        output="The deploy of 4.8.0 at 14:01:37 set the pool of connections from 50 to 5 on two of four servers. 28 seconds later it was exhausted, and orders on "
        "web-3 and web-4 time out. 41 timeouts in ten minutes; three cards were charged without an order.",
        key_findings=["Cause: pool.size went from 50 to 5 with 4.8.0", "First wrong line: 14:02:05, db pool exhausted on web-3", "3 cards were charged without an order"],
        recommendations=["Roll back to 4.7.1"],
        confidence=0.9,
        data={
            "timeline": [
                _at("14:01:37", _DEPLOY, "What changed before the first error"),
                _at("14:02:05", "db pool exhausted on web-3: 5 of 5 in use, 31 waiting", "The first wrong line"),
                _at("14:04:40", "payments: 3 cards charged without an order (88121, 88124, 88130)", "Money is involved: severity 2 by the runbook"),
                _at("14:06:12", "web-1 and web-2 (4.7.1) healthy, no timeouts", "The old version has no errors"),
            ],
            "cause": "Version 4.8.0 came with a pool of 5 connections instead of 50.",
            "disproof": "Timeouts on web-1 or web-2, which still run 4.7.1.",
        },
    ),
    *(Written("You are Runbook lead", after=(prompt,), tool="draft", input={"draft": draft}) for prompt, draft in _DRAFTS.items()),
]  # fmt: skip

# ------------------------------------------------------------------ writing with an editor

_LONG = (
    "Do you have a toaster that has stopped, a coat with a torn lining or a bicycle that squeaks? Then there is good news for everybody in Elmford. On the first "
    "Saturday of each month, from 10 to 14 and beginning on 6 March, our new repair café opens its doors in the old fire station in Mill Lane 3, on the ground "
    "floor and without a step. Eleven volunteers, among them electricians, two tailors and a bicycle mechanic, will look at what you bring, free of charge, and "
    "a jar for spare parts stands on the table. Last year 149 of 214 things were repaired."
)
_SHORT = (
    "A repair café opens in the old fire station, Mill Lane 3: on the first Saturday of each month from 10 to 14, beginning on 6 March. Eleven volunteers, among "
    "them electricians, two tailors and a bicycle mechanic, repair what you bring, free of charge. It is a wonderful place to meet. On last year's trial days 149 "
    "of 214 things were repaired. No microwave ovens and no gas appliances. You need not book; come before 13."
)
_EDITED = (
    "A repair café opens in the old fire station, Mill Lane 3, step-free: on the first Saturday of each month from 10 to 14, beginning on 6 March. Electricians, "
    "two tailors and a bicycle mechanic repair what you bring, free of charge. On last year's trial days they repaired 149 of 214 things. No microwave ovens, no "
    "gas appliances. You need not book; who comes after 13 may have to wait for the next month."
)


def _fact(fact: str, words: str) -> dict[str, str]:
    return {"fact": fact, "source": "notes.md", "quote": words}


def _change(before: str, after: str, why: str) -> dict[str, str]:
    return {"from": before, "to": after, "why": why}


_WRITING = [
    returned("Draft writer:", "Begin with what people have at home. Then when, where, who.", output=_LONG, confidence=0.6),
    returned(
        "Draft writer:",
        "Too long. The questions at the beginning can go: what it is and when comes first.",
        after=("a coat with a torn lining",),
        output=_SHORT,
        open_questions=["Whom does a reader call with a question?"],
        confidence=0.7,
    ),
    returned(
        "Line editor:",
        "'A wonderful place to meet' could stand in any announcement. 'Come before 13' says more than the notes: one may have to wait. Step-free is missing.",
        output=_EDITED,
        key_findings=["Three changes; each date, place and number stands in the notes"],
        confidence=0.85,
        data={
            "changes": [
                _change("It is a wonderful place to meet.", "", "It could stand in any announcement, and no note says it."),
                _change("come before 13", "who comes after 13 may have to wait for the next month", "The notes forbid nothing after 13."),
                _change("Mill Lane 3", "Mill Lane 3, step-free", "Some readers can only come because of it."),
            ],
            "facts": [
                _fact("The time", "first Saturday of each month, 10 to 14, beginning on 6 March"),
                _fact("The place", "the old fire station, Mill Lane 3, ground floor, step-free"),
                _fact("149 of 214", "last year 214 things were brought to the trial days, and 149 of them were repaired"),
                _fact("Nobody has to book", "nobody has to book; who comes after 13 may have to wait for the next month"),
            ],
        },
    ),
]  # fmt: skip

CREWS: dict[str, tuple[str, list[Written]]] = {
    "code-review": ("Review basket.py, which is to be released today", _REVIEW),
    "research": ("Should the library of Elmford open on Sundays?", _RESEARCH),
    "product-decision": ("Quire should build offline editing before shared notebooks.", _PRODUCT),
    "incident": ("The checkout fails for some customers since 14:02.", _INCIDENT),
    "writing": ("the announcement of the repair café in Elmford", _WRITING),
}
"""For each crew what its mission is about, and its answers."""
