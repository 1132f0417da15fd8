"""The parameters of a requested action, settled before it runs.

The request pins what was decided up to it, so looking at the workspace may take its time; what was found
stands in the journal with what it led to. A model is asked behind the gate only, as that costs money.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from engine import parameters
from engine.domain.action import ErrorCode
from engine.domain.parameters import Extraction, Survey
from engine.domain.state import ActiveAction
from engine.journal import events as ev
from engine.loop.budgeting import BudgetedAgent
from engine.models import ModelError
from engine.parameters import Call, Outcome, enquire, process, read_settings
from engine.tools.arguments import Checked, Problem

NO_MODEL = "no model is there that could take it from the goal (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL)"
SWITCHED_OFF = "no model is asked for it, as use_llm_extraction is switched off"


class SettlingAgent(BudgetedAgent):
    """Puts right what is wrong for certain, and has a model find what is missing."""

    async def _settled(
        self,
        args: Mapping[str, Any],
        goal: str,
        overtaken: Callable[[], bool],
        admitted: Callable[[], Awaitable[object]],
    ) -> Checked:
        """The requested action's arguments after all stages, and what is wrong with them.

        Args:
            args: as the step has them, without defaults.
            goal: the text of the goal that the action serves.
            overtaken: whether the action is no longer the one to run; what is found then counts for nothing.
            admitted: waits at the gate; True when the action may go on.
        """
        action = self.state.action
        assert action is not None
        registry = self.around.registry
        checked = registry.check(action.tool, action.command, args)
        spec = registry.get(action.tool).commands.get(action.command) if action.tool in registry else None
        if spec is None:
            return checked
        settings = read_settings(self.state.config.meta)
        call = Call(spec, dict(args), goal, self.state.sandbox.cwd, settings)
        outcome = await self._processed(call, overtaken, None, action.event)
        if outcome is None or not outcome.missing:
            return outcome.checked if outcome is not None else checked
        if not settings.use_llm_extraction:
            return self._lacking(outcome, action, SWITCHED_OFF)
        while await admitted() is True:
            # No await since the gate was passed.
            asker = self._asker()
            if asker is None:
                return self._lacking(outcome, action, NO_MODEL)
            with suppress(ModelError):  # a budget holds the agent; it is asked again when it goes on
                return await self._extracted(call, outcome, action, asker, overtaken)
        return outcome.checked

    async def _extracted(
        self,
        call: Call,
        outcome: Outcome,
        action: ActiveAction,
        asker: parameters.Asker,
        overtaken: Callable[[], bool],
    ) -> Checked:
        """The outcome with what a model finds in the goal.

        Raises:
            ModelError: a budget holds the agent.
        """
        names = tuple(parameter.name for parameter in outcome.missing)
        asked = self.append(
            ev.ParametersAsked(action=action.id, model=asker.model, missing=names), "agent", action.event
        )
        self.asked = asked.ref
        self.commit_soon()
        args = outcome.checked.args
        question = parameters.Question(call.goal, action.tool, call.spec, outcome.missing, args, call.cwd)
        found = await self._while(lambda: not overtaken(), self._told_by(asker, question, action))
        if found is None or overtaken():
            return outcome.checked
        call = replace(call, args={**args, **found.values})
        filled = await self._processed(call, overtaken, found, asked.ref)
        if filled is None or not filled.missing:
            return outcome.checked if filled is None else filled.checked
        why = f"{asker.model} was asked: {found.error or 'the goal does not say it'}"
        return self._lacking(filled, action, why)

    async def _told_by(
        self, asker: parameters.Asker, question: parameters.Question, action: ActiveAction
    ) -> Extraction:
        """What a model finds; its calls are recorded as being about this action."""
        voice = self.around.voice
        if voice is None:
            return await asker.extract(question)
        voice.about(action.goal, f"parameters of {action.id}")
        return await asker.extract(question)

    def _asker(self) -> parameters.Asker | None:
        """Who can be asked for what is missing."""
        model, name, voice = self.around.model, self.around.model_name, self.around.voice
        if model is None or not name:
            return None
        repairs = self.around.repairs
        return (
            parameters.ModelAsker(model, name, repairs=repairs)
            if voice is None
            else parameters.ModelAsker(model, name, voice.called, repairs=repairs)
        )

    async def _processed(
        self, call: Call, overtaken: Callable[[], bool], extraction: Extraction | None, cause: str
    ) -> Outcome | None:
        """Look up what is needed, and record what came of it; None when the action was overtaken."""
        action = self.state.action
        assert action is not None
        enquiry = enquire(call)
        survey: Survey | None = Survey()
        if enquiry:
            look = self.around.perceiver.survey(self.state.agent_id, action, call.cwd, enquiry)
            survey = await self._while(lambda: not overtaken(), look)
        if survey is None or overtaken():
            return None
        outcome = process(call, survey, extraction)
        if outcome.telling:
            said = ev.ParametersProcessed(
                action=action.id,
                args=outcome.checked.args,
                corrections=outcome.corrections,
                stages=outcome.stages,
                survey=survey,
                extraction=extraction,
            )
            self.append(said, "agent", cause)
        return outcome

    def _lacking(self, outcome: Outcome, action: ActiveAction, why: str) -> Checked:
        """What is wrong, with why nobody found what is missing and how to give it."""
        names = " and ".join(repr(parameter.name) for parameter in outcome.missing)
        how = f"give {names} in the program" if self.state.reasons else f"edit {action.step} and give {names}"
        hint = Problem(ErrorCode.BAD_ARGUMENTS, f"{why}: {how}.")
        return replace(outcome.checked, problems=(*outcome.checked.problems, hint))
