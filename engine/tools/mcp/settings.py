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
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from engine.core.store.places import open_plain
from engine.core.text import StrictJsonError, clean_line, read_json
from engine.core.trust import FolderTrust
from engine.model import LateModel
from engine.tools.registry import suggestion
from engine.value import dataclass, field, replace

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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
        with open_plain(workspace / FILE) as file:
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
        settings, wrong = _server(name, entry)
        if (other := seen.setdefault(name.lower(), name)) != name:
            wrong.append(("", f"it differs from {other} in case alone"))
        shown = clean_line(name, limit=40)
        faults += [SettingsFault(f"{shown}.{path}" if path else shown, message) for path, message in wrong]
        if settings is not None and not wrong:
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


def _server(name: str, entry: Any) -> tuple[ServerSettings | None, list[tuple[str, str]]]:
    """One server, None where it is disabled or unusable, and what is wrong with it, each with its path."""
    wrong: list[tuple[str, str]] = []
    if not _NAME.fullmatch(name) or len(name) > _NAME_LIMIT:
        signs = f"a letter, then up to {_NAME_LIMIT - 1} of letters, digits and single - and _ between them"
        wrong.append(("", f"a server's name is {signs}"))
    if not isinstance(entry, dict):
        return None, [*wrong, ("", "must be an object with command or url")]
    if ("command" in entry) == ("url" in entry):
        return None, [*wrong, ("", "needs either command or url, and not both")]
    form = _Program if "command" in entry else _Address
    try:
        read = form.model_validate(entry)
    except ValidationError as error:
        return None, [*wrong, *(_problem(details, form) for details in error.errors())]
    reached = read.model_dump(exclude={"type", "disabled"})
    if isinstance(read, _Program):
        reached["args"] = tuple(read.args)
    return None if read.disabled else ServerSettings(name, **reached), wrong


def _problem(details: ErrorDetails, form: type[_Entry]) -> tuple[str, str]:
    place = [part for part in details["loc"] if part != "[key]"]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
    if details["type"] != "extra_forbidden":
        return clean_line(path, limit=60), details["msg"].removeprefix("Value error, ")
    known = list(form.model_fields)
    tip = suggestion(path, known)
    return clean_line(path, limit=60), f"is not known.{tip} Known here: {', '.join(known)}"


def _no_secret(value: str) -> str:
    if "\0" in value:
        raise ValueError("holds a NUL")
    if _SECRET_VALUE.search(value):
        raise ValueError("holds what looks like a secret: set it in your environment and name it in env")
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("must be a text that is not empty")
    return value


def _argument(value: str) -> str:
    if _SECRET_ARGUMENT.match(value):
        raise ValueError("looks like a secret: pass it by a variable named in env")
    return value


def _passed_on(value: Any) -> Any:
    """A list of names passes these variables on."""
    if not isinstance(value, list):
        return value
    if not all(isinstance(name, str) and _ENV_NAME.fullmatch(name) for name in value):
        raise ValueError("a list holds names of variables only, such as GITHUB_TOKEN")
    return {name: f"${{{name}}}" for name in value}


def _no_secret_variable(values: dict[str, str]) -> dict[str, str]:
    for name, text in values.items():
        if _SECRET_NAME.search(name) and text and not _REFERENCE.fullmatch(text):
            raise ValueError(
                f"{clean_line(name, limit=60)} looks like a secret: set it in your environment and write "
                f"${{{clean_line(name, limit=60)}}} here"
            )
    return values


def _matching(pattern: re.Pattern[str], message: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(message)
        return value

    return AfterValidator(check)


def _url(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be an http or https address with a host")
    if parts.username or parts.password:
        raise ValueError("holds a user or password: use headers with a variable")
    if any(_SECRET_NAME.search(name) for name, _ in parse_qsl(parts.query)):
        raise ValueError("holds what looks like a secret: use headers with a variable")
    return url


_Plain = Annotated[str, AfterValidator(_no_secret)]
_Text = Annotated[_Plain, AfterValidator(_text)]
_EnvName = Annotated[str, _matching(_ENV_NAME, "is no name of a variable")]
_HeaderName = Annotated[str, _matching(_HEADER_NAME, "is no name of a header")]
_HeaderValue = Annotated[
    str, _matching(_HEADER_VALUE, "must name a variable, such as ${TOKEN} or Bearer ${TOKEN}")
]


class _Entry(BaseModel, metaclass=LateModel):
    """What each server may say."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    timeout_s: float = Field(TIMEOUT_S, gt=0, le=TIMEOUT_LIMIT_S)
    disabled: bool = False


class _Program(_Entry):
    """A program that speaks over its standard streams."""

    command: _Text
    args: list[Annotated[_Plain, AfterValidator(_argument)]] = []
    env: Annotated[
        dict[_EnvName, _Plain], BeforeValidator(_passed_on), AfterValidator(_no_secret_variable)
    ] = {}
    cwd: _Text = ""
    jail: bool = False
    type: Literal["stdio"] | None = None


class _Address(_Entry):
    """A server of streamable HTTP."""

    url: Annotated[_Text, AfterValidator(_url)]
    headers: dict[_HeaderName, _HeaderValue] = {}
    type: Literal["http", "streamable-http", "streamable_http"] | None = None
