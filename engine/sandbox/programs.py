"""Which file a program's name stands for.

Names are looked up on a fixed system path before any directory that an agent can write to; only python,
pip and the console scripts of a validated virtual environment come from that environment.

The environment of commands, built from nothing.

No secret of the cockpit reaches a child: names are allow-listed, and index or proxy addresses that carry
credentials are left out.
"""

from __future__ import annotations

import configparser
import difflib
import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from engine.core.actions import ErrorCode
from engine.sandbox.files import SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.policy import PYTHON_PROGRAMS, VENV_PROGRAMS, Network, SandboxPolicy

SYSTEM_PATH = (
    *("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"),
    "/opt/homebrew/bin",
)
TERMINAL_PROGRAMS = (
    *("emacs", "htop", "less", "man", "more", "nano", "screen", "ssh", "stty", "tmux", "top", "tty"),
    *("vi", "vim", "watch"),
)
"""Programs that are of use on a terminal only."""
_INSTEAD = {
    **dict.fromkeys(
        ("bash", "sh", "zsh"),
        " There is no shell: name the program itself; the operator can take a shell (key t).",
    ),
    "cd": " Use the cd command of simple_coder; a program cannot change the session's directory.",
    "rm": " Use the rm command of simple_coder, which needs the operator's autonomous mode.",
    "sudo": " Nothing here runs as another user.",
}
BASE_PYTHON = Path(os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable))
"""The interpreter beneath whatever virtual environment the cockpit itself runs in."""
_MAX_LINKS = 8


def command_prefix(
    name: str, files: SandboxFiles, policy: SandboxPolicy, venv: str | None
) -> tuple[str, ...]:
    """The executable's absolute path, and arguments that come before the command's own.

    Raises:
        PathError: the name is not on the allow-list (NOT_ALLOWED), is not installed (NOT_FOUND), or the
            active environment is no longer a valid one.
    """
    if name not in policy.programs:
        raise PathError(ErrorCode.NOT_ALLOWED, _not_allowed(name, policy))
    if venv is not None and (name in PYTHON_PROGRAMS or name in VENV_PROGRAMS):
        validate_venv(files, venv)
        if pair := _venv_program(name, files, venv):
            return pair
    if name in ("python", "python3"):
        return (str(BASE_PYTHON),)
    if name in ("pip", "pip3"):
        return (str(BASE_PYTHON), "-m", "pip")
    for directory in SYSTEM_PATH:
        candidate = Path(directory, name)
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return (str(candidate),)
    message = f"{name!r} is not installed on this machine."
    if name in VENV_PROGRAMS:
        message = (
            f"{name!r} is not installed here. Create and activate a venv, then run `pip install {name}`."
        )
    raise PathError(ErrorCode.NOT_FOUND, message)


