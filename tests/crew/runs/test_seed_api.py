"""The seed's examples, over a real crew with the scripted model."""

from __future__ import annotations

from pathlib import Path

from crew_desk import returns, spec
from whole_crew import whole

from engine.crew.seed_api import SeedAgent, handoff_manager, using
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

WHAT = "AI-powered pet translator"


class PWSValidationAgent(SeedAgent):
    spec = spec("pws-validation", "operator", name="PWS Validation")


class MintoPyramid(SeedAgent):
    spec = spec("minto-pyramid", "operator", name="Minto Pyramid")


class Larry(SeedAgent):
    spec = spec("larry", "role", name="Larry", handoff={"receives": {"min_clarity": 0.0}})


def answer(seen: Seen) -> Reply:
    said = seen.said()
    if (
        "You are Larry" in said
        and "not ready" not in said
        and "update_clarity" not in str(seen.body["messages"])
    ):
        words = "Support queue is 4 hours behind in 3 shops"
        return object_call("update_clarity", slot="what", text=words, score=0.9)
    who = next(
        (name for name in ("PWS Validation", "Minto Pyramid") if f"You are {name}" in said), "somebody"
    )
    return returns(f"{who} says go")


async def test_an_agent_is_used_directly_and_by_a_handoff(tmp_path: Path) -> None:
    """Line 20, seed §7.2."""
    async with whole(tmp_path / "ws", [], answer) as on:
        with using(on.crew):
            pws = PWSValidationAgent()
            result = await pws.run(f"Evaluate this opportunity: {WHAT}")
            assert result == "PWS Validation says go"
            context = pws.create_handoff_context(
                challenge=WHAT, problem_clarity={"what": "Pet translation", "who": "Pet owners"}
            )
            handed = await pws.process_handoff(context)
            assert (handed.success, handed.handoff_id) == (True, context.handoff_id)
            assert context.problem_clarity.to_dict()["who_clarity"] == 0.6


async def test_a_workflow_is_orchestrated(tmp_path: Path) -> None:
    """Line 20, seed §7.3; `larry` is made, which the seed leaves out."""
    async with whole(tmp_path / "ws", [], answer) as on:
        with using(on.crew):
            larry = Larry()
            handoff_manager.register_agent("larry", larry.agent)
            handoff_manager.register_agent("minto", MintoPyramid().agent)
            handoff_manager.register_agent("pws", PWSValidationAgent().agent)
            clarity = await larry.clarify("The support queue is slow")
            assert clarity.what_clarity == 0.85
            contexts = [
                handoff_manager.create_delegation(
                    from_agent="larry", to_agent=name, task=task, problem_clarity=clarity.to_dict()
                )
                for name, task in (("minto", "Structure this problem"), ("pws", "Validate this opportunity"))
            ]
            results = await handoff_manager.execute_parallel(contexts)
            assert [one.output for one in results] == ["Minto Pyramid says go", "PWS Validation says go"]
            synthesis = await handoff_manager.synthesize(results, contexts[0])
            assert "minto-pyramid" in synthesis
            assert "pws-validation" in synthesis
