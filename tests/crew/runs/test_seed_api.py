"""The seed's examples, over a real crew with the scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest
from crew_desk import returns, spec
from whole_crew import whole

from engine.api.crew import AgentBuilder, handoff_manager, using
from engine.crew.builder.agent_base import OperatorAgent, RoleAgent, open_agent
from tests.building.corpus import laid
from tests.messages_server import Reply, object_call
from tests.messages_server.server import Seen

WHAT = "AI-powered pet translator"


class PWSValidationAgent(OperatorAgent):
    spec = spec("pws-validation", "operator", name="PWS Validation")


class MintoPyramid(OperatorAgent):
    spec = spec("minto-pyramid", "operator", name="Minto Pyramid")


class Larry(RoleAgent):
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
            handoff_manager.register_agent("larry", larry)
            handoff_manager.register_agent("minto", MintoPyramid())
            handoff_manager.register_agent("pws", PWSValidationAgent())
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


async def test_a_built_agent_is_the_same_class_and_works_through_the_manager(tmp_path: Path) -> None:
    """Seed §7.1: built, then used as it is."""
    async with whole(tmp_path / "ws", [], answer) as on:
        with using(on.crew):
            result = await AgentBuilder().build_from_skill(laid(tmp_path, "comma-tools"))
            assert (result.success, "agent.py" in result.code_files) == (True, True)
            agent = open_agent(Path(result.output_path))
            assert isinstance(agent, OperatorAgent)
            assert await agent.run("Support answers tickets four hours late") == "somebody says go"
            entry = on.crew.state.agents["comma-tools"]
            assert (entry.source, entry.runs) == ("agents/comma-tools", 1)
    with pytest.raises(LookupError, match="no crew is in use"):
        await agent.run("x")
