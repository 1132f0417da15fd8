"""The environment of commands, built from nothing.

No secret of the cockpit reaches a child: names are allow-listed, and index or proxy addresses that carry
credentials are left out. Source: sandbox spec §3.7, hole 9 of mastermind-and-simple-coder §4.5.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from pathlib import Path

from engine.sandbox.policy import Network, SandboxPolicy
from engine.sandbox.programs import BASE_PYTHON, SYSTEM_PATH

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
    found = _pip_configuration(parent.get("HOME", ""))
    found |= {name: value for name, value in parent.items() if _NETWORK.fullmatch(name)}
    return {name: value for name, value in found.items() if not _CREDENTIALS.search(value)}


def _pip_configuration(home: str) -> dict[str, str]:
    """Settings of the operator's own pip.conf, which the command's HOME would hide from pip."""
    parser = configparser.RawConfigParser()
    paths = [Path(home, ".pip/pip.conf"), Path(home, ".config/pip/pip.conf")] if home else []
    try:
        parser.read(paths, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {}  # pip itself would complain; a command need not fail for it
    found: dict[str, str] = {}
    for section in ("global", "install"):
        for key, name in _PIP_KEYS.items():
            if value := parser.get(section, key, fallback=""):
                found[name] = " ".join(value.split())
    return found
