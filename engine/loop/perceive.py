"""What an agent sees of its workspace before it decides anything."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from engine.domain.action import ErrorCode, SandboxSession
from engine.domain.parameters import Survey
from engine.domain.ports import CallContext
from engine.domain.state import ActiveAction
from engine.parameters import Enquiry, survey
from engine.sandbox.completion import to_the_end
from engine.sandbox.overwriting import lost_by
from engine.sandbox.paths import PathError
from engine.tools.coders import Coders
from engine.tools.registry import ToolRegistry

ENTRIES = 50
"""Names of the working directory that become a belief."""


class WorkspacePerceiver:
    """Looks at the sandbox through the same tool that the agent acts with."""

    def __init__(self, registry: ToolRegistry, coders: Coders, agent: str = "") -> None:
        self._registry = registry
        self._agent = agent
        self._coders = coders

    async def perceive(self, session: SandboxSession) -> tuple[dict[str, Any], SandboxSession]:
        """What lies in the working directory; the session leaves a directory or venv that is gone."""
        session = await self._existing(session)
        tool = self._registry.get("simple_coder")
        answer = await tool.call("ls", {"path": "."}, CallContext(session, agent=self._agent))
        items = [str(item) for item in answer.data.get("items", [])]
        return {
            "session.cwd": session.cwd,
            "session.venv": session.venv,
            "workspace.entries": items[:ENTRIES],
        }, session

    async def survey(self, agent: str, action: ActiveAction, cwd: str, enquiry: Enquiry) -> Survey:
        """What the paths lead to under the agent's own policy; nothing is known of a root that is gone."""

        def look() -> Survey:
            files = self._coders.of(agent).files
            try:
                files.check_root()
                return survey(files, cwd, enquiry)
            except PathError:
                return Survey()

        return await to_the_end(asyncio.to_thread(look))

    async def lost_by(self, agent: str, action: ActiveAction, cwd: str, own: str) -> int:
        """Bytes that the action's `content` would take the place of; 0 where it cannot be written."""
        path, content = action.args.get("path"), action.args.get("content")

        def look() -> int:
            files = self._coders.of(agent).files
            try:
                files.check_root()
                return lost_by(files, files.relative(str(path), cwd), str(content).encode(), own)
            except (PathError, UnicodeEncodeError):
                return 0

        return await to_the_end(asyncio.to_thread(look))

    async def _existing(self, session: SandboxSession) -> SandboxSession:
        if not await self._is_there(session.cwd):
            session = replace(session, cwd=".")
        if session.venv is not None and not await self._is_there(session.venv):
            session = replace(session, venv=None)
        return session

    async def _is_there(self, path: str) -> bool:
        tool = self._registry.get("simple_coder")
        answer = await tool.call("ls", {"path": path}, CallContext(SandboxSession(), agent=self._agent))
        return answer.code not in (ErrorCode.NOT_FOUND, ErrorCode.WRONG_TYPE)