def _not_allowed(name: str, policy: SandboxPolicy) -> str:
    if "/" in name:
        script = f" For a script: `run python {name}`." if name.endswith(".py") else ""
        return (
            f"{name!r} is a path; `run` takes the name of an allowed program.{script} "
            f"Allowed: {', '.join(sorted(policy.programs))}."
        )
    if name in TERMINAL_PROGRAMS:
        return (
            f"{name!r} needs a terminal, and `run` has none. The operator can take the shell (key t) and use "
            "it there."
        )
    near = difflib.get_close_matches(name, policy.programs, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    hint = _INSTEAD.get(name, hint)
    return f"{name!r} is not an allowed program.{hint} Allowed: {', '.join(sorted(policy.programs))}."


def _venv_program(name: str, files: SandboxFiles, venv: str) -> tuple[str, ...] | None:
    """The environment's own python, or a console script that is a plain executable file there."""
    python = str(files.root / venv / "bin" / "python")
    if name in ("python", "python3"):
        return (python,)
    status = files.entry(f"{venv}/bin/{name}")
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_mode & 0o100:
        return (str(files.root / venv / "bin" / name),)
    return (python, "-m", "pip") if name in ("pip", "pip3") else None


def validate_venv(files: SandboxFiles, venv: str) -> None:
    """Refuse a directory that is not a virtual environment of this machine's Python.

    It needs a pyvenv.cfg whose home holds the interpreter, a real `bin` directory, and a `python` in it
    that is a link to a host interpreter or a copy of the base one.

    Raises:
        PathError: it does not exist (NOT_FOUND) or something is wrong with it (NOT_ALLOWED).
    """
    status = files.entry(venv)
    if status is None:
        raise PathError(
            ErrorCode.NOT_FOUND,
            f"There is no venv {venv!r}. Create it with: create_venv {venv.rsplit('/')[-1]!r}",
        )
    if not stat.S_ISDIR(status.st_mode):
        raise PathError(ErrorCode.WRONG_TYPE, f"{venv!r} is not a directory, so it is no venv.")
    config = files.entry(f"{venv}/pyvenv.cfg")
    if config is None or not stat.S_ISREG(config.st_mode):
        raise _no_venv(venv, "it has no pyvenv.cfg")
    home = _configured_home(files.read(f"{venv}/pyvenv.cfg"))
    binaries = files.entry(f"{venv}/bin")
    if binaries is None or not stat.S_ISDIR(binaries.st_mode):
        raise _no_venv(venv, "its bin is not a directory of its own")
    python = files.entry(f"{venv}/bin/python")
    if python is None:
        raise _no_venv(venv, "it has no bin/python")
    if stat.S_ISLNK(python.st_mode):
        target = _linked_python(files, venv)
        if target is None or (target != BASE_PYTHON and not _is_system_python(target)):
            raise _no_venv(venv, "its bin/python is not a link to this machine's Python")
        if "\0" in home or target.parent != Path(os.path.realpath(home)):
            raise _no_venv(venv, "its pyvenv.cfg names another Python as its home")
    elif not stat.S_ISREG(python.st_mode) or not _is_base_python(files, f"{venv}/bin/python"):
        raise _no_venv(venv, "its bin/python is neither a link to nor a copy of this machine's Python")


def _linked_python(files: SandboxFiles, venv: str) -> Path | None:
    """Where the links that begin at bin/python, each beside the last, lead on the host; None for nowhere."""
    name = "python"
    try:
        with files.directory(f"{venv}/bin") as directory:
            for _ in range(_MAX_LINKS):
                target = os.readlink(name, dir_fd=directory)
                if target.startswith("/"):
                    return Path(os.path.realpath(target))
                name = target
    except OSError:
        pass  # it is no link after all, or somebody swaps it
    return None


def _is_base_python(files: SandboxFiles, path: str) -> bool:
    """Whether a file beneath the root has the base interpreter's bytes; never waits for a pipe put there."""
    size = BASE_PYTHON.stat().st_size
    try:
        return files.read_bytes(path, size) == BASE_PYTHON.read_bytes()
    except PathError:
        return False


def _configured_home(text: str) -> str:
    pairs = (line.partition("=") for line in text.splitlines())
    return next((value.strip() for key, _, value in pairs if key.strip().lower() == "home"), "")


def _is_system_python(path: Path) -> bool:
    directories = {os.path.realpath(directory) for directory in SYSTEM_PATH}
    return path.name.startswith("python") and str(path.parent) in directories


def _no_venv(venv: str, why: str) -> PathError:
    return PathError(
        ErrorCode.NOT_ALLOWED,
        f"{venv!r} is not a valid virtual environment: {why}. Make one with create_venv.",
    )


_PASSED = re.compile(r"LANG|LANGUAGE|LC_[A-Z]+|TZ")
_NETWORK = re.compile(
    r"PIP_(INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|CERT|TRUSTED_HOST|NO_INDEX)"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
)
_CREDENTIALS = re.compile(r"://[^/\s@]*@")
_PIP_KEYS = {
    "index-url": "PIP_INDEX_URL",
    "extra-index-url": "PIP_EXTRA_INDEX_URL",
    "find-links": "PIP_FIND_LINKS",
    "cert": "PIP_CERT",
    "trusted-host": "PIP_TRUSTED_HOST",
}


def child_environment(
    root: Path, policy: SandboxPolicy, venv: str | None, parent: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of a command.

    Args:
        root: the sandbox root; HOME and TMPDIR lie there.
        policy: names these directories, and says whether network settings are passed on.
        venv: active virtual environment relative to the root.
        parent: the cockpit's own environment.
    """
    parent = os.environ if parent is None else parent
    path = [*SYSTEM_PATH, str(BASE_PYTHON.parent)]
    env = {name: value for name, value in parent.items() if _PASSED.fullmatch(name)}
    env.setdefault("LANG", "C.UTF-8")
    env |= {
        "HOME": str(root / policy.home),
        "TMPDIR": str(root / policy.tmp),
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "PYTHONUNBUFFERED": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "npm_config_update_notifier": "false",
    }
    if venv is not None:
        env["VIRTUAL_ENV"] = str(root / venv)
        path.insert(0, str(root / venv / "bin"))
    env["PATH"] = os.pathsep.join(path)
    if policy.network is not Network.OFF:
        env |= _network_settings(parent)
    else:
        # Installers that know it fail at once; npm would try again for more than a minute.
        env |= {"PIP_NO_INDEX": "1", "npm_config_offline": "true"}
    return env


def _network_settings(parent: Mapping[str, str]) -> dict[str, str]:
    """Index and proxy settings of the operator, from pip's configuration and the environment."""
    result = _pip_configuration(parent.get("HOME", ""))
    result |= {name: value for name, value in parent.items() if _NETWORK.fullmatch(name)}
    return {name: value for name, value in result.items() if not _CREDENTIALS.search(value)}


def _pip_configuration(home: str) -> dict[str, str]:
    """Settings of the operator's own pip.conf, which the command's HOME would hide from pip."""
    parser = configparser.RawConfigParser()
    paths = [Path(home, ".pip/pip.conf"), Path(home, ".config/pip/pip.conf")] if home else []
    try:
        parser.read(paths, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {}  # pip itself would complain; a command need not fail for it
    result: dict[str, str] = {}
    for section in ("global", "install"):
        for key, name in _PIP_KEYS.items():
            if value := parser.get(section, key, fallback=""):
                result[name] = " ".join(value.split())
    return result
