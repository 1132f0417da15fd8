"""The parameters of a requested action, settled before it runs.

The request pins what was decided up to it, so looking at the workspace may take its time; what is found there
stands in the journal with its consequences. A model is asked behind the gate only, as that costs money: one
structured question at temperature 0, whose answer is read strictly and checked by the command's own rules;
twice the model may put it right, with the validator's own words.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from engine.agent.perception import AgentEnvironment
from engine.agent.recorder import AgentRecorder
from engine.agent.settings import read_settings
from engine.core import events as ev
from engine.core.actions import ErrorCode, Extraction, Survey, value_text
from engine.core.ports import Parameter
from engine.core.recovery import ActiveAction
from engine.core.text import RULE, clean_line, fence
from engine.models.choice import REPAIRS
from engine.models.completion import ModelClient, Recorder, ignore_call
from engine.models.errors import ModelError, ModelErrorKind
from engine.models.messages import Message, Text
from engine.models.request import ModelRequest
from engine.models.structured import ask_for
from engine.tools.parameters.paths import place
from engine.tools.parameters.processing import (
    ParameterCall,
    ParameterExtractor,
    ProcessedCall,
    Question,
    lookup_request,
    process,
)
from engine.tools.registry import Checked, Problem, check_arguments, expectation
from engine.value import dataclass

NO_MODEL = "no model is there that could take it from the goal (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL)"
SWITCHED_OFF = "no model is asked for it, as use_llm_extraction is switched off"


TOOL = "give_parameters"
"""The tool by which a model gives the values."""
MAX_TOKENS = 4_096
"""Longest answer, in tokens."""
TEXT_LIMIT = 100_000
"""Longest text that is taken from an answer, in characters."""
_ROLE = f"""You take the values of a command's missing parameters out of the words of a goal.
Give each of them as the goal says it. Where the goal does not say it, give null: never invent a value,
and never take one from an example. Paths are relative to the agent's directory and stay beneath it.

{RULE}"""
_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}


@dataclass
class ModelParameterExtractor:
    """Asks a model.

    Args:
        client: who carries requests to it.
        model: its name, as its endpoint knows it.
        record: gets the result of every request.
        repairs: how often an answer that cannot be used may be put right.
    """

    client: ModelClient
    model: str
    record: Recorder = ignore_call
    repairs: int = REPAIRS

    async def extract(self, question: Question) -> Extraction:
        """See `ParameterExtractor`; a failed call is an extraction without values that says why."""
        try:
            given = await ask_for(
                self.client,
                self._request(question),
                _form(question.missing),
                name=TOOL,
                check=lambda form: _problems(question, _values(form)),
                record=self.record,
                repairs=self.repairs,
            )
        except ModelError as error:
            if error.kind is ModelErrorKind.BUDGET:
                raise
            return Extraction(self.model, error=clean_line(error.message))
        repairs = tuple(tuple(map(clean_line, problems)) for problems in given.problems)
        return Extraction(self.model, _values(given.value), repairs)

    def _request(self, question: Question) -> ModelRequest:
        spec = question.spec
        lines = "\n".join(
            f"- {parameter.name} ({expectation(parameter)}): {parameter.description}"
            for parameter in question.missing
        )
        given = json.dumps(question.given, ensure_ascii=False, default=str)
        blocks = (
            Text(f"The command is {question.tool} {spec.name}: {spec.description}", "command"),
            Text(fence("the agent's directory", question.cwd), "session"),
            Text(fence("parameters that are given already", given), "given"),
            Text(f"The missing parameters:\n{lines}", "missing"),
            Text(f"The goal:\n{question.goal}", "goal"),
        )
        system = (Text(_ROLE, "role"),)
        return ModelRequest(
            self.model, (Message("user", blocks),), system, max_tokens=MAX_TOKENS, temperature=0.0
        )


def _form(missing: Sequence[Parameter]) -> type[BaseModel]:
    """The form of an answer; its fields are named apart, as a parameter may be called `copy` or `json`."""
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(missing):
        kind = str | list[str] if parameter.kind == "shell" else _TYPES.get(parameter.type, Any)
        fields[f"value_{number}"] = (
            kind | None if kind is not Any else Any,
            Field(
                alias=parameter.name,
                description=f"{parameter.description}; null where the goal does not say it",
            ),
        )
    return create_model(
        "Parameters",
        __config__=ConfigDict(extra="forbid"),
        __doc__="Give the values of the missing parameters.",
        **fields,
    )


def _values(form: BaseModel) -> dict[str, Any]:
    return {name: value for name, value in form.model_dump(by_alias=True).items() if value is not None}


def _problems(question: Question, values: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with what a model gave, in the validator's words."""
    checked = check_arguments(question.spec, {**question.given, **values})
    messages = [problem.message for problem in checked.problems if problem.argument in values]
    for parameter in question.missing:
        value = values.get(parameter.name)
        if isinstance(value, str) and len(value) > TEXT_LIMIT:
            messages.append(f"{parameter.name}: it has {len(value)} characters, {TEXT_LIMIT} are the most")
        if parameter.kind == "path" and isinstance(value, str) and place(question.cwd, value) is None:
            messages.append(f"{parameter.name}: {value_text(value)} is no path beneath the sandbox root")
    return tuple(messages)


