"""SimpleCoder: a sandboxed session of file commands and programs.

It obeys and does not reason. It holds no session of its own: the state comes in with each call and is
returned with the result, so that the journal alone says where an agent is.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from engine.core.actions import ErrorCode, ResultStatus, SandboxSession, ToolResult
from engine.core.ports import CallContext, CommandSpec
from engine.core.sandbox import TreeKind
from engine.sandbox.completion import run_to_completion
from engine.sandbox.file_search import search
from engine.sandbox.files import SandboxFiles, bytes_lost
from engine.sandbox.jail import Confinement, Launch
from engine.sandbox.jobs import Sessions
from engine.sandbox.paths import PathError, name_text, parse_name
from engine.sandbox.policy import SandboxPolicy, Tier
from engine.sandbox.process import Ended, Launcher, ProcessResult
from engine.sandbox.programs import BASE_PYTHON, child_environment, command_prefix, validate_venv
from engine.sandbox.tier import PROMISES, JailRefusal, best_jail
from engine.tools.command_line import CommandLineError, run_result, split_command
from engine.tools.registry import check_arguments, unknown_command
from engine.tools.simple_coder_commands import COMMANDS, help_text
from engine.tools.simple_coder_programs import Handler, PreparedLaunch, ProgramCommands

T = TypeVar("T")
_VENV_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_SLOW_PROGRAMS = frozenset({"pip", "pip3", "npm"})


class SimpleCoder:
    """The tool `simple_coder` over one sandbox root."""

    id = "simple_coder"
    description = (
        "A sandboxed session that reads and writes files, makes virtual environments and runs programs."
    )
    commands: Mapping[str, CommandSpec] = COMMANDS

    def __init__(
        self,
        root: Path,
        policy: SandboxPolicy | None = None,
        *,
        confinement: Confinement | None = None,
        environ: Mapping[str, str] | None = None,
        files: SandboxFiles | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        """Open the sandbox.

        Args:
            root: an existing directory.
            policy: limits and grants.
            confinement: what holds programs to the root; the firmest jail of this machine by default,
                when the policy is content with that one.
            environ: where the few settings that programs may see come from; the process's own by default.
            files: the root, where it is open already.
            sessions: jobs and shells beside the calls, where another coder shares it.

        Raises:
            PathError: the root is no directory, or cannot be one.
        """
        self.policy = policy or SandboxPolicy()
        self.files = files or SandboxFiles(root, self.policy)
        self.launcher = Launcher(self.files.root, self.policy)
        self.sessions = sessions or Sessions()
        programs = ProgramCommands(self.sessions, self.launcher, self.files, self._prepared, self._held)
        self._programs = programs
        self._waiting: Mapping[str, Handler] = {
            **programs.handlers,
            "run": self._run,
            "create_venv": self._create_venv,
        }
        """Commands that wait for programs; the others are quick, and done in a thread."""
        self._confinement = confinement
        self._jail: Confinement | JailRefusal | None = confinement
        self._kept = tuple(name for name in self.policy.protected if self.files.entry(name) is not None)
        self._environ = environ

    def close(self) -> None:
        """Close the sandbox root."""
        self.files.close()

    def under(self, policy: SandboxPolicy) -> SimpleCoder:
        """A coder over the same root under another policy; of use until this one is closed."""
        files = self.files.under(policy)
        return SimpleCoder(
            files.root,
            policy,
            confinement=self._confinement,
            environ=self._environ,
            files=files,
            sessions=self.sessions,
        )

    @property
    def jail(self) -> Confinement | JailRefusal:
        """What holds programs to the root, or why none may run; blocking when it is asked for first."""
        if self._jail is None:
            self._jail = best_jail(self.policy)
        return self._jail

    @property
    def tier(self) -> Tier:
        """How firmly programs are held; PATHS where none may run. Blocking when it is asked for first."""
        jail = self.jail
        return Tier.PATHS if isinstance(jail, JailRefusal) else jail.tier

    async def call(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run one command; see `engine.core.ports.Tool.call`."""
        started = time.monotonic()
        result = await self._answer(command, args, context)
        return replace(result, duration_ms=round((time.monotonic() - started) * 1000))

    async def start_program(self, words: list[str], context: CallContext, shown: str) -> ToolResult:
        """As `start`, with any program: for agents whose own program could run it in the same jail."""
        try:
            return await self._programs.start(words, context, self._held, shown)
        except PathError as refused:
            return _error(refused.code, refused.message)

    async def _answer(self, command: str, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        spec = self.commands.get(command)
        if spec is None:
            return _error(ErrorCode.UNKNOWN_COMMAND, unknown_command(self, command).message)
        checked = check_arguments(spec, args)
        if checked.problems:
            return _error(ErrorCode.BAD_ARGUMENTS, checked.message)
        waits = self._waiting.get(command)
        try:
            await _in_thread(self.files.check_root)
            if waits is not None:
                return await waits(checked.args, context)
            handler: Callable[..., ToolResult] = getattr(self, f"_{command}")
            return await _in_thread(lambda: handler(checked.args, context))
        except PathError as refused:
            return _error(refused.code, refused.message)
        except CommandLineError as error:
            return _error(ErrorCode.BAD_ARGUMENTS, str(error))

    # Files

    def _ls(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        listing = self.files.list(self._path(args["path"], context))
        data: dict[str, Any] = {"items": list(listing.items)}
        if len(listing.items) < listing.total:
            data["truncated"] = {"items": listing.total - len(listing.items)}
        return ToolResult(ResultStatus.SUCCESS, data)

    def _cd(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        path = self._path(args["path"], context)
        with self.files.directory(path):
            """It can be opened beneath the root, which is all that `cd` asks."""
        session = replace(context.session, cwd=name_text(path))
        place = "" if path == "." else session.cwd
        return _session_changed(f"Current directory is now: ./{place}", session)

    def _mkdir(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        self.files.make_directory(self._path(args["path"], context))
        return _done(f"Directory created/ensured at {args['path']}")

    def _read(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        content = self.files.read(self._path(args["path"], context))
        return ToolResult(ResultStatus.SUCCESS, {"content": content})

    def _write(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        path, data = self._path(args["path"], context), _encoded(args["content"], "content")
        free = context.session.autonomous or context.by_operator or context.granted
        if not free and (lost := bytes_lost(self.files, path, data, context.own)):
            return _error(
                ErrorCode.NOT_ALLOWED,
                f"{args['path']!r} has other content ({_count(lost, 'byte')}); to replace it needs the "
                "operator while autonomous mode is off. Use append or replace, or write to another name.",
            )
        self.files.write(path, data)
        return _done(f"Wrote {_count(len(data), 'byte')} to {args['path']}")

    def _append(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        path, data = self._path(args["path"], context), _encoded(args["content"], "content")
        head = path.rpartition("/")[0]
        if head:
            self.files.make_directory(head)
        limit = self.policy.read_bytes
        old = b"" if self.files.entry(path) is None else self.files.read_bytes(path, limit)
        self.files.write(path, old + data)
        return _done(f"Appended {_count(len(data), 'byte')} to {args['path']}")

    def _replace(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        path, old, new = self._path(args["path"], context), args["old"], args["new"]
        if not old:
            return _error(ErrorCode.BAD_ARGUMENTS, "replace: 'old' is empty; give the text to replace.")
        _encoded(old, "old")
        _encoded(new, "new")
        text = self.files.read(path)
        count = text.count(old)
        if not count:
            message = f"The text to replace does not occur in {args['path']!r}"
            return _error(ErrorCode.NOT_FOUND, f"{message}; read the file and copy it exactly.")
        grown = count * (len(new.encode()) - len(old.encode()))
        self.files.check_size(path, len(text.encode()) + grown)
        self.files.write(path, text.replace(old, new).encode())
        return _done(f"Replaced {_count(count, 'occurrence')} in {args['path']}", count=count)

    def _find(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        path, text = self._path(args["path"], context), args["text"]
        if not text:
            return _error(ErrorCode.BAD_ARGUMENTS, "find: 'text' is empty; give the text to look for.")
        _encoded(text, "text")
        matches = search(self.files, text, path)
        cwd = context.session.cwd
        lines = [f"{_seen_from(cwd, name)}:{number}: {line}" for name, number, line in matches.lines]
        notes = []
        if matches.truncated:
            notes.append(f"The first {len(matches.lines)} matches; there are more. Search a smaller part.")
        if matches.shared:
            left_out = _count(matches.shared, "file")
            notes.append(f"{left_out} with a name (hard link) outside of the sandbox root left out.")
        message = {"message": " ".join(notes)} if notes else {}
        return ToolResult(ResultStatus.SUCCESS, {"items": lines, **message})

    def _move(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        now = self.files.move(*(self._path(args[name], context) for name in ("source", "target")))
        return _done(f"Moved {args['source']} to {_seen_from(context.session.cwd, now)}")

    def _copy(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        now = self.files.copy(*(self._path(args[name], context) for name in ("source", "target")))
        return _done(f"Copied {args['source']} to {_seen_from(context.session.cwd, now)}")

    def _rm(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        path = self._path(args["path"], context)
        if not context.session.autonomous:
            return _error(
                ErrorCode.NOT_ALLOWED,
                "rm needs autonomous mode, which is off; the operator can switch it on with "
                "toggle_autonomous_mode.",
            )
        self.files.remove(path)
        return _done(f"File deleted: {args['path']}")

    # The session

    def _activate_venv(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        path = self._venv_path(args["venv_name"], context)
        validate_venv(self.files, path)
        if name_text(path) != path:
            return _error(ErrorCode.BAD_ARGUMENTS, f"{name_text(path)!r} cannot be a venv's path; rename it.")
        session = replace(context.session, venv=path)
        return _session_changed(f"Venv '{args['venv_name']}' is now active for this session.", session)

    def _deactivate_venv(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        if context.session.venv is None:
            return _done("No venv was active.")
        return _session_changed("Venv deactivated.", replace(context.session, venv=None))

    def _toggle_autonomous_mode(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        if not (context.by_operator or context.granted):
            return _error(
                ErrorCode.NOT_ALLOWED,
                "Switching autonomous mode is a request that the operator must grant; an agent cannot do it.",
            )
        session = replace(context.session, autonomous=not context.session.autonomous)
        state = "ENABLED" if session.autonomous else "DISABLED"
        return _session_changed(f"Autonomous mode {state}.", session)

    def _help(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        return ToolResult(ResultStatus.SUCCESS, {"content": help_text()})

    def _policy(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        jail = self.jail
        gone = [path for path in self.policy.read_only if not Path(path).exists()]
        held = jail.message if isinstance(jail, JailRefusal) else f"{jail.tier}: {PROMISES[jail.tier]}"
        lines = [*self.policy.explain(), *(f"missing   {path} is not there" for path in gone)]
        lines += [f"now       {held}", "Only the operator can change this."]
        data = {"content": "\n".join(lines), "policy": self.policy.as_json(), "tier": self.tier.value}
        return ToolResult(ResultStatus.SUCCESS, data)

    # Programs

    async def _create_venv(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        name = args["venv_name"]
        path = self._venv_path(name, context)
        if await _in_thread(lambda: self.files.entry(path)) is not None:
            message = f"{name!r} exists already. If it is a venv: activate_venv '{name}'"
            return _error(ErrorCode.EXISTS, message)
        argv = [str(BASE_PYTHON), "-m", "venv", name]
        limit_s = _limit(self.policy.install_s, context)
        complete = False
        try:
            plain = replace(context, session=replace(context.session, venv=None))
            result = await self._launch(self._held(argv, plain), context, limit_s)
            complete = result.ended is Ended.EXIT and result.return_code == 0
        finally:
            if not complete:  # half an environment would stand in the way of a second try
                await _in_thread(lambda: self._remove_partial(path))
        if complete:
            return _done(f"Venv '{name}' created. Activate it with: activate_venv '{name}'")
        failed = run_result(["create_venv", name], result, limit_s, self.policy)
        return replace(failed, beliefs={})

    def _remove_partial(self, path: str) -> None:
        if self.files.entry(path) is not None:
            self.files.remove_tree(path)

    async def _run(self, args: Mapping[str, Any], context: CallContext) -> ToolResult:
        words = split_command(args["command"])
        limit_s = _limit(self._time_for(words), context)
        result = await self._launch(self._prepared(words, context), context, limit_s)
        return run_result(words, result, limit_s, self.policy)

    def _time_for(self, argv: list[str]) -> float:
        installs = argv[0] in _SLOW_PROGRAMS or argv[1:3] == ["-m", "pip"] or argv[:2] == ["git", "clone"]
        return max(self.policy.install_s, self.policy.wall_clock_s) if installs else self.policy.wall_clock_s

    async def _launch(
        self, prepared: AbstractAsyncContextManager[PreparedLaunch], context: CallContext, limit_s: float
    ) -> ProcessResult:
        async with prepared as (launch, cwd, jail):
            program, *rest = launch.argv
            words = shlex.join([PurePath(program).name, *rest])
            tree = self.sessions.new_tree(context.agent, TreeKind.CALL, context.action, words)
            how = (launch, cwd)
            return await self.launcher.run(*how, jail=jail, limit_s=limit_s, output=context.output, tree=tree)

    @asynccontextmanager
    async def _prepared(self, words: list[str], context: CallContext) -> AsyncIterator[PreparedLaunch]:
        """A command line ready to be launched: an allowed program, held as the policy requires."""
        venv = context.session.venv
        prefix = await _in_thread(lambda: command_prefix(words[0], self.files, self.policy, venv))
        async with self._held([*prefix, *words[1:]], context) as held:
            yield held

    @asynccontextmanager
    async def _held(self, argv: list[str], context: CallContext) -> AsyncIterator[PreparedLaunch]:
        session, files = context.session, self.files

        def prepare() -> tuple[Confinement | JailRefusal, dict[str, str]]:
            for private in (self.policy.home, self.policy.tmp):
                files.private_directory(private)
            return self.jail, child_environment(files.root, self.policy, session.venv, self._environ)

        jail, env = await _in_thread(prepare)
        if isinstance(jail, JailRefusal):
            raise PathError(ErrorCode.NOT_ALLOWED, jail.message)
        if self._kept and jail.tier is Tier.KERNEL:
            raise PathError(
                ErrorCode.NOT_ALLOWED,
                f"No command may run: {self._kept[0]!r} is in the sandbox root, and only the jail FULL "
                f"keeps commands away from it; this is {jail.tier}. Choose a sandbox root of its own.",
            )
        with files.directory(self._path(".", context)) as cwd:
            yield Launch(argv[0], tuple(argv), env), cwd, jail

    # Paths

    def _path(self, path: str, context: CallContext) -> str:
        return self.files.relative(path, context.session.cwd)

    def _venv_path(self, name: str, context: CallContext) -> str:
        if not _VENV_NAME.fullmatch(name) or set(name) == {"."}:
            raise PathError(
                ErrorCode.BAD_ARGUMENTS,
                f"{name!r} is not a name for a venv; use letters, digits, _ . and -, such as '.venv'.",
            )
        return self._path(name, context)


def _in_thread(work: Callable[[], T]) -> Coroutine[Any, Any, T]:
    """Run blocking file work off the loop; a cancellation waits until it is done."""
    return run_to_completion(asyncio.to_thread(work))


def _limit(own: float, context: CallContext) -> float:
    return own if context.timeout_s is None else min(own, context.timeout_s)


def _seen_from(cwd: str, path: str) -> str:
    """The path as it can be given to the next call."""
    return name_text(posixpath.relpath(path, parse_name(cwd)))


def _encoded(text: str, argument: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise PathError(
            ErrorCode.BAD_ARGUMENTS, f"{argument!r} is not valid Unicode at character {error.start}."
        ) from None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _done(message: str, **more: Any) -> ToolResult:
    return ToolResult(ResultStatus.SUCCESS, {"message": message, **more})


def _error(code: ErrorCode, message: str) -> ToolResult:
    return ToolResult(ResultStatus.ERROR, {"message": message}, code)


def _session_changed(message: str, session: SandboxSession) -> ToolResult:
    beliefs = {f"session.{name}": getattr(session, name) for name in ("cwd", "venv", "autonomous")}
    return ToolResult(ResultStatus.SUCCESS, {"message": message}, session=session, beliefs=beliefs)
