"""Asking a model for a run: which model, how it is to think, and what may be called."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.agents.kinds import ErrorCode, ThinkingMode
from engine.agents.skill_files import SkillFiles
from engine.agents.spec import AgentSpec, ModelChoice
from engine.domain.text import clean_line
from engine.domain.thinking import Decision, DecisionRequest, ThinkingError
from engine.models import (
    Capabilities,
    ModelClient,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    NotOfFormError,
    PieceSink,
    Recorder,
    ask_until,
)
from engine.models.request import ANY_TOOL, LEAST_THINKING
from engine.recovery import kind_of_model_error
from engine.thinkers.brief import Brief
from engine.thinkers.spec_methods import failing
from engine.thinkers.spec_prompt import question, system_blocks, words_for
from engine.thinkers.spec_reader import SpecReader
from engine.thinkers.spec_tools import Offer, offers
from engine.tools.registry import ToolRegistry


class SpecAsker:
    """Asks the model that a specification chooses.

    Args:
        client: who carries requests.
        registry: every tool that there is.
        of_tier: the model of a tier.
        sink: told the pieces of answers as they come.
        record: told of every request what came of it.
    """

    def __init__(
        self,
        client: ModelClient,
        registry: ToolRegistry,
        of_tier: Callable[[str], str],
        sink: PieceSink,
        record: Recorder,
    ) -> None:
        self._client, self._registry, self._of_tier = client, registry, of_tier
        self._sink, self._record = sink, record

    async def decide(
        self,
        brief: Brief,
        request: DecisionRequest,
        others: Sequence[AgentSpec],
        made: int,
        files: SkillFiles | None = None,
    ) -> Decision:
        """One decision; an answer that cannot be used is put right at most twice, and then ends the handoff.

        Raises:
            ThinkingError: the model could not be asked or did not answer.
        """
        offered = offers(brief, request.step, self._registry, others, made, files)
        asked = self.request(brief, request, offered, files)
        reader = SpecReader(brief, request.step, offered, self._registry, in_words=not asked.tools)
        try:
            given = await ask_until(self._client, asked, reader.read, sink=self._sink, record=self._record)
        except NotOfFormError as error:
            why = clean_line(f"{asked.model} gave nothing usable: {'; '.join(error.problems)}")
            return failing(why, ErrorCode.OUTPUT_FORMAT)
        except ModelError as error:
            raise ThinkingError(
                kind_of_model_error(error),
                f"{asked.model}: {error.message}",
                error.retry_after_s or 0.0,
                held=error.kind is ModelErrorKind.BUDGET,
            ) from error
        return given.value

    def request(
        self,
        brief: Brief,
        request: DecisionRequest,
        offered: Sequence[Offer],
        files: SkillFiles | None = None,
    ) -> ModelRequest:
        """The question as it is sent."""
        choice = brief.spec.model
        name = choice.id or self._of_tier(choice.tier.value)
        known = self._client.capabilities(name)
        tools = tuple(offer.shown for offer in offered)
        budget = thinking_budget(choice, known)
        most = min(choice.max_tokens, known.max_output)
        return ModelRequest(
            name,
            (question(brief, request, files),),
            system_blocks(brief.spec, "" if known.tools else words_for(tools), files),
            tools if known.tools else (),
            tool_choice=ANY_TOOL if known.tools else "",
            max_tokens=most,
            temperature=choice.temperature if budget is None else None,
            thinking_budget=budget if budget is not None and budget < most else None,
            effort=choice.effort.value if choice.effort is not None else "",
            cache_tools=known.tools,
        )


def thinking_budget(choice: ModelChoice, known: Capabilities) -> int | None:
    """Tokens for thinking; None where the model is not to think, or takes no such setting.

    `Capabilities.fit` makes adaptive thinking of any number where the model decides by itself.
    """
    if choice.thinking is ThinkingMode.BUDGET:
        return choice.thinking_budget
    if choice.thinking is ThinkingMode.ADAPTIVE and known.thinking == "adaptive":
        return LEAST_THINKING
    return None
