"""Requests of a program, read as the actions that they ask for, and how it is told that one is not done."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from engine.agent.acp.updates import ToolCall, dicts
from engine.core.agents import CREW
from engine.core.text import clean_line
from engine.model import LateModel
from engine.sandbox.jobs import BackgroundJob
from engine.sandbox.paths import PathError
from engine.tools.acp_tool import TOOL, USE
from engine.tools.simple_coder import SimpleCoder
from engine.value import dataclass

DELEGATE = "delegate"
"""What the tool for handing work on asks: have another agent of the crew do it, and be told its result."""
TITLE = 120
"""Characters of what an action is called."""


@dataclass(eq=False, slots=True)
class Ask:
    """Something that the program wants to be done, or to be allowed to do."""

    method: str
    tool: str
    command: str
    args: Mapping[str, Any]
    title: str
    answer: asyncio.Future[Any]
    call: str = ""
    """The program's own id of the tool call that it asks leave for; empty where Pilothouse does it."""
    given: Any = None
    """The request, as the protocol has it."""

    def same(self, tool: str, command: str, args: Mapping[str, Any]) -> bool:
        """Whether a call is what was asked for, and not what an operator made of it."""
        return (tool, command) == (self.tool, self.command) and all(
            args.get(name) == value for name, value in self.args.items()
        )

    def reply(self, answer: Any) -> None:
        """Answer it; once only."""
        if not self.answer.done():
            self.answer.set_result(answer)


class RequestReader:
    """Reads requests.

    Args:
        coder: gives the agent's sandbox.
        take_call: takes what the program tells of a tool call of its own.
    """

    def __init__(
        self, coder: Callable[[], SimpleCoder], take_call: Callable[[Mapping[str, Any]], ToolCall]
    ) -> None:
        self._coder, self._take_call = coder, take_call

    def read(self, method: str, given: dict[str, Any], answer: asyncio.Future[Any]) -> Ask:
        """The action that a request asks for."""
        if method == "session/request_permission":
            return self._read_permission(given, answer)
        if method == DELEGATE:
            args = {"to": given["to"], "task": given["task"]}
            title = clean_line(f"hand work to {given['to']}", limit=TITLE)
            return Ask(method, CREW, "delegate", args, title, answer, given=given)
        path = self.local(str(given.get("path", "")))
        if method == "fs/read_text_file":
            return Ask(method, "simple_coder", "read", {"path": path}, f"read {path}", answer, given=given)
        if method == "fs/write_text_file":
            args = {"path": path, "content": given["content"]}
            return Ask(method, "simple_coder", "write", args, f"write {path}", answer, given=given)
        words = [given["command"], *given.get("args", [])]
        line: str | list[str] = words if len(words) > 1 else words[0]
        title = clean_line(" ".join(words), limit=TITLE)
        return Ask(method, "simple_coder", "start", {"command": line}, title, answer, given=given)

    def _read_permission(self, given: dict[str, Any], answer: asyncio.Future[Any]) -> Ask:
        told = given["toolCall"]
        ident = str(told["toolCallId"])
        call = self._take_call(told)
        call.asked = True
        title = clean_line(self.local(call.title) or call.kind, limit=TITLE)
        command, title = call.command or title, title if " " in title else f"{call.kind} {title}"
        about: dict[str, Any] = {"title": title, "answer": answer, "call": ident, "given": given}
        if call.diff is not None:
            path, old, new = self.local(call.diff[0]), *call.diff[1:]
            args: dict[str, Any] = {"path": path, "content": self.written(path, old, new)}
            return Ask("", "simple_coder", "write", args, **about)
        if call.kind == "execute":
            return Ask("", "simple_coder", "run", {"command": command}, **about)
        args = {"kind": call.kind, "title": title}
        if call.path:
            args["path"] = self.local(call.path)
        return Ask("", TOOL, USE, args, **about)

    def local(self, path: str) -> str:
        """A path as commands have it: from the sandbox root where it lies there, else as it is."""
        root = str(self._coder().files.root)
        path = posixpath.normpath(path) if path.startswith("/") else path
        return posixpath.relpath(path, root) if f"{path}/".startswith(f"{root}/") else path

    def written(self, path: str, old: Any, new: str) -> str:
        """What a file will hold by a diff: a whole file, or the part of one that is replaced."""
        if isinstance(old, str) and old:
            files = self._coder().files
            with suppress(PathError):
                text = files.read(files.relative(path))
                if text.count(old) == 1:
                    return text.replace(old, new)
        return new


def refusal(ask: Ask, why: str, *, cancelled: bool = False, missing: bool = False) -> Any:
    """How the program is told that something is not done: an outcome, or an error for all but leave."""
    from acp.exceptions import RequestError

    if not ask.call:
        return RequestError(-32002 if missing else -32000, clean_line(why, limit=1_000))
    options = dicts(ask.given.get("options"))
    kinds = {str(option.get("kind")): option.get("optionId") for option in reversed(options)}
    reject = kinds.get("reject_once", kinds.get("reject_always"))
    if cancelled or reject is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": reject}, "_meta": {"reason": clean_line(why)}}


class Delegation(BaseModel, metaclass=LateModel):
    """What the tool for handing work on asks."""

    model_config = ConfigDict(strict=True, defer_build=True)
    to: str = Field(min_length=1, max_length=64)
    task: str = Field(min_length=1, max_length=200_000)


def model_of(method: str) -> Any:
    """The protocol's own form of a request; None where there is no such request."""
    from acp import schema

    name = {
        "session/request_permission": "RequestPermissionRequest",
        "fs/read_text_file": "ReadTextFileRequest",
        "fs/write_text_file": "WriteTextFileRequest",
        "terminal/create": "CreateTerminalRequest",
        "terminal/output": "TerminalOutputRequest",
        "terminal/wait_for_exit": "WaitForTerminalExitRequest",
        "terminal/kill": "KillTerminalRequest",
        "terminal/release": "ReleaseTerminalRequest",
    }.get(method, "")
    return getattr(schema, name, None)


def refusal_text(error: Any) -> str:
    """What the program said when it refused, with the code of its protocol."""
    data = error.data if isinstance(error.data, str) else ""
    if isinstance(error.data, dict):
        data = str(error.data.get("details") or error.data.get("message") or "")
    login = "; log in with the program itself first, or pass its key on" if error.code == -32000 else ""
    return clean_line(f"{error}{': ' if data else ''}{data}{login}", limit=300)


LINES = 2_000
"""Lines of a terminal's output that the program gets, the newest."""


async def read_terminal(jobs: dict[str, BackgroundJob], method: str, given: Mapping[str, Any]) -> Any:
    """Answer what concerns a terminal of the session's own."""
    from acp.exceptions import RequestError

    job = jobs.get(str(given.get("terminalId")))
    if job is None:
        return RequestError(-32602, "there is no such terminal")
    if method in ("terminal/kill", "terminal/release"):
        job.stop()
        if method == "terminal/release":
            del jobs[job.id]
        return {}
    if method == "terminal/wait_for_exit":
        await job.over.wait()
    code = job.result.return_code if job.result is not None else None
    ended: dict[str, Any] = {"exitCode": code if code is not None and code >= 0 else None}
    if code is None or code < 0:
        ended["signal"] = job.told[:100] or None
    if method == "terminal/wait_for_exit":
        return ended
    over = {"exitStatus": ended} if job.over.is_set() else {}
    return {"output": "\n".join(job.newest(LINES)), "truncated": False, **over}
