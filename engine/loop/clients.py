"""Calls of programs that a workspace is served to: through the gate as an agent's actions, asked for a time.

Source: issue 9, part 4; `engine.steering.approvals` says what is asked of a client that is not of an agent.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.actions.pipeline import DROPPED
from engine.actions.saving import Saved
from engine.domain.action import ErrorCode
from engine.domain.approval import Answer
from engine.domain.state import OperatorRequest
from engine.journal import events as ev
from engine.loop.approving import ApprovingAgent
from engine.loop.outcome import fresh_id
from engine.steering.approvals import UNANSWERED, Verdict
from engine.steering.gate import Hold, hold
from engine.tools.arguments import Checked, Problem


class ClientAgent(ApprovingAgent):
    """Takes calls of clients through the gate and runs them."""

    async def _serve_client(self, request: OperatorRequest, cut_off: Callable[[], str]) -> None:
        """Run a call of a client, or refuse it with the reason.

        Args:
            request: the first of those that wait.
            cut_off: why nothing more may run, in words; empty while it may.
        """
        action = fresh_id(self.state, "a")
        requested = self.append(
            ev.ActionRequested(action=action, tool=request.tool, command=request.command, args=request.args),
            request.actor,
            request.event,
        )

        def over() -> str:
            current = self.state.action
            return cut_off() or (DROPPED if current is None or current.dropped else "")

        await self._note_needs(lambda: bool(over()))
        passed = await self._pass_for_client(over, request.wait_s)
        if passed is None:
            reason = over() or "stopped"
            self.append(ev.ActionWithdrawn(action=action, reason=reason), "agent", requested.ref)
        elif isinstance(passed, Verdict):
            await self._refuse(passed)
        elif isinstance(passed, ev.SnapshotFailed):
            refused = self.append(passed, "system", requested.ref)
            message = f"the workspace could not be saved before it: {passed.reason}"
            checked = Checked({}, (Problem(ErrorCode.INTERNAL, message),))
            await self.pipeline.refuse(checked, requested.ref, refused.ref)
        else:
            self._record_saved(passed)
            await self.pipeline.run(requested.ref)

    async def _pass_for_client(self, over: Callable[[], str], wait_s: float) -> Saved | Verdict | None:
        """Wait at the gate as long as the call may; what was saved, why it is denied, or None for cut off."""

        def held() -> Hold | None:
            return hold(self.state, trouble=self.log.trouble, call=self._call())

        def asks() -> bool:
            holding = held()
            return not over() and holding is not None and holding.asks

        while not over():
            holding = held()
            if holding is None:
                saved = await self._saved(lambda: not over() and held() is None)
                if saved is not None:
                    return saved
            elif holding.verdict is None:
                await self.commit()
                if held() is not None and not over():
                    await self._wait_for_change()
            elif not holding.asks:
                return holding.verdict
            else:
                self._ask(holding, "")
                await self.commit()
                await self._while(asks, self.around.clock.sleep(wait_s))
                if asks():
                    why = f"{UNANSWERED} within {wait_s:g} s ({holding.verdict.why})"
                    return Verdict(Answer.DENY, why, holding.verdict.cause)
        return None
