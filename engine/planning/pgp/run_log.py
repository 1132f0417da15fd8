"""Writes an agent's run as log lines, and reads the recorded answers of such a log in a model's place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from engine.bdi import trace as traced
from engine.bdi.errors import ErrorId
from engine.bdi.trace import Change, TraceEvent
from engine.planning.pgp import log_events as log
from engine.planning.pgp.prompts import PromptVariant, user_prompt
from engine.planning.pgp.requests import (
    AskError,
    AskFailure,
    GenerationConfig,
    Prompt,
    RecordedAnswers,
    Reply,
)


class RecordingError(ValueError):
    """A log that cannot be used in the place of a model; the message says why."""


class RecordedLog:
    """The answers of a logged run, each to the prompt that it was given to.

    Args:
        lines: of the run's `.jsonl` file.

    Raises:
        RecordingError: a line is no log line, or no generation was logged, or several configurations.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._said: dict[Prompt, Reply | AskError] = {}
        self._config: Mapping[str, object] = {}
        prompts: dict[str, str] = {}
        for number, text in enumerate(lines, 1):
            try:
                event = log.LogLine.from_json(text).event
            except ValidationError as error:
                reason = error.errors()[0]["msg"]
                raise RecordingError(f"line {number} is no line of a run's log: {reason}") from None
            match event:
                case log.GenerationRequested():
                    prompts = {}
                    self._take(event.config, number)
                case log.PromptSent():
                    prompts[event.role] = event.text
                case log.AnswerReceived():
                    self._keep(prompts, Reply(event.text, self.model, event.completion_id))
                case log.GenerationFailed():
                    self._keep(prompts, _failure(event.reason))
                case _:
                    pass
        if not self._config:
            raise RecordingError("no generation was logged")
        self.config = _config_of(self._config)
        """What the logged generations were run with."""

    @property
    def model(self) -> str:
        """The model that was logged."""
        return str(self._config.get("model", RecordedAnswers.model))

    def _take(self, config: Mapping[str, object], number: int) -> None:
        if self._config and config != self._config:
            raise RecordingError(f"line {number}: this generation was run with other parameters")
        self._config = config

    def _keep(self, prompts: Mapping[str, str], reply: Reply | AskError) -> None:
        # A failure behind an answer means that its plans were of no use.
        self._said.setdefault(Prompt(prompts.get("system", ""), prompts.get("user", "")), reply)

    async def answer(self, prompt: Prompt, config: GenerationConfig) -> Reply:
        """What was logged for the prompt."""
        reply = self._said.get(prompt)
        if reply is None:
            raise AskError(AskFailure.UNRECORDED, "the log holds no answer to this prompt")
        if isinstance(reply, AskError):
            raise reply
        return reply


def _failure(reason: str) -> AskError:
    kind, _, message = reason.partition(": ")
    if kind in set(AskFailure):
        return AskError(AskFailure(kind), message)
    return AskError(AskFailure.UNRECORDED, reason)


def _config_of(public: Mapping[str, object]) -> dict[str, Any]:
    """The parameters that a log names, but for filters and remarks, of which it has no more than names.

    Raises:
        RecordingError: one is missing, or is none that this program has.
    """
    try:
        prompt = user_prompt(PromptVariant(str(public["user_prompt"]).removeprefix("user, ")))
        return {
            "model": str(public["model"]),
            "temperature": float(str(public["temperature"])),
            "max_tokens": int(str(public["max_tokens"])),
            "request_timeout_s": float(str(public["request_timeout_s"])),
            "user_prompt": prompt,
        }
    except KeyError as error:
        raise RecordingError(f"the logged parameters lack {error}") from None
    except ValueError as error:
        raise RecordingError(f"the logged parameters: {error}") from None


def recording(content: str) -> RecordedAnswers | RecordedLog:
    """A file's content in the place of a model: the log of a run, or else an answer.

    Raises:
        RecordingError: it is a log, but one that cannot be used.
    """
    lines = [line for line in content.split("\n") if line]
    first = next(iter(lines), "")
    if first.startswith('{"system":'):
        return RecordedLog(lines)
    return RecordedAnswers([content])


_SELECTED = (ErrorId.NO_RELEVANT, ErrorId.NO_APPLICABLE)


