"""The tool `simple_coder` for all agents of a workspace: one sandbox, each agent under a policy of its own.

An agent's policy is the workspace's, tightened by what the operator set when they created it. Nothing here
can be reached by a call: only the operator's commands change a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core.actions import ToolResult
from engine.core.ports import CallContext, CommandSpec
from engine.sandbox.policy import Network, PolicyError, SandboxPolicy, Tier
from engine.sandbox.tier import SandboxReport, layers
from engine.tools.simple_coder import SimpleCoder


def policy_limits(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields by which an agent's settings tighten the workspace's policy.

    Raises:
        PolicyError: they are no JSON object.
    """
    fields = meta.get("sandbox", {})
    if not isinstance(fields, Mapping):
        raise PolicyError('sandbox policy: it is a JSON object of fields, such as {"network": "off"}')
    return fields


class SharedCoder:
    """Answers each call by the coder under the caller's policy."""

    id = SimpleCoder.id
    description = SimpleCoder.description
    commands: Mapping[str, CommandSpec] = SimpleCoder.commands

    def __init__(self, coder: SimpleCoder) -> None:
        self._shared = coder
        self._narrowed: dict[str, Mapping[str, Any]] = {}
        self._apart: dict[str, SimpleCoder] = {}
        """Coders of agents that work on files of their own."""
        self.lent: Callable[[str], Path | None] = lambda _agent: None
        """A directory that an agent's programs may read besides what its policy says; None for nothing."""
        self._made: dict[str, tuple[SimpleCoder, Mapping[str, Any], Path | None, SimpleCoder]] = {}
        """Coders under policies of agents' own, each behind what it was made of."""

    def apart(self, agent: str, root: Path) -> None:
        """Let an agent work on files of its own, under the workspace's policy.

        Raises:
            PathError: the root is no directory.
        """
        policy, sessions = self._shared.policy, self._shared.sessions
        self._apart[agent] = SimpleCoder(root, policy, sessions=sessions)

    def remove(self, agent: str) -> None:
        """Forget an agent, and close its files where it had its own."""
        self._made.pop(agent, None)
        self._narrowed.pop(agent, None)
        coder = self._apart.pop(agent, None)
        if coder is not None:
            coder.close()

    def close(self) -> None:
        """Close all files that agents had of their own."""
        for agent in list(self._apart):
            self.remove(agent)

    def of(self, agent: str = "") -> SimpleCoder:
        """The agent's coder; the workspace's for an agent without a policy of its own."""
        base, fields = self._apart.get(agent, self._shared), self._narrowed.get(agent, {})
        folder = self.lent(agent) if agent else None
        if not fields and folder is None:
            return base
        made = self._made.get(agent)
        if made is None or made[:3] != (base, fields, folder):
            policy = base.policy.narrowed(fields)
            if folder is not None:
                policy = replace(policy, read_only=(*policy.read_only, str(folder)))
            made = self._made[agent] = (base, fields, folder, base.under(policy))
        return made[3]

    def report(self, agent: str = "") -> SandboxReport:
        """How the agent's programs are held."""
        coder = self.of(agent)
        return SandboxReport(coder.policy, coder.jail, layers())

    def narrow(self, agent: str, fields: Mapping[str, Any]) -> None:
        """Tighten an agent's policy by these fields, from now on.

        Raises:
            PolicyError: a field is unknown or its value is of the wrong kind.
        """
        if fields:
            self._apart.get(agent, self._shared).policy.narrowed(fields)
            self._narrowed[agent] = fields

    def accept(self, tier: Tier) -> None:
        """Let programs run in this jail or a firmer one, because the operator said so."""
        self._change(lambda policy: policy.accepting(tier))

    def grant_network(self, network: Network) -> None:
        """Let programs reach this much; an agent that was narrowed further stays so."""
        self._change(lambda policy: policy.with_network(network))

    def _change(self, change: Callable[[SandboxPolicy], SandboxPolicy]) -> None:
        self._shared = self._shared.under(change(self._shared.policy))
        for agent, coder in self._apart.items():
            self._apart[agent] = coder.under(change(coder.policy))

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run one command; see `engine.core.ports.Tool.call`."""
        return await self.of(context.agent).call(command, args, context)
