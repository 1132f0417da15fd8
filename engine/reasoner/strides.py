"""How far the operator lets a reasoner step, and whether it has come there."""

from __future__ import annotations

from engine.bdi.agent import BdiAgent
from engine.domain.reasoning import Stride


class Strides:
    """The present stride of a reasoner."""

    def __init__(self, agent: BdiAgent) -> None:
        self._agent = agent
        self.taken = 0
        """Body steps of the stepped intention in the present stride."""
        self.by_step = False
        """Whether the operator let the reasoner run one body step when it last went on."""

    def at_rest(self, stride: Stride) -> bool:
        """Whether nothing more comes of a stride, as the reasoner waits."""
        if not self.taken or stride.scope == "step":
            return self.taken > 0
        stepped = self._agent.intentions.get(stride.intention)
        return stepped is None or bool(stepped.suspended) or self.arrived(stride)

    def arrived(self, stride: Stride) -> bool:
        """Whether the reasoner has come as far as the operator let it step."""
        if not self.taken:
            return False
        if stride.scope == "step":
            return True
        stepped = self._agent.intentions.get(stride.intention)
        if stepped is None:
            return True
        if stepped.event is not None or stepped.pending is not None or len(stepped.frames) > stride.depth:
            return False
        # A frame that has taken the place of others stands for them.
        return len(stepped.frames) + sum(one.collapsed for one in stepped.frames) <= stride.depth