class RunLog:
    """Writes the lines of one agent in one run.

    Args:
        system: names the run.
        agent: the agent's name.
        actions: names of the external actions that it has.
        write: gets each line.
    """

    def __init__(
        self, system: str, agent: str, actions: Collection[str], write: Callable[[log.LogLine], None]
    ) -> None:
        self._system = system
        self._agent = agent
        self._actions = actions
        self._write = write
        self._cycle = 0
        self._selected = ""
        """The event that is being handled, until it is known what became of it."""
        self._guards: dict[str, tuple[log.GuardResult, ...]] = {}
        self._requests: dict[int, str] = {}
        self._success: tuple[str, dict[str, JsonValue]] = ("", {})
        self._told = False
        """Whether the step that fails next was reported as an action that failed."""

    def note(self, event: log.LogEvent, generation: str | None = None) -> None:
        """Write a line at the present cycle."""
        self._write(
            log.LogLine(
                system=self._system,
                agent=self._agent,
                generation=generation,
                cycle=self._cycle,
                event=event,
            )
        )

    def succeeding(self, name: str, **data: JsonValue) -> None:
        """What the world calls the success of the action whose feedback comes next."""
        self._success = (name, data)

    def trace(self, record: TraceEvent) -> None:
        """Write what a record of the reasoner says; it can be an agent's tracer."""
        self._cycle = record.cycle
        for event in self._events(record):
            self.note(event)

    def _events(self, record: TraceEvent) -> Iterator[log.LogEvent]:
        match record:
            case traced.BeliefAdded() | traced.BeliefRemoved():
                yield _mind(log.Kept.BELIEF, isinstance(record, traced.BeliefAdded), record.belief)
            case traced.PlanAdded():
                yield _mind(log.Kept.PLAN, True, record.text)
            case traced.PlanRemoved():
                yield _mind(log.Kept.PLAN, False, record.plan)
            case traced.EventQueued() | traced.EventSelected() | traced.EventDropped():
                yield from self._of_event(record)
            case traced.OptionConsidered() if not record.applicable:
                held = (log.GuardResult(guard=guard.condition, held=guard.holds) for guard in record.guards)
                self._guards[record.plan] = tuple(held)
            case traced.PlanSelected():
                self._selected = ""
                yield log.PlanSelected(plan=record.plan, event=record.event)
            case traced.IntentionChanged():
                yield from _of_intention(record)
            case traced.StepRun():
                number = str(record.intention)
                yield log.IntentionStep(step="goal_run", intention=number, goal=record.step)
            case traced.StepSucceeded():
                yield log.GoalSucceeded(goal=record.step)
            case traced.StepFailed() | traced.GoalFailed():
                yield from self._of_failure(record)
            case traced.GoalAchieved():
                yield log.GoalAchieved(goal=record.goal)
            case traced.ActionRequested() | traced.ActionFeedback():
                yield self._of_action(record)
            case traced.MessageReceived():
                yield log.MessageArrived(
                    sender=record.sender, performative=record.performative, content=record.content
                )
            case traced.MessageSent():
                text = f"{record.performative} {record.content} to {record.receiver}"
                yield log.EnvironmentChanged(change="message_sent", text=text)
            case _:
                # A body's end and a tail call say nothing beyond their steps and goals.
                pass

    def _of_event(
        self, record: traced.EventQueued | traced.EventSelected | traced.EventDropped
    ) -> Iterator[log.LogEvent]:
        if isinstance(record, traced.EventSelected):
            self._selected, self._guards = record.event, {}
            yield log.EventSelected(event=record.event)
        elif isinstance(record, traced.EventDropped) and record.event == self._selected:
            return
        yield _mind(log.Kept.EVENT, isinstance(record, traced.EventQueued), record.event)

    def _of_action(self, record: traced.ActionRequested | traced.ActionFeedback) -> log.LogEvent:
        if isinstance(record, traced.ActionRequested):
            self._requests[record.request] = record.action
            return log.ActionAdded(action=record.action)
        action = self._requests.pop(record.request, "")
        if not record.success:
            self._told = True
            return log.ActionFailed(action=action, cause="failed", reason=record.reason)
        (name, data), self._success = self._success, ("", {})
        return log.ActionSucceeded(action=action, name=name, data=data)

    def _of_failure(self, record: traced.StepFailed | traced.GoalFailed) -> Iterator[log.LogEvent]:
        reported, self._told = self._told, False
        if isinstance(record, traced.StepFailed):
            if record.error in (ErrorId.TEST_GOAL_FAILED, ErrorId.CONSTRAINT_FAILED):
                yield log.TestGoalFailed(goal=record.step)
            elif record.error not in (*_SELECTED, ErrorId.PGP_FAILED) and not reported:
                yield log.ActionFailed(action=record.step, cause=self._cause(record), reason=record.message)
        elif record.error in _SELECTED and self._selected[2:] == record.goal:
            # The failure goes down the stack with the same error; only the event's own goal had no plan.
            event, self._selected = self._selected, ""
            if record.error == ErrorId.NO_RELEVANT:
                yield log.PlanNotFound(event=event)
            else:
                yield log.PlanInapplicable(event=event, guards=dict(self._guards))

    def _cause(
        self, record: traced.StepFailed
    ) -> Literal["wrong_arity", "not_found", "substitution_failed", "failed"]:
        if record.error == ErrorId.UNBOUND:
            return "substitution_failed"
        if record.error != ErrorId.ACTION_FAILED:
            return "failed"
        # Without feedback the environment was never asked: it has no such action, or none of this arity.
        return "wrong_arity" if record.step.partition("(")[0] in self._actions else "not_found"


def _mind(what: log.Kept, added: bool, text: str) -> log.MindChanged:
    return log.MindChanged(what=what, change="added" if added else "removed", text=text)


def _of_intention(record: traced.IntentionChanged) -> Iterator[log.LogEvent]:
    number = str(record.intention)
    if record.change is Change.CREATED:
        yield log.IntentionStep(step="created", intention=number)
        yield _mind(log.Kept.INTENTION, True, number)
    elif record.change in (Change.DROPPED, Change.FINISHED):
        yield _mind(log.Kept.INTENTION, False, number)
    else:
        yield log.IntentionStep(step="updated", intention=number)
