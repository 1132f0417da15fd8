"""The answers of the demonstration, written by hand: a bakery's plans, its canvas and its price list."""

# ruff: noqa: E501 - sentences as they are said
from __future__ import annotations

from typing import Any

from tests.recordings.crew_material import CREWS
from tests.recordings.written import Written, quote, reply, returned, turn

# ------------------------------------------------------------------ a debate


_FOR_OPENING = {
    "claims": [
        {
            "text": "The demand is real: 29 customers paid a deposit, which is 696 euros a month before the first loaf is baked.",
            "evidence": quote("survey", "29 of these 64 paid it"),
        },
        {
            "text": "Bread that is ordered is not thrown away: 19 loaves a day cost 25.65 euros to bake and bring nothing.",
            "evidence": quote("ledger", "19 of them are given away unsold"),
        },
        {"text": "Above all customers want their bread brought to the door."},
    ],
    "recommends": "start in January with the 29 who paid",
}
_AGAINST_OPENING = {
    "claims": [
        {
            "text": "Delivered, a loaf earns 0.32 euros: 24 euros a month are 2.77 a loaf, less 1.35 to bake and 1.10 to bring.",
            "evidence": quote("ledger", "Delivery by bicycle was quoted at 1.10 euros a stop"),
        },
        {
            "text": "Most customers want something else: 118 of 212 like to choose in the shop.",
            "evidence": quote("survey", "118 said that they like to choose when they stand in the shop"),
        },
        {
            "text": "There is no room in the oven on the days on which subscribers want their bread.",
            "evidence": quote("ledger", "From Friday to Sunday the oven runs at its limit"),
        },
    ],
    "recommends": "wait until a second oven is paid for",
}
_FOR_FIRST = {
    "restated": "They say that delivery eats nearly all that a subscriber pays.",
    "replies": [
        reply("B1", "refute", "Nothing says that it is delivered. Picked up at the shop a loaf earns 2.77 less 1.35, which is 1.42 euros."),
        reply("B2", "undercut", "The 118 are not the 64 who said yes, and nobody has to subscribe. 64 of 212 is three in ten."),
        reply("A3", "concede", "No source says so, and it is not needed: pick-up will do."),
    ],
}  # fmt: skip
_AGAINST_FIRST = {
    "restated": "They say that 29 deposits prove the demand.",
    "replies": [
        reply("A1", "undercut", "35 of the 64 who said yes kept their ten euros. 29 subscribers take 58 loaves a week; 980 are baked. That is six in a hundred."),
        reply("A2", "refute", "The 19 are what is left in the evening. What a subscriber takes is baked in the morning: it does not empty the shelf at six."),
    ],
}  # fmt: skip
_FOR_LAST = {
    "restated": "They say that 58 loaves a week are too few to matter.",
    "replies": [
        reply("A1", "defend", "They are few, and they are paid a month ahead. 29 paid for something that they have never seen."),
        reply("A2", "defend", "A known order lets the shelf be planned: three unsold loaves fewer a day save 4.05 euros, 120 a month."),
        reply("B3", "undercut", "Pick-up from Monday to Thursday leaves the oven alone at the weekend."),
    ],
}  # fmt: skip
_AGAINST_LAST = {
    "restated": "They say that pick-up from Monday to Thursday needs neither a bicycle nor the weekend.",
    "replies": [
        reply("B1", "concede", "For pick-up it does not hold. It stands for every loaf that is delivered, and nobody should promise that."),
        reply("B2", "defend", "It says who is left: when ten euros were asked for, more than half of the willing went away."),
        reply("A1", "undercut", "696 euros is before baking. 251 loaves a month cost 339 euros, so 357 are left, and somebody has to keep the list."),
    ],
}  # fmt: skip
_JUDGED = {
    "winner": "A",
    "decisive_claim_ids": ["A1", "A2"],
    "reasons": {
        "evidence": "A1 rests on money that was paid. What B quotes are opinions (B2) and a limit of three days (B3).",
        "rebuttal": "B gave up its strongest claim, B1, once pick-up was named. A gave up A3, which carried nothing.",
        "fit": "What is left is small and safe: pick-up from Monday to Thursday, 29 subscribers, about 357 euros a month.",
    },
}


