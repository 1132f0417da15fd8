"""What holds the agent's programs: the policy in view, and the choice where there is no jail."""

from __future__ import annotations

from app.cockpit.leaving import Leaving
from app.projection import views
from engine.domain import commands as cmd
from widgets.dialogs import NoJailChoice, NoJailDialog, PolicyDialog


class SandboxKeys(Leaving):
    """Looking at the policy, and accepting less than it requires."""

    def action_policy(self) -> None:
        """Show what programs of this agent may do."""
        if self._engine is None:
            self._say("the workspace is still opening", "error")
        else:
            self.push_screen(PolicyDialog(views.policy(self._agent, self._engine.sandbox(self._agent))))

    def _offer_no_jail(self) -> None:
        """Where no program may run, let the operator choose; until they do, none runs."""
        if self._engine is not None and self._engine.health.sandbox:
            self.push_screen(NoJailDialog(views.no_jail(self._engine.sandbox())), self._without_jail)

    def _without_jail(self, choice: NoJailChoice | None) -> None:
        if self._engine is None:
            return
        if choice is NoJailChoice.ACCEPT:
            accept = cmd.AcceptTier.model_validate({"tier": self._engine.sandbox().tier})
            self._send(accept)
        elif choice is NoJailChoice.LEAVE:
            self.action_leave()
        else:
            self._say(
                "programs stay refused; accept_tier in the command bar changes that, P says why", "note"
            )
