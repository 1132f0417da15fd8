"""The seed's examples as they stand, over a whole engine with the shipped agents (seed §7.2, §7.3)."""

from __future__ import annotations

from pathlib import Path

from crew_desk import returns
from whole_crew import asker, told, whole

from engine.crew.seed_api import SeedAgent, handoff_manager, using
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

PILLARS = {
    name: {"score": 20, "evidence": ["told"]} for name in ("problem", "solution", "business_case", "people")
}
PYRAMID = {
    "situation": "Pets speak.",
    "complication": "Nobody understands them.",
    "question": "Who helps?",
    "answer": "A translator.",
    "reasons": [{"text": text, "support": "assumption"} for text in ("owners want it", "models can do it")],
}
KNOWN = (
    ("what", "Pet owners do not understand their pets"),
    ("who", "Pet owners in 3 large towns"),
    ("success", "At least 8 of 10 signals are understood"),
)


def answer(seen: Seen) -> Reply:
    match asker(seen):
        case "PWS validation":
            return returns("PWS says GO.", data={"pillars": PILLARS})
        case "Minto pyramid":
            words = "# Situation\n# Complication\n# Question\n# Answer\nMinto says: a translator."
            return returns(words, data=PYRAMID)
        case "Synthesizer":
            return returns("[minto-pyramid] and [pws-validation] agree.")
    for slot, text in KNOWN:
        if f'"{slot}":"{text}"' not in told(seen).replace('\\"', '"'):
            return object_call("update_clarity", slot=slot, text=text, score=0.9)
    return returns("The problem is clear.")


async def test_an_agent_is_used_directly_and_by_a_handoff(tmp_path: Path) -> None:
    """Line 20, seed §7.2."""
    async with whole(tmp_path / "ws", [], answer) as on:
        with using(on.crew):
            pws = SeedAgent(on.spec("pws-validation"))

            result = await pws.run("Evaluate this opportunity: AI-powered pet translator")
            assert result == "PWS says GO."

            context = pws.create_handoff_context(
                challenge="AI-powered pet translator",
                problem_clarity={"what": "Pet translation", "who": "Pet owners"},
            )
            handed = await pws.process_handoff(context)
            assert (handed.success, handed.handoff_id) == (True, context.handoff_id)
            assert handed.data["verdict"] == "GO"
            assert context.problem_clarity.to_dict()["who_clarity"] == 0.6


async def test_a_workflow_is_orchestrated(tmp_path: Path) -> None:
    """Line 20, seed §7.3; `larry` is made, which the seed leaves out."""
    async with whole(tmp_path / "ws", [], answer) as on:
        with using(on.crew):
            larry, minto, pws = (
                SeedAgent(on.spec(name)) for name in ("larry", "minto-pyramid", "pws-validation")
            )
            handoff_manager.register_agent("larry", larry.agent)
            handoff_manager.register_agent("minto", minto.agent)
            handoff_manager.register_agent("pws", pws.agent)

            clarity = await larry.clarify("AI-powered pet translator")
            assert clarity.is_ready_for_analysis
            contexts = [
                handoff_manager.create_delegation(
                    from_agent="larry",
                    to_agent="minto",
                    task="Structure this problem",
                    problem_clarity=clarity.to_dict(),
                ),
                handoff_manager.create_delegation(
                    from_agent="larry",
                    to_agent="pws",
                    task="Validate this opportunity",
                    problem_clarity=clarity.to_dict(),
                ),
            ]
            results = await handoff_manager.execute_parallel(contexts)
            assert [one.from_agent for one in results] == ["minto-pyramid", "pws-validation"]
            assert all(one.success for one in results)

            synthesis = await handoff_manager.synthesize(results, contexts[0])
            assert synthesis == "[minto-pyramid] and [pws-validation] agree."
            assert "Minto says: a translator." in told(on.asks("Synthesizer")[0])