_DEBATE = [
    turn("A", "", "What is hard here? The deposits: people paid. The waste is next; the ledger has it. Delivery I can only assert.",
          "Start in January with the 29 who paid.", _FOR_OPENING),
    turn("B", "", "24 euros for 2 loaves a week: 8.67 loaves a month, 2.77 each. Less 1.35, less 1.10. That is thin. Then the oven.",
          "Wait: the margin does not carry delivery, and the oven is full.", _AGAINST_OPENING),
    turn("A", "Round 1 of", "B1 is the strongest, and it assumes delivery. I drop A3: then B1 has nothing to stand on.",
          "Delivery is not part of it; without it each loaf earns 1.42 euros.", _FOR_FIRST),
    turn("B", "Round 1 of", "A1 is the strongest. How large is it? 58 of 980 loaves. And 35 did not pay. A2 mixes morning and evening.",
          "29 deposits are six loaves in a hundred.", _AGAINST_FIRST),
    turn("A", "Round 2 of", "They asked how much and when. I answer both, and take B3 with the days of pick-up.",
          "Small, paid ahead, and away from the weekend.", _FOR_LAST),
    turn("B", "Round 2 of", "With pick-up B1 falls; I should say so. B2 holds. And 696 is not what is left: 251 loaves cost 339.",
          "If at all, then pick-up only: 357 euros a month are left.", _AGAINST_LAST),
    *(
        returned(
            "Judge:",
            thinking,
            when=when,
            output="A, for pick-up on weekdays only; B is right that delivery does not pay.",
            data={**_JUDGED, "confidence": confidence},
        )
        for when, confidence, thinking in (
            (r"Side A\n.*Side B\n", 0.66, "Who rests on what was paid, and who answered? Read A first."),
            (r"Side B\n.*Side A\n", 0.6, "The other way round: B first. B3 stands, yet only for three days. B1 was given up."),
        )
    ),
]  # fmt: skip

# ------------------------------------------------------------------ a review

