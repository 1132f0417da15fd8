"""A morning with the shipped crew, from a vague wish to a challenged answer, with one operator among them."""

from __future__ import annotations

from pathlib import Path

from crew_desk import returns
from whole_crew import by_name, told, whole

from engine.core import crew_commands as cc
from engine.core.journal import CREW
from engine.crew.event_stream import EventStream
from engine.crew.ontology.kinds import HandoffState
from tests.messages_server import Reply, object_call

WHAT = "Support answers four hours late"
WHO = "Forty small bakeries that we supply"
SUCCESS = "Every bakery has an answer within 30 minutes"
LARRY = (
    Reply(text="What goes wrong today?"),
    object_call("update_clarity", slot="what", text=WHAT, score=0.9),
    object_call("reply", text="Who waits, and since when do they notice?"),
    object_call("update_clarity", slot="who", text=WHO, score=0.9),
    object_call("update_clarity", slot="success", text=SUCCESS, score=0.9),
    Reply(text="Four hours late, forty bakeries, half an hour wanted: is that right?"),
)
PYRAMID = {
    "situation": "Forty bakeries ask us for help.",
    "complication": "They wait four hours.",
    "question": "How do they get an answer in 30 minutes?",
    "answer": "One person answers in the morning.",
    "reasons": [
        {"text": "most questions come before nine", "support": "assumption"},
        {"text": "answers repeat themselves", "support": "assumption"},
    ],
}
PARTS = "# Situation\nx\n# Complication\ny\n# Question\nz?\n# Answer\nw"
SCORES = {"problem": 24, "solution": 20, "business_case": 20, "people": 18}
PILLARS = {name: {"score": score, "evidence": ["told"]} for name, score in SCORES.items()}
SYNTHESIS = "[minto-pyramid] wants one person in the morning; [pws-validation] says go."
CHALLENGES = [
    {"family": family, "quote": "one person in the morning", "challenge": "c", "settles": "a count of a week"}
    for family in ("assumptions", "demand", "execution")
]
DEVIL = (
    object_call("escalate_to_operator", question="Is a person free in the morning?", options=["yes", "no"]),
    returns("Steelman: it is cheap.", data={"challenges": CHALLENGES}),
)


async def test_from_a_vague_wish_to_a_challenged_answer(tmp_path: Path) -> None:
    says = {
        "Larry, the clarifier": LARRY,
        "Minto pyramid": returns(PARTS, data=PYRAMID, key_findings=["mornings count"]),
        "PWS validation": returns("Do it.", data={"pillars": PILLARS}, confidence=0.7),
        "Synthesizer": returns(SYNTHESIS),
        "The devil's advocate": DEVIL,
        "Jobs to be done": Reply(text="The jobs are", then="hold", after=4),
    }
    async with whole(tmp_path / "ws", [], by_name(says)) as on:
        await on.do(cc.Transfer(to="larry", reason="Support is bad."))
        assert (await on.asked()).question == "What goes wrong today?"
        await on.do(cc.Say(text=WHAT))
        await on.holds(lambda: len(on.asks("Larry, the clarifier")) == 3)
        await on.asked(code="conversation")
        await on.do(cc.Say(text=f"{WHO}; {SUCCESS}"))
        await on.holds(lambda: on.crew.state.clarity.get("success") == SUCCESS)
        assert (await on.asked(code="conversation")).question.endswith("is that right?")

        # What larry found out goes with what the operator hands over next.
        group = await on.do(cc.Parallel(to=("minto-pyramid", "pws-validation"), task="How do we get faster?"))
        results = await on.results(group)
        assert [one.from_agent for one in results] == ["minto-pyramid", "pws-validation"]
        assert (results[1].data["total"], results[1].data["verdict"]) == (82, "GO")
        assert WHO in told(on.asks("PWS validation")[0])
        assert "mornings count" not in told(on.asks("PWS validation")[0])
        assert on.crew.state.groups[group.data["group"]].output == SYNTHESIS

        challenged = await on.hand("devil", SYNTHESIS, clarity=None)
        request = await on.asked(challenged)
        assert request.question == "Is a person free in the morning?"
        assert on.of(challenged).state is HandoffState.WAITING_HUMAN
        await on.answer(request, "2", "she comes at ten")
        assert (await on.result(challenged)).data["challenges"] == CHALLENGES
        assert "no: she comes at ten" in told(on.asks("The devil's advocate")[1])

        jobs = await on.hand("jtbd", "Which jobs?", clarity=None)
        await on.server.held.wait()
        await on.do(cc.TakeOver(handoff=jobs, text="They want to open on time."))
        taken = await on.result(jobs)
        assert (taken.output, taken.metadata["by"]) == ("They want to open on time.", "operator")

        await on.do(cc.TakeBack())
        await on.at_rest()
        uses = {name: (entry.runs, entry.successes) for name, entry in on.crew.state.agents.items()}
        assert uses["minto-pyramid"] == uses["pws-validation"] == uses["devil"] == (1, 1)
        assert on.crew.state.holder == "orchestrator"
        await on.crew.stream.commit()
        assert EventStream.fold(await on.engine.store.read(CREW)) == on.crew.state
