"""Plans that a reasoner lacks, from a model: asked for, checked, shown to the operator, installed.

Each generation is a little state machine in the agent's state. What takes time (the model, the check of its
answer) runs beside the cycle and comes back as an event from outside, so only intentions that wait for the
plans wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from engine.agent.reasoner.plan_generation import Reviewed, config_of, limits_of, read_plans, reviewed
from engine.agent.reasoner.reasoner import Reasoner
from engine.agent.recorder import AgentRecorder
from engine.bdi.syntax import Trigger
from engine.core import events as ev
from engine.core.reasoner import Generation, GenerationStage
from engine.planning.pgp.requests import (
    Answerer,
    AskError,
    AskFailure,
    GenerationConfig,
    Prompt,
    Reply,
    request_answer,
)
from engine.value import fields_of

NO_MODEL = (
    "there is no model to make plans: set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL, give the agent recorded "
    "answers, or write plans for the goal"
)
ANSWER_LIMIT = 1_000_000
"""Characters of an answer that are kept and read."""
AT_ONCE = 8
"""Answers that one agent waits for at the same time; further goals wait until they can be asked about."""
_MOVING = (
    *(GenerationStage.BEGUN, GenerationStage.ASKED, GenerationStage.ANSWERED),
    *(GenerationStage.REVIEWED, GenerationStage.DECIDED),
)


class PlanMaker:
    """Brings the generations of one agent forward.

    Args:
        recorder: the agent's record.
        reasoner: lacks the plans.
        answerer: makes plans; None where there is no model.
    """

    def __init__(self, recorder: AgentRecorder, reasoner: Reasoner, answerer: Answerer | None) -> None:
        self._recorder = recorder
        self._reasoner = reasoner
        self._live_answerer = answerer
        self._settings = reasoner.config.generation
        self._config = config_of(self._settings)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        """Tasks that were cut off and have not ended yet."""
        self._closed = False

    @property
    def due(self) -> Generation | None:
        """The generation with which something is to be done now, the oldest."""
        if self._closed:
            return None
        busy = len(self._tasks) >= AT_ONCE
        for generation in self._recorder.state.generations.values():
            asks = generation.stage in (GenerationStage.BEGUN, GenerationStage.ASKED)
            if generation.stage in _MOVING and generation.id not in self._tasks and not (asks and busy):
                return generation
        return None

    def forward(self, generation: Generation) -> None:
        """Do what a generation needs next; what takes time is begun."""
        match generation.stage:
            case GenerationStage.BEGUN | GenerationStage.ASKED:
                self._ask(generation, generation.repair)
            case GenerationStage.ANSWERED if generation.reason:
                self._give_up(generation, generation.reason)
            case GenerationStage.ANSWERED:
                known, triggers = self._reasoner.making.known.actions, self._reasoner.making.triggers
                self._begin(generation.id, self._review(generation, known, triggers))
            case GenerationStage.REVIEWED:
                self._judge(generation)
            case GenerationStage.DECIDED:
                self._obey(generation)

    def look_ahead(self) -> bool:
        """Begin to make plans for a goal that may come up, where that is wanted; False when none is."""
        busy = any(not generation.stage.over for generation in self._recorder.state.generations.values())
        if not self._settings.proactive or busy or self._answerer is None:
            return False
        goal = self._reasoner.making.unplanned()
        if goal:
            number = self._recorder.state.next_id.get("q", 0) + 1
            self._append(ev.GenerationBegun(generation=f"q{number}", goal=goal, trigger="proactive"))
        return bool(goal)

    async def close(self) -> None:
        """Cut off everything that was begun."""
        self._closed = True
        self.cut()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def cut(self) -> None:
        """Cut off what was begun, to be begun anew when the agent continues."""
        for task in self._tasks.values():
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self._tasks.clear()

    # -------------------------------------------------------------- the model

    @property
    def _answerer(self) -> Answerer | None:
        """Who can be asked."""
        return self._live_answerer

    def _ask(self, generation: Generation, repair: str) -> None:
        prompt = self._reasoner.making.prompt(generation.id, self._config, repair)
        if prompt is None:
            self._give_up(generation, "nobody waits for these plans any more")
        elif self._answerer is None:
            self._give_up(generation, NO_MODEL)
        else:
            # The session ended, or the agent was stopped, before the answer came.
            again = generation.stage is GenerationStage.ASKED
            asked = ev.GenerationAsked(
                generation=generation.id,
                attempt=generation.attempt if again else generation.attempt + 1,
                model=self._config.model or self._answerer.model,
                system=prompt.system,
                prompt=prompt.user,
                config=self._config.public(),
            )
            self._recorder.asked = self._append(asked, generation.event)
            self._begin(generation.id, self._answer(generation.id, self._answerer, prompt, self._config))

    async def _answer(self, ident: str, answerer: Answerer, prompt: Prompt, config: GenerationConfig) -> None:
        try:
            answered = _answered(ident, await request_answer(answerer, prompt, config))
        except AskError as error:
            if error.kind is AskFailure.BUDGET:
                self._tasks.pop(ident, None)  # the agent is held; it asks again when it goes on
                return
            answered = ev.GenerationAnswered(generation=ident, error=str(error))
        except Exception as error:  # noqa: BLE001  whoever answers is foreign code: its fault is no answer
            answered = ev.GenerationAnswered(generation=ident, error=_broken("asking for plans", error))
        self._hear(answered)

    # -------------------------------------------------------------- the answer

    async def _review(self, generation: Generation, actions: Any, known: tuple[Trigger, ...]) -> None:
        limits = limits_of(self._settings)
        try:
            review = await asyncio.to_thread(
                reviewed, generation.answer, generation.goal, actions, limits, known
            )
        except Exception as error:  # noqa: BLE001  an answer that breaks the reader is of no use, no more
            review = Reviewed((), (), _broken("reading the answer", error), "")
        fields = fields_of(review, "plans", "problems", "failure", "repair", "inventions")
        self._hear(ev.GenerationReviewed(generation=generation.id, **fields))

    def _judge(self, generation: Generation) -> None:
        if generation.reason and generation.attempt <= self._settings.repairs:
            self._ask(generation, generation.repair)
        elif self._settings.approve and (generation.plans or not generation.reason):
            self._append(ev.PlansHeld(generation=generation.id), generation.event)
        elif generation.reason:
            self._give_up(generation, generation.reason)
        else:
            self._install(generation, tuple(plan.text for plan in generation.plans if plan.accepted))

    def _obey(self, generation: Generation) -> None:
        match generation.decision:
            case "approve" if generation.decision_text.strip():
                texts, _ = read_plans(generation.decision_text, generation.goal)
                self._install(generation, texts, approved=True)
            case "approve":
                accepted = tuple(plan.text for plan in generation.plans if plan.accepted)
                self._install(generation, accepted, approved=True)
            case "again":
                self._ask(generation, generation.decision_text or generation.repair)
            case _:
                why = f": {generation.decision_text}" if generation.decision_text else ""
                self._give_up(generation, f"the operator rejected the plans{why}")

    def _install(self, generation: Generation, plans: tuple[str, ...], *, approved: bool = False) -> None:
        none, refused = self._reasoner.making.refusals(generation.id, plans, approved=approved)
        if none:
            self._give_up(generation, refused)
            return
        fields = fields_of(generation, "model", "inventions")
        settled = ev.GenerationSettled(
            generation=generation.id, plans=plans, approved=approved, reason=refused, **fields
        )
        self._append(settled, generation.event)

    def _give_up(self, generation: Generation, reason: str) -> None:
        self._append(ev.GenerationSettled(generation=generation.id, reason=reason), generation.event)

    # -------------------------------------------------------------- recording

    def _append(self, payload: ev.Payload, cause: str = "") -> str:
        return self._recorder.append(payload, "agent", cause or self._recorder.state.run_event).ref

    def _hear(self, payload: ev.GenerationAnswered | ev.GenerationReviewed) -> None:
        """Record what came from beside the cycle, and let the cycle look at it."""
        self._tasks.pop(payload.generation, None)
        known = self._recorder.state.generations.get(payload.generation)
        if known is not None and not known.stage.over:
            self._recorder.append(payload, "thinker", known.event)
            self._recorder.wake()

    def _begin(self, ident: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[ident] = asyncio.create_task(work, name=f"generation {ident}")


def _broken(doing: str, error: Exception) -> str:
    return f"{doing} broke: {type(error).__name__}: {error}"[:2_000]


def _whole(text: str) -> str:
    """The text without halves of characters, which no journal can hold."""
    return text.encode("utf-8", "replace").decode()


def _answered(ident: str, reply: Reply) -> ev.GenerationAnswered:
    return ev.GenerationAnswered(
        generation=ident,
        answer=_whole(reply.text[:ANSWER_LIMIT]),
        model=_whole(reply.model),
        tokens=reply.input_tokens + reply.output_tokens,
        duration_ms=round(reply.latency_ms),
    )
