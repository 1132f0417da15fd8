"""The reactive procedure with its questions answered from a conversation, between two cycles.

A run stops at a prompt that was not asked yet. Once it was, the run is made again from the start: with
the answers known it goes the same way, and no answer is waited for inside of it.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.bdi.agent import BdiAgent
from engine.bdi.printer import text_of, trigger_text
from engine.planning.pgp import log_events as log
from engine.planning.pgp.answer_layout import InventionKind
from engine.planning.pgp.answer_parser import Answer, Invention, with_inventions
from engine.planning.pgp.documentation import Documentation
from engine.planning.pgp.generated_plans import Provenance
from engine.planning.pgp.procedure import PlanQuestion, ReactiveProcedure
from engine.planning.pgp.requests import AskError, Conversation, Reply, context_of, prompt_of
from engine.planning.pgp.validation import review

Note = Callable[[log.LogEvent, str], None]
"""Gets an event of a generation, and the generation's name."""

_INVENTED = {
    InventionKind.GOAL: log.Kept.ADMISSIBLE_GOAL,
    InventionKind.BELIEF: log.Kept.ADMISSIBLE_BELIEF,
}


class AnsweredProcedure:
    """The plans of one agent in a run, from a conversation.

    Args:
        agent: whose goals may find no plan.
        known: what is documented of it; inventions of accepted answers are added.
        conversation: what was said so far.
        read: how an answer's text is read.
        note: gets what the generations do.
    """

    def __init__(
        self,
        agent: BdiAgent,
        known: Documentation,
        conversation: Conversation,
        read: Callable[[str], Answer],
        note: Note | None = None,
    ) -> None:
        self._agent = agent
        self._known = known
        self._conversation = conversation
        self._read = read
        self._note = note or (lambda event, generation: None)
        self._inner = ReactiveProcedure(agent)
        self._generations = 0

    @property
    def asked(self) -> int:
        """Generations begun."""
        return self._inner.asked

    def answer(self) -> None:
        """Answer all open questions.

        Raises:
            UnansweredError: the conversation does not have an answer yet.
        """
        for question in self._inner.questions:
            self._answer(question)

    def _answer(self, question: PlanQuestion) -> None:
        context = context_of(self._agent, question.goal, self._known)
        prompt = prompt_of(context, self._conversation.config)
        reply = self._conversation.reply(prompt)
        self._generations += 1
        name, goal = f"generation-{self._generations}", trigger_text(question.goal)
        config = dict(self._conversation.config.public())
        self._note(log.GenerationRequested(goal=goal, config={**config}), name)
        self._note(log.GenerationSucceeded(goal=goal, stage="requested"), name)
        self._note(log.PromptSent(role="system", text=prompt.system), name)
        self._note(log.PromptSent(role="user", text=prompt.user), name)
        if isinstance(reply, AskError):
            self._note(log.GenerationFailed(goal=goal, reason=str(reply)), name)
            self._inner.give_up(question, str(reply))
            return
        self._note(log.AnswerReceived(completion_id=reply.completion_id, text=reply.text), name)
        self._settle(question, reply, name)

    def _settle(self, question: PlanQuestion, reply: Reply, name: str) -> None:
        answer = self._read(reply.text)
        goal, config = trigger_text(question.goal), self._conversation.config.public()
        source = Provenance(goal, reply.model, name, time="", config=config, depth=question.depth)
        done = self._inner.settle(question, review(answer, question.goal, self._known.actions), source)
        if isinstance(done, str):
            self._note(log.GenerationFailed(goal=goal, reason=done), name)
            return
        self._known = with_inventions(self._known, answer.inventions)
        for invention in answer.inventions:
            self._note(_became_admissible(invention), name)
        plans = tuple(plan.name for plan in done.added)
        self._note(log.GenerationSucceeded(goal=goal, stage="completed", plans=plans), name)


def _became_admissible(invention: Invention) -> log.LogEvent:
    text = text_of(invention.template)
    return log.MindChanged(what=_INVENTED[invention.kind], change="added", text=text)
