"""What a run needs besides the engine's own tools: custom functions, and how its programs are narrowed.

Source: ontology spec §1.14.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.agents.kinds import ErrorCode
from engine.agents.spec import AgentSpec
from engine.crew.parts import HandoffError
from engine.mcp.custom import CustomFunctionError, CustomFunctions
from engine.sandbox import SandboxPolicy
from engine.thinkers.spec_tools import RUN
from engine.tools.registry import ToolRegistry


class Equipment:
    """The custom functions of a workspace, as far as runs have needed them.

    Args:
        registry: where they are offered.
        changed: told when they offer something else.
        root: the sandbox root, beneath which they lie.
        policy: of the sandbox.
    """

    def __init__(
        self, registry: ToolRegistry, changed: Callable[[str], None], root: Path, policy: SandboxPolicy
    ) -> None:
        self._registry, self._changed = registry, changed
        self._custom = CustomFunctions(root, policy)
        self._known: dict[str, str] = {}
        """Dotted path by name."""

    async def ready(self, spec: AgentSpec) -> None:
        """Offer the functions that a spec names; each is imported and looked at in the sandbox first.

        Raises:
            HandoffError: one cannot be a tool, or another agent has one of its name.
        """
        for tool in spec.tools.custom_tools:
            if (there := self._known.get(tool.name)) == tool.function:
                continue
            if there is not None:
                said = f"the tool {tool.name} is {there} already, and {spec.id} wants {tool.function}"
                raise HandoffError(ErrorCode.TOOL_UNAVAILABLE, said)
            try:
                function = await self._custom.look(tool.name, tool.function, tool.parameters)
            except CustomFunctionError as error:
                raise HandoffError(ErrorCode.TOOL_UNAVAILABLE, str(error)) from error
            if self._known.setdefault(tool.name, tool.function) == tool.function:
                self._offer(function)

    def _offer(self, function: Any) -> None:
        if function.name in self._custom.commands:
            return
        self._custom.add(function)
        if self._custom.id not in self._registry:
            self._registry.register(self._custom)
        self._changed(self._custom.id)


def narrowed(spec: AgentSpec, policy: SandboxPolicy) -> dict[str, Any]:
    """The fields by which a run's policy is tightened: with `Bash(git:*)` alone, `run` runs git alone.

    What the workspace's own policy does not allow is never added.
    """
    named = [one for one in spec.tools.local if one.partition(" ")[0] == RUN]
    programs = {one.partition(" ")[2].strip() for one in named}
    if not named or "" in programs:
        return {}
    return {"programs": [one for one in policy.programs if one in programs]}
