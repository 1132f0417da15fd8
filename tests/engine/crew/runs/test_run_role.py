"""A role that talks with the operator, as a run of the engine."""

from __future__ import annotations

from pathlib import Path

from crew_desk import Scene, SmallDesk, as_killed, opened, scene, spec, task

from engine.core.agents import ROLE, TURNS
from engine.crew.ports import OperatorQuestion
from tests.engine.agent.engine_flight import journal_holds_together
from tests.messages_server import Reply, object_call

LARRY = spec("larry", "role", handoff={"routing": {"can_delegate_to": ["bmc-wizard", "minto"]}})
WIZARD = spec("bmc-wizard", "guided", steps=[{"id": "a", "title": "A"}])
MINTO = spec("minto", "operator")


async def talk(on: Scene, *, turns: int) -> str:
    """Begin a talk; the run when the operator was asked that often and is asked once more."""
    context = task(LARRY, "I have a problem", handoff_type="transfer", return_to="")
    run = await on.desk.begin(context, LARRY)
    await on.holds(lambda: len(on.desk.asked) == turns + 1)
    return run


async def test_a_reply_with_two_questions_gets_one_repair_and_then_is_flagged(tmp_path: Path) -> None:
    """Line 34: one repair; nothing is recommended before the problem is ready."""
    answers = iter(["Everybody.", None])
    desk = SmallDesk(LARRY, WIZARD, MINTO, says=lambda _: next(answers))
    script = [
        Reply(text="What is it? And who has it?"),
        Reply(text="Who has the problem?"),
        object_call("reply", text="You should buy a tool. Is that it?"),
        object_call("reply", text="I recommend a tool. Is that it?"),
    ]
    async with scene(tmp_path, desk, script) as on:
        run = await talk(on, turns=1)
        assert [question.question for question in desk.asked] == [
            "Who has the problem?",
            "I recommend a tool. Is that it?",
        ]
        assert "ask exactly one question" in on.told(1)
        assert "recommend nothing" in on.told(3)
        assert "operator: Everybody." in on.told(2)
        assert (desk.asked[0].context, "breaks a rule" in desk.asked[1].context) == ("", True)
        state = await on.state(run)
        assert state.action is not None
        await on.desk.runs.stop(run, "the floor was taken back")


async def test_clarity_is_capped_and_only_the_operator_confirms(tmp_path: Path) -> None:
    says = iter(["Support is 4 hours behind", "yes", None])
    desk = SmallDesk(LARRY, WIZARD, MINTO, says=lambda _: next(says))
    words = "Support queue is 4 hours behind"
    script = [
        Reply(text="What is the problem?"),
        object_call("update_clarity", slot="what", text=words, score=1.0, confirmed=True),
        Reply(text="Is it that the support queue is 4 hours behind?"),
        object_call("update_clarity", slot="what", text=words, score=1.0, confirmed=True),
        Reply(text="Who has it?"),
    ]
    async with scene(tmp_path, desk, script) as on:
        run = await talk(on, turns=2)
        clarity = (await on.state(run)).beliefs[ROLE].value["clarity"]
        assert clarity["what_clarity"] == 1.0
        assert clarity["confirmed"] == ["what"]
        notes = [note for _, what, note in desk.kept if what == "role.turn" and note]
        assert notes[:2] == ["what: 0.85", "what: 1.00"]
        await on.desk.runs.stop(run, "over")


async def test_ideas_are_parked_and_the_role_is_told_which_wait(tmp_path: Path) -> None:
    answers = iter(["Sell it as a toy, later.", "Go on.", None])

    def says(question: OperatorQuestion) -> str | None:
        if question.question == "Noted. Who has it?":
            desk.ideas.clear()  # the operator took it up
        return next(answers)

    desk = SmallDesk(LARRY, WIZARD, MINTO, says=says)
    script = [
        Reply(text="What is the problem?"),
        object_call("park", idea="sell it as\na toy"),
        Reply(text="Noted. Who has it?"),
        Reply(text="Since when?"),
    ]
    async with scene(tmp_path, desk, script) as on:
        run = await talk(on, turns=2)
        assert "park" in on.offered(1)
        assert "ideas that are parked for later" in on.told(2)
        assert "]\\nsell it as a toy\\n[" in on.told(2)
        assert "ideas that are parked" not in on.told(3)
        assert (await on.state(run)).beliefs[ROLE].value["parked"] == []
        await on.desk.runs.stop(run, "over")


async def test_the_floor_goes_to_those_that_take_it_and_the_role_waits(tmp_path: Path) -> None:
    desk = SmallDesk(LARRY, WIZARD, MINTO, says=lambda _: None)
    script = [object_call("transfer_to", agent="bmc-wizard", reason="a canvas is wanted")]
    async with scene(tmp_path, desk, script) as on:
        run = await talk(on, turns=0)
        assert desk.floor == ["bmc-wizard"]
        assert on.offered(0)["transfer_to"]["input_schema"]["properties"]["agent"]["enum"] == ["bmc-wizard"]
        assert on.offered(0)["delegate"]["input_schema"]["properties"]["to"]["enum"] == [
            "bmc-wizard",
            "minto",
        ]
        assert "return_result" not in on.offered(0)
        assert desk.asked[0].question == ""
        assert len(on.server.requests) == 1
        await on.desk.runs.stop(run, "over")


async def test_a_role_goes_on_with_its_talk_after_the_program_was_killed(tmp_path: Path) -> None:
    """What was said is kept, and what waited is asked again; its outcome is not unknown."""
    answers = iter(["Small shops.", None])
    desk = SmallDesk(LARRY, says=lambda _: next(answers))
    script = [Reply(text="Who has the problem?"), Reply(text="What is it?"), Reply(text="Is it slow?")]
    async with scene(tmp_path, desk, script) as on:
        run = await talk(on, turns=1)
        as_killed(on.workspace, tmp_path / "killed")
        said = iter(["It is slow", None])
        later = SmallDesk(LARRY, says=lambda _: next(said))
        later.handoffs[run], later.results = desk.handoffs[run], desk.results
        async with opened(tmp_path / "killed", later, on.engine.config) as engine:
            await later.runs.resume(later.handoffs[run])
            await on.holds(lambda: len(later.asked) == 2)
            assert [one.question for one in later.asked] == ["What is it?", "Is it slow?"]
            state = engine._agents[run].state
            assert (state.intervention, state.failures) == (None, [])
            assert [turn["text"] for turn in state.beliefs[TURNS].value][-2:] == ["What is it?", "It is slow"]
            await later.runs.stop(run, "over")
        await journal_holds_together(tmp_path / "killed")
        await desk.runs.stop(run, "over")