_PWS = {
    "output": "Problem, 16 of 25: three in ten regulars want bread without queueing; how much it bothers them was not asked.\n\n"
    "Solution, 15: nobody has seen it work. Bread that is kept for pick-up is close to what the shop does today.\n\n"
    "Business case, 19: 24 euros a month are 2.77 a loaf. Picked up it earns 1.42, delivered 0.32. 29 deposits make about "
    "357 euros a month after baking, and less waste on top.\n\n"
    "People, 12: nothing was said of who keeps the list, so it has no more than twelve.\n\n"
    "Together 62: PIVOT. A month with the 29 and no delivery would raise solution and people.",
    "key_findings": [
        "Picked up a loaf earns 1.42 euros, delivered 0.32",
        "29 of 64 who said yes paid a deposit",
    ],
    "recommendations": ["Leave delivery out", "Run January with the 29 who paid, and count who comes back"],
    "confidence": 0.7,
    "scores": {"problem": 16, "solution": 15, "business_case": 19, "people": 12, "total": 62},
    "open_questions": ["Who keeps the list of subscribers?"],
    "data": {
        "pillars": {
            "problem": {"score": 16, "evidence": ["64 of 212 said that they would pay"]},
            "solution": {"score": 15, "evidence": ["nobody has seen it work yet"]},
            "business_case": {"score": 19, "evidence": ["29 paid a deposit of 10 euros", "2.77 less 1.35 a loaf"]},
            "people": {"score": 12, "evidence": ["nothing was said of who does it"]},
        },
        "total": 62,
        "verdict": "PIVOT",
    },
}  # fmt: skip
_JTBD = {
    "output": "The largest opportunity is the certain loaf (15): it matters much, and at six the shelf is empty or full by chance. "
    "Next comes no queue before the train (13). Last comes being known at the counter (9): the shop does that well already, "
    "and a subscription must not take it away.",
    "key_findings": [
        "Customers buy certainty, not a lower price",
        "Being greeted by name is done well today",
    ],
    "recommendations": ["Put the name of the subscriber on the bag", "Promise the loaf, not the price"],
    "confidence": 0.6,
    "open_questions": ["Do those who want to pause have the same job?"],
    "data": {
        "jobs": [
            {
                "kind": "functional",
                "statement": "When I come home at six, I want my loaf to be there, so I can count on supper",
                "importance": 9,
                "satisfaction": 3,
            },
            {
                "kind": "emotional",
                "statement": "When my train leaves in four minutes, I want no queue, so I can start the day calm",
                "importance": 8,
                "satisfaction": 3,
            },
            {
                "kind": "social",
                "statement": "When I stand at the counter, I want to be known, so I can feel at home in the town",
                "importance": 7,
                "satisfaction": 5,
            },
        ]
    },
}
_DEVIL = {
    "output": "Steelman: 29 people paid for bread that does not exist yet, and ordered bread is not thrown away.\n\n"
    "1. Demand: 64 said yes, 29 paid. Ask for the whole month in advance and see who is left.\n"
    "2. Execution: the oven is full exactly when bread is wanted. Write down on which days it may be picked up.\n"
    "3. Edge cases: if everybody may pause, the 19 unsold loaves come back in August, and now they are promised ones.\n"
    "4. Assumptions: delivery is in the sums and in no plan. Strike it, or say who rides.",
    "key_findings": ["35 of 64 who said yes did not pay", "The right to pause brings the waste back"],
    "recommendations": ["Pause only with a week's notice", "No delivery"],
    "confidence": 0.65,
    "open_questions": ["What becomes of a loaf that is not picked up?"],
    "data": {
        "challenges": [
            {
                "family": "demand",
                "quote": "64 said that they would pay this, and 29 paid a deposit of 10 euros",
                "challenge": "More than half of the willing went away at ten euros; 24 is more.",
                "settles": "How many of the 29 pay the first month in full",
            },
            {
                "family": "execution",
                "quote": "From Friday to Sunday the oven runs at its limit",
                "challenge": "Subscribers who come at the weekend push out those who pay 4.20.",
                "settles": "On which days the 29 would come",
            },
            {
                "family": "edge cases",
                "quote": "Everybody can pause at any time",
                "challenge": "Bread is baked at four; who pauses at eight has wasted a loaf.",
                "settles": "How long before baking a pause must be known",
            },
            {
                "family": "assumptions",
                "quote": "delivery by bicycle 1.10 euros a stop",
                "challenge": "It leaves 0.32 euros a loaf, and nobody is named who rides.",
                "settles": "A name and a week's route",
            },
        ]
    },
}
_BROUGHT_TOGETHER = {
    "output": "All three would begin small and without delivery. [pws-validation] gives 62 of 100, PIVOT: picked up a loaf earns 1.42 "
    "euros, delivered 0.32. [jtbd] says what is really bought: a loaf that is certain to be there. [devil] warns that a pause at any "
    "time brings the waste back, and that 35 of 64 did not pay.\n\n"
    "They differ about the demand. [pws-validation] counts the 29 deposits for it, [devil] the 35 against it; [jtbd] would ask what "
    "the 29 hoped for.\n\n"
    "What follows: January with the 29 who paid, pick-up from Monday to Thursday, a pause with a week's notice, the name on the bag. "
    "If 20 of them pay for February, go on.",
    "key_findings": ["No delivery", "29 subscribers are the trial", "A pause needs notice"],
    "recommendations": ["Run the trial in January", "Decide in February by how many of the 29 pay again"],
    "confidence": 0.7,
}
_REVIEW = [
    returned("PWS validation:", "Sums first: 24 / 8.67 = 2.77 a loaf. 2.77 - 1.35 = 1.42; with a stop 0.32. "
              "251 loaves a month at 1.42 are 357. People: no word of them, so at most 12.", **_PWS),
    returned("Jobs to be done:", "What do they hire a loaf for? Not for the price: for supper, for a calm morning, for being known.",
              **_JTBD),
    returned("The devil's advocate:", "At its strongest: they paid for something unseen. Now where does it break? Demand, oven, "
              "pause, delivery.", **_DEVIL),
    returned("Synthesizer:", "Three answers. In common: small, no delivery. Apart: how much 29 deposits are worth.",
              **_BROUGHT_TOGETHER),
]  # fmt: skip

# ------------------------------------------------------------------ a canvas

_DRAFTS = {
    "For whom is this?": "Commuters who pass the station before seven\nFamilies who bake nothing themselves\nThe two cafés on the square",
    "What do they get from it": "Commuters: the loaf is there at six in the evening, without a queue.\nFamilies: bread of the day, twice a week, "
    "without thinking of it.\nThe two cafés on the square: rolls at half past five, of which none is left over.",
    "How do they hear of it": "The counter: everybody who buys a third loaf in a week is asked.\nA card in the bag with the days of pick-up.\n"
    "Pick-up at the shop from Monday to Thursday; no delivery.",
    "How are they won, kept and helped?": "By name at the counter, and the name on the bag.\nA pause with a week's notice, no questions.\n"
    "The first loaf of a new flour goes to subscribers.",
    "Who pays, for what": "Commuters who pass the station before seven: 24 euros a month for two loaves a week.\n"
    "Families who bake nothing themselves: 40 euros a month for four.\nThe two cafés on the square: 0.38 a roll, paid weekly.",
    "What must be there for it?": "The oven, free from Monday to Thursday before five.\nA list of subscribers that one person keeps.\n"
    "A shelf with names behind the counter.",
    "What must be done, again and again?": "Bake to the list at four, to the weather at six.\nPack and name the bags.\n"
    "Once a month: collect, count who paused, ask two who left.",
    "Who else is needed": "The mill, for flour at a fixed price until summer.\nThe kiosk at the station, which keeps late bags until eight.",
    "What does it cost": "A loaf: 1.35 euros of flour, gas and work; it grows with each customer.\nThe list and the bags: two hours a week.\n"
    "Fixed: the oven and the shop, as before.",
}  # fmt: skip
_CANVAS = [
    Written("You are Business model canvas", after=(prompt,), tool="draft", input={"draft": draft})
    for prompt, draft in _DRAFTS.items()
]

