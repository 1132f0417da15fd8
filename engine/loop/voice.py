"""What a model says to an agent, brought into the agent's journal as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.journal import events as ev
from engine.journal.recovery_fold import BACKGROUND
from engine.sandbox.pump import OutputPump

if TYPE_CHECKING:
    from engine.models import ModelAnswer, ModelClient, ModelError, ModelRequest
    from engine.models.assembly import Piece

_STREAMS = {"text": "text", "thinking": "thinking", "tool_input": "tool input"}
RUBRICS = f"{BACKGROUND}rubrics"
"""Purpose of a call by which a run's output is judged."""


class Listener(Protocol):
    """Who records what is said: the agent."""

    def overheard(self, payload: ev.ModelSaid | ev.ModelCalled) -> None:
        """Record something that came from a model."""


class Voice:
    """Watches the calls of one agent's model.

    Args:
        client: knows the prices.
    """

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._pump = OutputPump(self._emit)
        self.listener: Listener | None = None
        self.goal = ""
        """What is being asked for now."""
        self.purpose = "plan"
        self.last: dict[str, str] = {}
        """What the call under way, or the last one, has said so far, by stream."""
        self._over = True

    def about(self, goal: str, purpose: str) -> None:
        """Say what is asked for from now on."""
        self.goal, self.purpose = goal, purpose

    def _emit(self, stream: str, text: str, skipped: int) -> None:
        if self.listener is not None:
            self.listener.overheard(ev.ModelSaid(stream=stream, text=text, skipped=skipped))

    def piece(self, piece: Piece) -> None:
        """Take a piece of an answer."""
        if self._over or piece.kind == "again":
            self.last, self._over = {}, False
        if (stream := _STREAMS.get(piece.kind)) is not None:
            self.last[stream] = self.last.get(stream, "") + piece.text
        match piece.kind:
            case "tool":
                self._pump("tool input", f"{piece.text}: ")
            case "again":
                self._pump("text", "\n(the answer broke off; asked again)\n")
            case _:
                self._pump(_STREAMS[piece.kind], piece.text)

    def called(self, request: ModelRequest, outcome: ModelAnswer | ModelError, *, purpose: str = "") -> None:
        """Take the end of a call; one with a purpose of its own was not what is asked for now."""
        from engine.models.recording import called

        self._pump.flush()
        self._over = True
        if self.listener is not None:
            known = self._client.capabilities(request.model)
            said = called(request, outcome, known, goal=self.goal, purpose=purpose or self.purpose)
            self.listener.overheard(said)