class ParameterSettler:
    """Corrects what is wrong for certain, and has a model find what is missing.

    Args:
        recorder: the agent's record.
        around: what looks at the workspace, the tools, and the model that is asked.
    """

    def __init__(self, recorder: AgentRecorder, around: AgentEnvironment) -> None:
        self._recorder, self._around = recorder, around
        self._append, self._state = recorder.append, recorder.state
        self._asker = around.asker or self._model_asker

    async def settle(
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
            overtaken: whether the action is no longer the one to run; what is found then is not used.
            admitted: waits at the gate; True when the action may continue.
        """
        action = self._state.action
        assert action is not None
        registry = self._around.registry
        checked = registry.check(action.tool, action.command, args)
        spec = registry.spec(action.tool, action.command)
        if spec is None:
            return checked
        settings = read_settings(self._state.config.meta)
        call = ParameterCall(spec, dict(args), goal, self._state.sandbox.cwd, settings)
        result = await self._processed(call, overtaken, None, action.event)
        if result is None or not result.missing:
            return result.checked if result is not None else checked
        if not settings.use_llm_extraction:
            return self._lacking(result, action, SWITCHED_OFF)
        while await admitted() is True:
            # No await since the gate was passed.
            asker = self._asker()
            if asker is None:
                return self._lacking(result, action, NO_MODEL)
            with suppress(ModelError):  # a budget holds the agent; it is asked again when it goes on
                return await self._extracted(call, result, action, asker, overtaken)
        return result.checked

    async def _extracted(
        self,
        call: ParameterCall,
        result: ProcessedCall,
        action: ActiveAction,
        asker: ParameterExtractor,
        overtaken: Callable[[], bool],
    ) -> Checked:
        """The outcome with what a model finds in the goal.

        Raises:
            ModelError: a budget holds the agent.
        """
        names = tuple(parameter.name for parameter in result.missing)
        asked = self._append(
            ev.ParametersAsked(action=action.id, model=asker.model, missing=names), "agent", action.event
        )
        self._recorder.asked = asked.ref
        self._recorder.commit_soon()
        args = result.checked.args
        question = Question(call.goal, action.tool, call.spec, result.missing, args, call.cwd)
        extraction = await self._recorder.run_while(
            lambda: not overtaken(), self._extraction(asker, question, action)
        )
        if extraction is None or overtaken():
            return result.checked
        call = replace(call, args={**args, **extraction.values})
        filled = await self._processed(call, overtaken, extraction, asked.ref)
        if filled is None or not filled.missing:
            return result.checked if filled is None else filled.checked
        why = f"{asker.model} was asked: {extraction.error or 'the goal does not say it'}"
        return self._lacking(filled, action, why)

    async def _extraction(
        self, asker: ParameterExtractor, question: Question, action: ActiveAction
    ) -> Extraction:
        """What a model finds; its calls are recorded as being about this action."""
        if self._around.model_stream is not None:
            self._around.model_stream.about(action.goal, f"parameters of {action.id}")
        return await asker.extract(question)

    def _model_asker(self) -> ParameterExtractor | None:
        """The agent's model, asked for what is missing; None where there is none."""
        around = self._around
        if around.model is None or not around.model_name:
            return None
        record = around.model_stream.called if around.model_stream is not None else ignore_call
        return ModelParameterExtractor(around.model, around.model_name, record, repairs=around.repairs)

    async def _processed(
        self, call: ParameterCall, overtaken: Callable[[], bool], extraction: Extraction | None, cause: str
    ) -> ProcessedCall | None:
        """Look up what is needed, and record the result; None when the action was overtaken."""
        action = self._state.action
        assert action is not None
        enquiry = lookup_request(call)
        survey: Survey | None = Survey()
        if enquiry:
            look = self._around.perceiver.survey(self._state.agent_id, action, call.cwd, enquiry)
            survey = await self._recorder.run_while(lambda: not overtaken(), look)
        if survey is None or overtaken():
            return None
        result = process(call, survey, extraction)
        if result.telling:
            processed = ev.ParametersProcessed(
                action=action.id,
                args=result.checked.args,
                corrections=result.corrections,
                stages=result.stages,
                survey=survey,
                extraction=extraction,
            )
            self._append(processed, "agent", cause)
        return result

    def _lacking(self, result: ProcessedCall, action: ActiveAction, why: str) -> Checked:
        """What is wrong, with why what is missing was not found and how to give it."""
        names = " and ".join(repr(parameter.name) for parameter in result.missing)
        how = (
            f"give {names} in the program" if self._state.reasons else f"edit {action.step} and give {names}"
        )
        hint = Problem(ErrorCode.BAD_ARGUMENTS, f"{why}: {how}.")
        return replace(result.checked, problems=(*result.checked.problems, hint))
