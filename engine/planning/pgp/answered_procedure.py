"""The reactive procedure with its questions answered from a conversation, between two cycles.

A run stops at a prompt that was not asked yet. Once it was, the run is made again from the start: with
the answers known it goes the same way, and no answer is waited for inside of it.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.bdi.agent import BdiAgent
from engine.bdi.printer import trigger_text
from engine.planning.pgp.answer_parser import Answer, with_inventions
from engine.planning.pgp.documentation import Documentation
from engine.planning.pgp.generated_plans import Provenance
from engine.planning.pgp.procedure import PlanQuestion, ReactiveProcedure
from engine.planning.pgp.requests import AskError, Conversation, context_of, prompt_of
from engine.planning.pgp.validation import review


class AnsweredProcedure:
    """The plans of one agent in a run, from a conversation.

    Args:
        agent: whose goals may find no plan.
        known: what is documented of it; inventions of accepted answers are added.
        conversation: what was said so far.
        read: how an answer's text is read.
    """

    def __init__(
        self, agent: BdiAgent, known: Documentation, conversation: Conversation, read: Callable[[str], Answer]
    ) -> None:
        self._agent = agent
        self._known = known
        self._conversation = conversation
        self._read = read
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
        if isinstance(reply, AskError):
            self._inner.give_up(question, str(reply))
            return
        answer, goal = self._read(reply.text), trigger_text(question.goal)
        self._generations += 1
        name, config = f"generation-{self._generations}", self._conversation.config.public()
        source = Provenance(goal, reply.model, name, time="", config=config, depth=question.depth)
        done = self._inner.settle(question, review(answer, question.goal, self._known.actions), source)
        if not isinstance(done, str):
            self._known = with_inventions(self._known, answer.inventions)
