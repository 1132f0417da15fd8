"""What an agent of another program is created with: the program, and what it may use beyond its workspace.

The configuration is the operator's grant: network, directories to read, and names of variables. It is kept in
the journal, so secrets are named there and never written down.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.agents import HANDOFF, SPEC
from engine.core.text import first_problem
from engine.model import LateModel
from engine.sandbox.jail import Launch
from engine.sandbox.policy import GIB, PYTHON_PROGRAMS, Network, SandboxPolicy, Tier
from engine.sandbox.programs import BASE_PYTHON, child_environment
from engine.tools.mcp import settings as mcp_settings
from engine.value import dataclass, replace

ADDRESS_BYTES = 256 * GIB
"""Address space of such a program: engines of JavaScript reserve far more than they use."""
PLAYER, DELEGATE_SERVER = (Path(__file__).with_name(name) for name in ("player.py", "delegate_server.py"))
"""What is run in the jail in place of a program, and what a program starts there to hand work on."""
OWN_PROCESS = "/proc/self"
"""What runtimes read of their own process, such as where its stack lies."""


class AcpError(ValueError):
    """The program cannot be used as asked; the message says why and what to do."""


class AcpSettings(BaseModel, metaclass=LateModel):
    """What stands in the agent's configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
    command: str = Field(default="", max_length=2_000)
    """The program with its arguments, as a shell has them."""
    preset: str = ""
    """A name of `presets.toml`, in place of a command."""
    recording: str = ""
    """A recorded session, which is played in place of a program."""
    network: Literal["off", "ports", "on"] = "off"
    ports: list[int] = Field(default=[443], max_length=20)
    """TCP ports that it may connect to with the network `ports`."""
    env: dict[str, str] | list[str] = {}
    """Variables: names that are passed on, or names with values, where `${NAME}` stands for the cockpit's."""
    read: list[str] = Field(default=[], max_length=50)
    """Absolute paths that it may read, besides the system's programs and its own files."""
    mode: str = Field(default="", max_length=200)
    model: str = Field(default="", max_length=200)
    options: dict[str, str | bool] = Field(default={}, max_length=50)
    """Further options of its session, by id."""
    quiet_s: float = Field(default=1_800.0, gt=0, le=86_400)
    """Seconds in a turn without a request, after which the turn is ended."""


SETTINGS = tuple(AcpSettings.__annotations__)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that speaks the protocol, and what it may use."""

    words: tuple[str, ...]
    settings: AcpSettings
    variables: Mapping[str, str]
    """As `env` has them; `${NAME}` is not looked up yet."""
    install: str = ""
    reads: bool = True
    """Whether it can have Pilothouse read files for it."""
    hands_to: tuple[str, ...] = ()
    """To whom it may hand work, where it does that of a crew's member."""

    @property
    def name(self) -> str:
        """What it is called in sentences."""
        return self.settings.preset or self.settings.recording or Path(self.words[0]).name


@cache
def presets() -> Mapping[str, Any]:
    """The programs that are known by name."""
    return tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))


def read_acp(meta: Mapping[str, Any]) -> Program:
    """The program of an agent's configuration; what is no setting of it is left alone.

    Raises:
        AcpError: something in it is wrong.
    """
    try:
        given = AcpSettings.model_validate({name: meta[name] for name in SETTINGS if name in meta})
    except ValidationError as error:
        raise AcpError(first_problem(error)) from None
    if given.recording:
        return _player(given)
    if bool(given.command.strip()) == bool(given.preset):
        raise AcpError(f"give either a command, such as 'opencode acp', or a preset: {', '.join(presets())}")
    preset = presets().get(given.preset) if given.preset else {}
    if preset is None:
        raise AcpError(f"there is no preset '{given.preset[:40]}'; presets: {', '.join(presets())}")
    order = list(Network)
    if order.index(Network(preset.get("network", "off"))) > order.index(Network(given.network)):
        names = " or ".join(preset.get("credentials", ()))
        raise AcpError(
            f"{given.preset} needs the network, which you grant it: network={preset['network']} "
            f'(and its key, by name, such as env=["{names.split(" or ")[0]}"])'
        )
    try:
        words = shlex.split(given.command or preset["command"])
    except ValueError as error:
        raise AcpError(f"command: {error}") from None
    more: dict[str, Any] = {name: preset[name] for name in ("install", "reads") if name in preset}
    if HANDOFF in meta:
        more["hands_to"] = tuple(meta[SPEC]["handoff"]["routing"]["can_delegate_to"])
    handing = preset.get("handing", {}) if more.get("hands_to") else {}
    variables = {**preset.get("variables", {}), **handing, **_checked(words, given)}
    program = Program(tuple(words), given, variables, **more)
    policy_of(program, SandboxPolicy(), Tier.FULL)
    return program


