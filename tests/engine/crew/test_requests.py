"""The operator: requests, permissions, taking over, the floor."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from engine.core import crew_commands as cc
from engine.core.journal import CREW
from engine.crew.ontology.context import Option
from engine.crew.ontology.kinds import Effect, ErrorCode, HandoffState, RequestKind, RequestState
from engine.crew.operator_requests import CONVERSATION
from engine.crew.ports import HandoffError, OperatorQuestion
from tests.engine.crew.flight import Flight, Job

D = HandoffState
GO, STOP = (
    Option(id="go", label="Go", effect=Effect.RESUME),
    Option(id="stop", label="Stop", effect=Effect.ABORT),
)
ASKED = OperatorQuestion(RequestKind.DECISION, "DECISION", "Go on?", "Go on?", options=(GO, STOP))


def asks(question: OperatorQuestion) -> Any:
    """A script that asks and says what it was answered."""

    async def script(job: Job) -> Any:
        try:
            answer = await job.desk.ask(job.run, question)
        except HandoffError as error:
            return job.done(str(error.code))
        return job.done(f"{answer.option_id} {answer.text} {answer.by}")

    return script


async def test_a_request_is_answered_once_by_one_of_its_options(flight: Flight) -> None:
    """Line 41."""
    await flight.register("plain")
    flight.worker.scripts = {"plain": asks(ASKED)}
    plain = await flight.hand("plain")
    await flight.until(lambda: len(flight.crew.needs) == 1)
    (left,) = flight.crew.needs
    assert (left.handoff_id, left.state, left.answer) == (plain, RequestState.OPEN, None)
    assert flight.state(plain) is D.WAITING_HUMAN
    wrong = await flight.do(cc.AnswerRequest(request=left.id, option="maybe"), ok=False)
    assert "go, stop" in wrong["message"]
    await flight.do(cc.AnswerRequest(request=left.id, option="1", text="quickly"))
    assert (await flight.crew.wait(plain)).output == "go quickly operator:ann"
    again = await flight.do(cc.AnswerRequest(request=left.id, option="stop"), ok=False)
    assert "answered already" in again["message"]


async def test_parked_ideas_are_taken_up_as_work_or_as_a_goal_or_dropped(flight: Flight) -> None:
    await flight.register("larry", kind="role")
    await flight.register("minto")

    async def parks(job: Job) -> Any:
        for idea in ("a toy", "a toy", "a book", "a film"):
            await job.desk.park(job.run, idea)
        return job.done(", ".join(job.desk.parked(job.run)))

    flight.worker.scripts |= {"larry": parks}
    talk = await flight.hand("larry")
    assert (await flight.crew.wait(talk)).output == "a toy, a book, a film"
    assert len(flight.crew.state.parked("larry")) == 3


async def test_the_operators_text_becomes_the_result(flight: Flight) -> None:
    """Line 43."""
    await flight.register("one", "gate")

    async def gate(job: Job) -> Any:
        return job.done("poor", code=ErrorCode.QUALITY_GATE)

    flight.worker.scripts = {"one": asks(ASKED), "gate": gate}
    name = await flight.hand("one")
    await flight.until(lambda: bool(flight.crew.needs))
    await flight.do(cc.TakeOver(handoff=name, text="My own result"))
    result = await flight.crew.wait(name)
    assert (result.output, result.from_agent, result.success) == ("My own result", "one", True)
    assert result.metadata == {"by": "operator", "operator": "ann"}
    assert not flight.crew.needs
    ended = [
        json.loads(one.body)["state"]
        for one in await flight.store.read(CREW)
        if one.kind == "crew.human_closed"
    ]
    assert ended == ["cancelled"]

    failed = await flight.hand("gate")
    await flight.crew.wait(failed)
    (request,) = flight.crew.needs
    assert [one.id for one in request.options] == ["retry", "accept", "takeover", "abort"]
    empty = await flight.do(cc.AnswerRequest(request=request.id, option="takeover"), ok=False)
    assert "takeover needs words" in empty["message"]
    await flight.do(cc.AnswerRequest(request=request.id, option="takeover", text="By hand"))
    after = list(flight.crew.state.handoffs.values())[-1]
    assert after.result is not None
    assert (after.result.output, after.context.retry_of, after.context.attempt) == ("By hand", failed, 2)
    assert flight.state(failed) is D.FAILED


async def test_the_same_question_is_one_request_with_a_count(flight: Flight) -> None:
    await flight.register("one")

    async def one(job: Job) -> Any:
        answers = await asyncio.gather(*(job.desk.ask(job.run, ASKED) for _ in range(3)))
        return job.done(" ".join(str(answer.option_id) for answer in answers))

    flight.worker.scripts["one"] = one
    name = await flight.hand("one")
    await flight.until(lambda: bool(flight.crew.needs) and flight.crew.needs[0].times == 3)
    await flight.do(cc.AnswerRequest(request="hr-1", option="go"))
    assert (await flight.crew.wait(name)).output == "go go go"
    assert len(flight.crew.state.requests) == 1


async def test_a_clarity_refused_twice_goes_to_the_operator(flight: Flight) -> None:
    await flight.register(
        "strict", receives={"requires_who": True, "requires_success": True, "min_clarity": 0.5}
    )
    for times in (0, 1):
        await flight.hand("strict", clarity={"what": "Churn of pilots rises"})
        assert len(flight.crew.needs) == times
    assert flight.crew.needs[0].reason_code == "CLARITY_REFUSED"
    assert "takeover" in [one.id for one in flight.crew.needs[0].options]


async def test_the_floor_has_one_holder_and_comes_back_from_one_that_crashes(flight: Flight) -> None:
    """Line 33."""
    await flight.register("larry", "devil", kind="role")
    await flight.register("guide", kind="guided")
    await flight.register("worker")
    crash = asyncio.Event()
    heard: list[str] = []

    async def larry(job: Job) -> Any:
        while True:
            listens = OperatorQuestion(
                RequestKind.QUESTION, CONVERSATION, "Larry listens", f"turn {len(heard)}"
            )
            answer = await job.desk.ask(job.run, listens)
            heard.append(answer.text)
            if answer.text.startswith("to "):
                try:
                    heard.append(await job.desk.transfer(job.run, answer.text[3:], "go on"))
                except HandoffError as error:
                    heard.append(str(error.code))

    async def devil(job: Job) -> Any:
        await crash.wait()
        raise HandoffError(ErrorCode.INTERNAL, "it broke")

    flight.worker.scripts = {"larry": larry, "devil": devil}
    await flight.do(cc.Transfer(to="larry", reason="hello"))
    holder = flight.crew.state.floor[-1]
    assert (holder.agent, len(flight.crew.state.floor)) == ("larry", 1)
    refused = await flight.do(cc.Transfer(to="worker"), ok=False)
    assert "takes no transfer" in refused["message"]
    assert flight.crew.state.floor == (holder,)
    await flight.do(cc.Say(text="first"))
    await flight.do(cc.Say(text="to worker"))
    await flight.until(lambda: len(heard) == 3)
    assert heard == ["first", "to worker", "NOT_CALLABLE"]
    assert flight.crew.state.floor == (holder,)
    assert not flight.crew.needs

    await flight.register("larry", kind="role", may=("devil",))
    await flight.do(cc.TakeBack())
    assert flight.crew.state.holder == "orchestrator"
    await flight.until(lambda: flight.state(holder.handoff) is D.CANCELLED)
    await flight.do(cc.Transfer(to="larry"))
    await flight.do(cc.Say(text="to devil"))
    await flight.until(lambda: flight.crew.state.holder == "devil")
    assert [one.agent for one in flight.crew.state.floor] == ["larry", "devil"]
    given = flight.crew.state.handoffs[flight.crew.state.floor[-1].handoff].context
    assert (given.from_agent, given.return_to, given.handoff_type) == ("larry", "", "transfer")
    crash.set()
    await flight.until(lambda: flight.crew.state.holder == "larry")
    assert [one.reason_code for one in flight.crew.needs] == ["FLOOR_FAILED"]


async def test_a_move_in_a_guided_handoff_reaches_its_run_and_saving_pauses_it(flight: Flight) -> None:
    await flight.register("guide", kind="guided")
    step = OperatorQuestion(RequestKind.QUESTION, "guided.step", "Segments", "Who are your customers?")

    async def guide(job: Job) -> Any:
        await job.desk.keep(job.run, "guided.step", {"at": "one"}, "step 1 of 9")
        move = json.loads((await job.desk.ask(job.run, step)).text)
        return job.done(f"{move['move']} {move['value']}")

    flight.worker.scripts["guide"] = guide
    name = await flight.hand("guide")
    await flight.until(lambda: bool(flight.crew.needs))
    await flight.do(cc.GuidedMove(handoff=name, move="save"))
    assert flight.state(name) is D.PAUSED
    assert flight.crew.state.handoffs[name].progress == {"at": "one"}
    await flight.do(cc.ResumeHandoff(handoff=name))
    assert flight.state(name) is D.WAITING_HUMAN
    await flight.do(cc.GuidedMove(handoff=name, move="answer", value=["shops"]))
    assert (await flight.crew.wait(name)).output == "answer ['shops']"
    late = await flight.do(cc.GuidedMove(handoff=name, move="back"), ok=False)
    assert "waits for no step" in late["message"]


async def test_what_a_role_found_out_goes_with_what_it_hands_over(flight: Flight) -> None:
    await flight.register("larry", kind="role", may=("hand",))
    await flight.register("hand")
    known = {"what": "Churn of pilots rises", "what_clarity": 0.85}
    seen: list[Any] = []

    async def larry(job: Job) -> Any:
        turns = [{"role": "operator", "text": f"turn {number}"} for number in range(12)]
        kept = {"crew.role": {"clarity": known}, "crew.turns": turns}
        await job.desk.keep(job.run, "role.turn", kept)
        return job.done((await job.delegate("hand")).output)

    async def hand(job: Job) -> Any:
        seen.append(job.context)
        return job.done()

    flight.worker.scripts = {"larry": larry, "hand": hand}
    name = await flight.hand("larry", clarity={"what": "hm"}, priority=3)
    await flight.crew.wait(name)
    (context,) = seen
    assert context.problem_clarity.what == "Churn of pilots rises"
    assert next(one.text for one in context.conversation.recent_messages) == "turn 2"
    assert (context.priority, context.parent_id) == (3, name)
    assert flight.crew.state.clarity == known


async def test_what_is_refused_as_unclear_goes_to_the_clarifier_once_and_then_to_the_operator(
    flight: Flight,
) -> None:
    """A refused handoff goes back to Larry (ontology spec §1.2)."""
    await flight.register("larry", kind="role", receives={"min_clarity": 0.0, "requires_what": False})
    await flight.register("strict", receives={"requires_who": True, "requires_success": True})

    async def talks(job: Job) -> Any:
        await asyncio.Event().wait()

    flight.worker.scripts["larry"] = talks
    first = await flight.hand("strict", "sell more", clarity={"what": "sell more"})
    await flight.until(lambda: flight.crew.state.holder == "larry")
    assert flight.state(first).value == "rejected"
    task = flight.crew.state.handoffs[flight.crew.state.floor[-1].handoff].context.task_description
    assert "who is not said" in task
    assert "sell more" in task
    assert not flight.crew.needs
    await flight.do(cc.TakeBack())
    await flight.hand("strict", "sell more", clarity={"what": "sell more"})
    assert [one.reason_code for one in flight.crew.needs] == ["CLARITY_REFUSED"]
    assert flight.crew.state.holder == "orchestrator"
