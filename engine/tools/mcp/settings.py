"""`mcp.json` of a workspace: which MCP servers there are, and how each is reached.

`{name: {command, args, env, cwd, timeout_s, jail}}` is a program that speaks over its standard streams,
`{name: {url, headers, timeout_s}}` streamable HTTP; both may be below a key `mcpServers`, as other programs
write it. Each fault is reported on a line with its path, and only the servers concerned are left out. Secrets
are in the environment and named here, never written down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from engine.core.text import StrictJsonError, clean_line, read_json
from engine.core.trust import FolderTrust
from engine.tools.registry import suggestion
from engine.value import dataclass, field, replace

FILE = "mcp.json"
SIZE_LIMIT = 256 * 1024
TIMEOUT_S = 60.0
"""Seconds that a call may take where the file does not say."""
TIMEOUT_LIMIT_S = 3_600.0
SERVERS_LIMIT = 64
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
_NAME_LIMIT = 32
_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}"
_REFERENCE = re.compile(_VARIABLE)
_HEADER_VALUE = re.compile(rf"(?:(?:Bearer|Basic|Token) )?{_VARIABLE}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(
    r"token|secret|passw|passphrase|credential|api_?key|private_?key|_key$|^key$|auth", re.I
)
_SECRET_VALUE = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}|glpat-[\w-]{16,})|://[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY"
)
_SECRET_ARGUMENT = re.compile(r"--?[\w-]*(?:token|secret|passw\w*|api-?key)=\S", re.I)
_COMMON = ("timeout_s", "type", "disabled")
_STDIO = ("command", "args", "env", "cwd", "jail", *_COMMON)
_HTTP = ("url", "headers", *_COMMON)
_TYPES = {"stdio": "command", "http": "url", "streamable-http": "url", "streamable_http": "url"}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How one server is reached; either `command` or `url` is said."""

    name: str
    command: str = ""
    """Name of a program or its path."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the program; `${NAME}` stands for the cockpit's own variable."""
    cwd: str = ""
    """Directory that it is started in, from the workspace's; the workspace itself where it is empty."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """`${NAME}`, with `Bearer ` before it where wanted."""
    timeout_s: float = TIMEOUT_S
    jail: bool = False
    """Whether the program runs in the jail of the workspace's sandbox."""
    own: bool = False
    """Whether the user's own settings name it, and not the workspace's."""
    base: str = ""
    """The directory that `cwd` is seen from; empty for the workspace's."""

    @property
    def transport(self) -> str:
        """`stdio` or `http`."""
        return "http" if self.url else "stdio"


@dataclass(frozen=True, slots=True)
class SettingsFault:
    """One thing that is wrong with the file."""

    path: str
    """Such as `neo4j.args[1]`; empty for the file as a whole."""
    message: str
    file: str = FILE

    def __str__(self) -> str:
        where = f"{self.file}: {self.path}" if self.path else self.file
        return f"{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The servers of a workspace, and what is wrong with its file."""

    servers: tuple[ServerSettings, ...] = ()
    faults: tuple[SettingsFault, ...] = ()


class MissingVariableError(LookupError):
    """A variable that the settings name is not set; the message says which, never a value."""