def _player(given: AcpSettings) -> Program:
    """The program that plays a recorded session."""
    from engine.models.recorded import RECORDINGS, load_recording  # late: few are recorded

    if not load_recording(given.recording).session:
        raise AcpError(f"the recording {given.recording} is none of a program's session")
    files = [str(PLAYER), str(RECORDINGS / f"{given.recording}.json")]
    return Program(("python3", *files), AcpSettings(recording=given.recording, read=files), {})


def _checked(words: list[str], given: AcpSettings) -> Mapping[str, str]:
    """The variables, by the rules of programs of MCP servers: a secret is named, never written down."""
    entry = {"command": words[0], "args": words[1:], "env": given.env}
    read = mcp_settings.read(json.dumps({"program": entry}))
    if read.faults:
        fault = read.faults[0]
        raise AcpError(f"{fault.path.removeprefix('program.')}: {fault.message}")
    return read.servers[0].env


def policy_of(program: Program, base: SandboxPolicy, tier: Tier) -> SandboxPolicy:
    """What the program is held by: the agent's own policy, with what the operator granted it besides.

    Raises:
        PolicyError: a port or a path cannot be.
    """
    given = program.settings
    own = (OWN_PROCESS,) * (tier is not Tier.FULL) + (str(DELEGATE_SERVER),) * bool(program.hands_to)
    network = max(Network(given.network), base.network, key=list(Network).index)
    ports = tuple(given.ports) if given.network == "ports" else base.ports
    return replace(
        base,
        network=network,
        ports=ports,
        read_only=(*base.read_only, *given.read, *own),
        address_bytes=max(base.address_bytes, ADDRESS_BYTES),
    )


def launch_of(program: Program, root: Path, policy: SandboxPolicy, environ: Mapping[str, str]) -> Launch:
    """How the program is started; blocking.

    Raises:
        AcpError: it is not there, or a variable is not set.
    """
    path = _found(program, environ)
    try:
        given = mcp_settings.expanded(program.variables, environ)
    except mcp_settings.MissingVariableError as error:
        raise AcpError(f"{program.name} was not started: {error}") from None
    env = child_environment(root, policy, None, environ) | given
    env["PATH"] = os.pathsep.join([env["PATH"], str(path.parent)])
    return Launch(str(path), (str(path), *program.words[1:]), env, umask=0o022)


def _found(program: Program, environ: Mapping[str, str]) -> Path:
    name = program.words[0]
    if name in PYTHON_PROGRAMS:
        return BASE_PYTHON
    found = shutil.which(str(Path(name).expanduser()), path=environ.get("PATH", os.defpath))
    if found is None:
        how = f"install it: {program.install}" if program.install else "install it, or write its whole path"
        raise AcpError(f"there is no program '{name}' on PATH; {how}")
    return Path(found).absolute()


def own_files(path: Path) -> tuple[str, ...]:
    """The program's own files: itself, and all packages that were installed beside it; blocking."""
    real = path.resolve()
    packages = [str(place) for place in real.parents if place.name == "node_modules"]
    return tuple(dict.fromkeys((str(path), str(real), *packages[-1:])))
