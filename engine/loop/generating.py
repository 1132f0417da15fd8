"""Plans that a reasoner lacks, from a model: asked for, checked, shown to the operator, installed.

Each generation is a little state machine in the agent's state. What takes time (the model, the check of its
answer) runs beside the cycle and comes back as an event from outside, so only intentions that wait for the
plans wait (spec BDI §2.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from engine.domain.reasoning import Generation, GenerationStage
from engine.generation.pgp.asking import Answerer, AskError, AskFailure, Prompt, Reply, ask
from engine.generation.pgp.config import EffectiveConfig
from engine.journal import events as ev
from engine.loop.recording import RecordingAgent
from engine.reasoner.generation import Reviewed, config_of, limits_of, read_plans, reviewed
from engine.reasoner.reasoner import Reasoner

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
        agent: where they are recorded.
        reasoner: who lacks the plans.
        answerer: who is asked; None where there is nobody.
    """

    def __init__(self, agent: RecordingAgent, reasoner: Reasoner, answerer: Answerer | None) -> None:
        self._agent = agent
        self._reasoner = reasoner
        self._somebody = answerer
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
        for one in self._agent.state.generations.values():
            asks = one.stage in (GenerationStage.BEGUN, GenerationStage.ASKED)
            if one.stage in _MOVING and one.id not in self._tasks and not (asks and busy):
                return one
        return None

    def forward(self, one: Generation) -> None:
        """Do what a generation needs next; what takes time is begun."""
        match one.stage:
            case GenerationStage.BEGUN | GenerationStage.ASKED:
                self._ask(one, one.repair)
            case GenerationStage.ANSWERED if one.reason:
                self._give_up(one, one.reason)
            case GenerationStage.ANSWERED:
                self._begin(one.id, self._review(one))
            case GenerationStage.REVIEWED:
                self._judge(one)
            case GenerationStage.DECIDED:
                self._obey(one)

    def look_ahead(self) -> bool:
        """Begin to make plans for a goal that may come up, where that is wanted; False when none is."""
        busy = any(not one.stage.over for one in self._agent.state.generations.values())
        if not self._settings.proactive or busy or self._answerer is None:
            return False
        goal = self._reasoner.making.unplanned()
        if goal:
            number = self._agent.state.next_id.get("q", 0) + 1
            self._append(ev.GenerationBegun(generation=f"q{number}", goal=goal, trigger="proactive"))
        return bool(goal)

    async def close(self) -> None:
        """Cut off everything that was begun."""
        self._closed = True
        self.cut()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def cut(self) -> None:
        """Cut off what was begun, to be begun anew when the agent goes on."""
        for task in self._tasks.values():
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        self._tasks.clear()

    # -------------------------------------------------------------- the model

    @property
    def _answerer(self) -> Answerer | None:
        """Who can be asked."""
        return self._somebody

    def _ask(self, one: Generation, repair: str) -> None:
        prompt = self._reasoner.making.prompt(one.id, self._config, repair)
        if prompt is None:
            self._give_up(one, "nobody waits for these plans any more")
        elif self._answerer is None:
            self._give_up(one, NO_MODEL)
        else:
            # The session ended, or the agent was stopped, before the answer came.
            again = one.stage is GenerationStage.ASKED
            asked = ev.GenerationAsked(
                generation=one.id,
                attempt=one.attempt if again else one.attempt + 1,
                model=self._config.model or self._answerer.model,
                system=prompt.system,
                prompt=prompt.user,
                config=self._config.public(),
            )
            self._agent.asked = self._append(asked, one.event)
            self._begin(one.id, self._answer(one.id, self._answerer, prompt, self._config))

    async def _answer(self, ident: str, answerer: Answerer, prompt: Prompt, config: EffectiveConfig) -> None:
        try:
            answered = _answered(ident, await ask(answerer, prompt, config))
        except AskError as error:
            if error.kind is AskFailure.BUDGET:
                self._tasks.pop(ident, None)  # the agent is held; it asks again when it goes on
                return
            answered = ev.GenerationAnswered(generation=ident, error=str(error))
        except Exception as error:  # noqa: BLE001  whoever answers is foreign code: its fault is no answer
            answered = ev.GenerationAnswered(generation=ident, error=_broken("asking for plans", error))
        self._hear(answered)

    # -------------------------------------------------------------- the answer

    async def _review(self, one: Generation) -> None:
        actions, limits = self._reasoner.making.known.actions, limits_of(self._settings)
        known = self._reasoner.making.triggers
        try:
            found = await asyncio.to_thread(reviewed, one.answer, one.goal, actions, limits, known)
        except Exception as error:  # noqa: BLE001  an answer that breaks the reader is of no use, no more
            found = Reviewed((), (), _broken("reading the answer", error), "")
        self._hear(
            ev.GenerationReviewed(
                generation=one.id,
                plans=found.plans,
                problems=found.problems,
                failure=found.failure,
                repair=found.repair,
                inventions=found.inventions,
            )
        )

    def _judge(self, one: Generation) -> None:
        if one.reason and one.attempt <= self._settings.repairs:
            self._ask(one, one.repair)
        elif self._settings.approve and (one.plans or not one.reason):
            self._append(ev.PlansHeld(generation=one.id), one.event)
        elif one.reason:
            self._give_up(one, one.reason)
        else:
            self._install(one, tuple(plan.text for plan in one.plans if plan.accepted))

    def _obey(self, one: Generation) -> None:
        match one.decision:
            case "approve" if one.decision_text.strip():
                read = read_plans(one.decision_text, one.goal)
                self._install(one, read.texts, approved=True)
            case "approve":
                accepted = tuple(plan.text for plan in one.plans if plan.accepted)
                self._install(one, accepted, approved=True)
            case "again":
                self._ask(one, one.decision_text or one.repair)
            case _:
                why = f": {one.decision_text}" if one.decision_text else ""
                self._give_up(one, f"the operator rejected the plans{why}")

    def _install(self, one: Generation, plans: tuple[str, ...], *, approved: bool = False) -> None:
        none, refused = self._reasoner.making.refusals(one.id, plans, approved=approved)
        if none:
            self._give_up(one, refused)
            return
        settled = ev.GenerationSettled(
            generation=one.id,
            plans=plans,
            model=one.model,
            approved=approved,
            reason=refused,
            inventions=one.inventions,
        )
        self._append(settled, one.event)

    def _give_up(self, one: Generation, reason: str) -> None:
        self._append(ev.GenerationSettled(generation=one.id, reason=reason), one.event)

    # -------------------------------------------------------------- recording

    def _append(self, payload: ev.Payload, cause: str = "") -> str:
        return self._agent.append(payload, "agent", cause or self._agent.state.run_event).ref

    def _hear(self, payload: ev.GenerationAnswered | ev.GenerationReviewed) -> None:
        """Record what came from beside the cycle, and let the cycle look at it."""
        self._tasks.pop(payload.generation, None)
        known = self._agent.state.generations.get(payload.generation)
        if known is not None and not known.stage.over:
            self._agent.append(payload, "thinker", known.event)
            self._agent.poke()

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
