"""After an action: what its outcome does to the step, and what is done about a failure."""

from __future__ import annotations

from engine.domain.action import ErrorCode, ResultStatus, ToolResult
from engine.domain.failure import FailureKind, Strategy
from engine.domain.goal import GoalStatus
from engine.domain.plan import PlanStep
from engine.journal import events as ev
from engine.loop.decide import end_goal
from engine.loop.heuristics import after_failure, after_success
from engine.loop.recording import RecordingAgent
from engine.recovery.strategy import choose


class RecoveringAgent(RecordingAgent):
    """Settles steps and recovers from failures."""

    def _settle(self, step: PlanStep, goal: str, answer: ToolResult) -> None:
        cause = f"{self.log.stream}:{self.log.version}"
        if answer.ok:
            for payload in after_success(self.state, goal, step, answer):
                self.append(payload, "agent", cause)
            return
        code = answer.code or ErrorCode.INTERNAL
        for payload in after_failure(self.state, goal, step, answer, code):
            self.append(payload, "agent", cause)
        kind = self.state.failures[-1].kind
        self._recover(kind, goal, step.id, answer.message, self.state.failures[-1].event)

    def _step_failed(self, step: PlanStep, goal: str, kind: FailureKind, message: str, cause: str) -> None:
        answer = ToolResult(ResultStatus.ERROR, {"message": message}, ErrorCode.INTERNAL)
        for payload in after_failure(self.state, goal, step, answer, answer.code, kind):
            self.append(payload, "agent", cause)
        self._recover(kind, goal, step.id, message, self.state.failures[-1].event)

    def _recover(self, kind: FailureKind, goal: str, step: str, message: str, cause: str) -> None:
        """Choose a strategy and carry out what of it happens at once."""
        choice = choose(
            kind,
            self.state.tried.get(step, ()),
            consecutive_errors=self.state.consecutive_errors,
            max_consecutive_errors=self.state.config.max_consecutive_errors,
            ask=self.state.config.ask,
            randomness=self._random,
        )
        tried = tuple(
            f"{strategy} ({number})" for number, strategy in enumerate(self.state.tried.get(step, ()), 1)
        )
        chosen = self.append(
            ev.RecoveryChosen(
                failure=kind,
                strategy=choice.strategy,
                step=step,
                attempt=choice.attempt,
                of=choice.of,
                delay_s=choice.delay_s,
                why=choice.why,
            ),
            "agent",
            cause,
        )
        if choice.strategy is Strategy.FALLBACK_MANUAL:
            opened = ev.InterventionOpened(goal=goal, step=step, reason=message, failure=kind, tried=tried)
            self.append(opened, "agent", chosen.ref)
        elif choice.strategy is Strategy.ABORT_GRACEFULLY:
            root = self.state.goals[goal]
            while root.parent is not None:
                root = self.state.goals[root.parent]
            for payload in end_goal(self.state, root, GoalStatus.FAILED, f"{kind}: {message}"):
                self.append(payload, "agent", chosen.ref)