# ------------------------------------------------------------------ a model at work


def _act(number: int, words: str, command: str, **args: Any) -> dict[str, Any]:
    return {
        "type": "EXECUTE_TOOL",
        "id": str(number),
        "description": words,
        "params": {"tool_id": "simple_coder", "command": command, "args": args},
        "depends_on": [str(number - 1)] if number > 1 else [],
    }


def _think(number: int, words: str) -> dict[str, Any]:
    return {"type": "THINK", "id": str(number), "description": words, "depends_on": [str(number - 1)]}


_TAX, _TAXED = "return net + net * percent // 100", "return net + (net * percent + 50) // 100"
_DOZEN, _DOZENED = "return price * 13", "return price * 12"
_TEST = {"command": "python -m unittest discover -v bakery"}
_MODEL = [
    Written(
        thinking="A price list, and two failing tests. I look at the files first, then I decide what to correct.",
        tool="propose_plan",
        input={
            "plan": [
                _act(1, "see what is there", "ls", path="bakery"),
                _act(2, "read the price list", "read", path="bakery/price_list.py"),
                _think(3, "correct the mistakes until all tests pass"),
            ],
            "uncovered": [],
        },
    ),
    Written(
        after=("bakery/price_list.py",),
        thinking="I guessed the name of the file, and it is not there. The listing says prices.py and test_prices.py: I read those.",
        text="The file has another name. I change the plan.",
        tool="update_plan",
        input={
            "plan": [
                _act(1, "read the price list", "read", path="bakery/prices.py"),
                _act(2, "read its tests", "read", path="bakery/test_prices.py"),
            ]
        },
    ),
    Written(
        after=("bakery/price_list.py", "def after_five", "class PricesTest"),
        text="Before I change anything I want to see which tests fail.",
        tool="simple_coder__run",
        input=_TEST,
    ),
    Written(
        after=("212 != 213",),
        thinking="199 cents with 7 percent are 212.93. The function cuts that off to 212; its docstring says nearest cent. Adding 50 before "
        "dividing by 100 rounds half up: 1393 + 50 = 1443, so 14, and 199 + 14 = 213. And 1050 + 50 = 1100: 161. Both are right.",
        text="The tax is cut off and not rounded.",
        tool="simple_coder__replace",
        input={"path": "bakery/prices.py", "old": _TAX, "new": _TAXED},
    ),
    Written(
        after=("212 != 213", _TAXED),
        thinking="The other one: 1235 != 1140. 1235 is 13 times 95, 1140 is 12 times. Thirteen rolls for the price of twelve cost twelve prices.",
        text="A dozen has thirteen rolls and the price of twelve.",
        tool="simple_coder__replace",
        input={"path": "bakery/prices.py", "old": _DOZEN, "new": _DOZENED},
    ),
    Written(
        after=("212 != 213", _TAXED, _DOZENED),
        text="Both are corrected. Now the tests again.",
        tool="simple_coder__run",
        input=_TEST,
    ),
    Written(
        after=("212 != 213", _TAXED, _DOZENED, "OK"),
        tool="finish",
        input={
            "summary": "All three tests pass. Tax is now rounded to the nearest cent, and a dozen costs twelve rolls; nothing else was changed.",
            "evidence": [],
        },
    ),
]  # fmt: skip

MATERIAL: dict[str, tuple[str, list[Written]]] = {
    "demo-debate": ("Kettle & Crumb should sell bread by subscription from January", _DEBATE),
    "demo-review": ("the bread subscription of Kettle & Crumb", _REVIEW),
    "demo-canvas": ("The bakery Kettle & Crumb: one oven", _CANVAS),
    "demo-model": ("Two tests of the bakery's price list fail", _MODEL),
    **CREWS,
}
"""For each mission what it is about, and its answers; of those that fit a request, the last one is given."""