def load(workspace: Path, trust: FolderTrust | None = None) -> McpSettings:
    """The servers of a workspace, as far as its user trusts them; none where it has no file. Blocking."""
    try:
        with (workspace / FILE).open("rb") as file:
            content = file.read(SIZE_LIMIT + 1)
    except FileNotFoundError:
        return McpSettings()
    except OSError as error:
        return _unreadable(f"it cannot be read: {error.strerror}")
    if trust is not None and not trust.admits(FILE, content):
        return McpSettings()
    if len(content) > SIZE_LIMIT:
        return _unreadable(f"it is larger than {SIZE_LIMIT // 1024} KiB")
    try:
        return read(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return _unreadable(f"it is not UTF-8 at byte {error.start}")


def load_all(workspace: Path, home: Path | None, trust: FolderTrust | None = None) -> McpSettings:
    """The servers of a workspace, behind those of the user's own directory, which count first. Blocking.

    Args:
        workspace: the workspace's directory.
        home: the user's own directory; its programs are started in it where they do not say otherwise, as
            a workspace may hold files that a program would take for its own.
        trust: what of the workspace's folder counts; None for all.
    """
    theirs = load(workspace, trust)
    if home is None or home.resolve() == workspace.resolve():
        return theirs
    own = load(home)
    mine = tuple(replace(server, own=True, base=str(home)) for server in own.servers)
    names = {server.name.lower() for server in mine}
    doubled = [server.name for server in theirs.servers if server.name.lower() in names]
    faults = (
        *(replace(fault, file=str(home / FILE)) for fault in own.faults),
        *theirs.faults,
        *(
            SettingsFault(name, "your own settings name a server so; this one is left out")
            for name in doubled
        ),
    )
    return McpSettings((*mine, *(server for server in theirs.servers if server.name not in doubled)), faults)


def read(text: str) -> McpSettings:
    """The servers that a text names, and everything that is wrong with it."""
    try:
        data = read_json(text)
    except StrictJsonError as error:
        return _unreadable(f"it is no JSON: {clean_line(str(error), limit=300)}")
    wrapped = isinstance(data, dict) and set(data) == {"mcpServers"}
    entries = data["mcpServers"] if wrapped else data
    if not isinstance(entries, dict):
        return _unreadable("it must be an object of servers by name")
    if len(entries) > SERVERS_LIMIT:
        return _unreadable(f"it names {len(entries)} servers; {SERVERS_LIMIT} are the most")
    faults: list[SettingsFault] = []
    servers: list[ServerSettings] = []
    seen: dict[str, str] = {}
    for name, entry in entries.items():
        reader = _Reader(name, faults)
        known = len(faults)
        reader.name(seen)
        settings = reader.server(entry)
        if settings is not None and len(faults) == known:
            servers.append(settings)
    return McpSettings(tuple(servers), tuple(faults))


def expanded(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The values with each `${NAME}` replaced by the variable's value.

    Raises:
        MissingVariableError: a variable is not set.
    """

    def value_of(match: re.Match[str]) -> str:
        try:
            return environ[match[1]]
        except KeyError:
            raise MissingVariableError(f"the environment variable {match[1]} is not set") from None

    return {name: _REFERENCE.sub(value_of, value) for name, value in values.items()}


def _unreadable(message: str) -> McpSettings:
    return McpSettings(faults=(SettingsFault("", f"{message}; no server of it is used"),))


class _Reader:
    """Reads one server's entry and notes what is wrong with it."""

    def __init__(self, name: str, faults: list[SettingsFault]) -> None:
        self._name, self._faults = name, faults
        self._shown = clean_line(name, limit=40)

    def _wrong(self, key: str, message: str) -> None:
        path = f"{self._shown}.{clean_line(key, limit=60)}" if key else self._shown
        self._faults.append(SettingsFault(path, message))

    def name(self, seen: dict[str, str]) -> None:
        """Check the name; two that differ in case alone could not be distinguished."""
        if not _NAME.fullmatch(self._name) or len(self._name) > _NAME_LIMIT:
            self._wrong(
                "",
                f"a server's name is a letter, then up to {_NAME_LIMIT - 1} of letters, digits and single "
                "- and _ between them",
            )
        elif (other := seen.setdefault(self._name.lower(), self._name)) != self._name:
            self._wrong("", f"it differs from {other} in case alone")

    def server(self, entry: Any) -> ServerSettings | None:
        """The server; None where it is disabled or nothing can be made of it."""
        if not isinstance(entry, dict):
            self._wrong("", f"must be an object with command or url, not {_kind(entry)}")
            return None
        if ("command" in entry) == ("url" in entry):
            self._wrong("", "needs either command or url, and not both")
            return None
        known = _STDIO if "command" in entry else _HTTP
        for key in entry:
            if key not in known:
                self._wrong(key, f"is not known.{suggestion(key, known)} Known here: {', '.join(known)}")
        self._type(entry)
        disabled = self._flag(entry, "disabled")
        settings = self._stdio(entry) if "command" in entry else self._http(entry)
        return None if disabled else settings

    def _type(self, entry: Mapping[str, Any]) -> None:
        kind = entry.get("type")
        if kind is None:
            return
        key = _TYPES.get(kind) if isinstance(kind, str) else None
        if key is None:
            self._wrong("type", f"must be stdio or http, not {_shown(kind)}; the old sse is not supported")
        elif key not in entry:
            self._wrong("type", f"{kind} goes with {key}")

    def _stdio(self, entry: Mapping[str, Any]) -> ServerSettings:
        return ServerSettings(
            self._name,
            command=self._text(entry, "command"),
            args=self._args(entry.get("args", [])),
            env=self._env(entry.get("env", {})),
            cwd=self._text(entry, "cwd") if "cwd" in entry else "",
            timeout_s=self._timeout(entry),
            jail=self._flag(entry, "jail"),
        )

    def _http(self, entry: Mapping[str, Any]) -> ServerSettings:
        return ServerSettings(
            self._name,
            url=self._url(entry),
            headers=self._headers(entry.get("headers", {})),
            timeout_s=self._timeout(entry),
        )

    def _text(self, entry: Mapping[str, Any], key: str) -> str:
        value = entry[key]
        if not isinstance(value, str) or not value.strip():
            self._wrong(key, f"must be a text that is not empty, not {_kind(value)}")
            return ""
        if "\0" in value:
            self._wrong(key, "holds a NUL")
        self._no_secret(key, value)
        return value

    def _args(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            self._wrong("args", f"must be a list of texts, not {_kind(value)}")
            return ()
        for number, word in enumerate(value):
            if not isinstance(word, str) or "\0" in word:
                self._wrong(f"args[{number}]", f"must be a text without NUL, not {_kind(word)}")
            else:
                self._no_secret(f"args[{number}]", word)
                if _SECRET_ARGUMENT.match(word):
                    self._wrong(f"args[{number}]", "looks like a secret: pass it by a variable named in env")
        return tuple(word for word in value if isinstance(word, str))

    def _env(self, value: Any) -> dict[str, str]:
        """A list of names passes these variables on; an object gives values."""
        if isinstance(value, list):
            names = [name for name in value if isinstance(name, str) and _ENV_NAME.fullmatch(name)]
            if len(names) != len(value):
                self._wrong("env", "a list holds names of variables only, such as GITHUB_TOKEN")
            return {name: f"${{{name}}}" for name in names}
        if not isinstance(value, dict):
            self._wrong("env", f"must be a list of names or an object of texts, not {_kind(value)}")
            return {}
        for name, text in value.items():
            key = f"env.{name}"
            if not _ENV_NAME.fullmatch(name):
                self._wrong(key, "is no name of a variable")
            elif not isinstance(text, str) or "\0" in text:
                self._wrong(key, f"must be a text without NUL, not {_kind(text)}")
            elif _SECRET_NAME.search(name) and text and not _REFERENCE.fullmatch(text):
                self._wrong(
                    key, f"looks like a secret: set it in your environment and write ${{{name}}} here"
                )
            else:
                self._no_secret(key, text)
        return {name: text for name, text in value.items() if isinstance(text, str)}

    def _headers(self, value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            self._wrong("headers", f"must be an object of texts, not {_kind(value)}")
            return {}
        for name, text in value.items():
            if not _HEADER_NAME.fullmatch(name):
                self._wrong(f"headers.{name}", "is no name of a header")
            elif not isinstance(text, str) or not _HEADER_VALUE.fullmatch(text):
                self._wrong(f"headers.{name}", "must name a variable, such as ${TOKEN} or Bearer ${TOKEN}")
        return {name: text for name, text in value.items() if isinstance(text, str)}

    def _url(self, entry: Mapping[str, Any]) -> str:
        url = self._text(entry, "url")
        try:
            parts = urlsplit(url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            good = False
        if not good:
            self._wrong("url", "must be an http or https address with a host")
            return ""
        if parts.username or parts.password:
            self._wrong("url", "holds a user or password: use headers with a variable")
        if any(_SECRET_NAME.search(name) for name, _ in parse_qsl(parts.query)):
            self._wrong("url", "holds what looks like a secret: use headers with a variable")
        return url

    def _no_secret(self, key: str, value: str) -> None:
        if _SECRET_VALUE.search(value):
            self._wrong(key, "holds what looks like a secret: set it in your environment and name it in env")

    def _timeout(self, entry: Mapping[str, Any]) -> float:
        value = entry.get("timeout_s", TIMEOUT_S)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= TIMEOUT_LIMIT_S:
            self._wrong(
                "timeout_s", f"must be seconds above 0 and up to {TIMEOUT_LIMIT_S:g}, not {_shown(value)}"
            )
            return TIMEOUT_S
        return float(value)

    def _flag(self, entry: Mapping[str, Any], key: str) -> bool:
        value = entry.get(key, False)
        if not isinstance(value, bool):
            self._wrong(key, f"must be true or false, not {_shown(value)}")
            return False
        return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names.get(type(value), "an object")


def _shown(value: Any) -> str:
    return clean_line(repr(value), limit=60)
