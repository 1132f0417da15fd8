"""Which parts of the machine a jailed program may read, besides the sandbox root.

The system's programs and libraries, the interpreter, a picked list of settings and devices: everything
that ordinary tools need and nothing that holds a secret. Source: sandbox spec §2.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from urllib.parse import urlsplit

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt/homebrew")
"""Directories with programs; read and execute. Where one is a link, so it is in a mount namespace."""

SETTINGS = tuple(
    f"/etc/{name}"
    for name in [
        "alternatives",
        "bash.bashrc",
        "ca-certificates",
        "ca-certificates.conf",
        "crypto-policies",
        "debian_version",
        "environment",
        "gai.conf",
        "gitattributes",
        "gitconfig",
        "group",
        "host.conf",
        "hostname",
        "hosts",
        "inputrc",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "locale.alias",
        "locale.conf",
        "localtime",
        "lsb-release",
        "magic",
        "magic.mime",
        "mime.types",
        "networks",
        "nsswitch.conf",
        "os-release",
        "passwd",
        "pki/ca-trust/extracted",
        "pki/tls/certs",
        "protocols",
        "python3",
        "resolv.conf",
        "services",
        "shells",
        "ssl/certs",
        "ssl/openssl.cnf",
        "terminfo",
        "timezone",
        "xattr.conf",
    ]
)
"""Settings that programs read; /etc/ssl as a whole is not among them, for private keys lie there."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices that may be read and written."""

FACTS = tuple(
    f"/proc/{name}"
    for name in [
        "cpuinfo",
        "filesystems",
        "loadavg",
        "meminfo",
        "stat",
        "uptime",
        "version",
        "sys/fs/file-max",
        "sys/fs/pipe-max-size",
        "sys/kernel/cap_last_cap",
        "sys/kernel/ngroups_max",
        "sys/kernel/osrelease",
        "sys/kernel/ostype",
        "sys/kernel/pid_max",
        "sys/kernel/random/uuid",
        "sys/vm/max_map_count",
        "sys/vm/overcommit_memory",
    ]
)
"""Files of /proc that say something of the machine and nothing of its processes."""

_PATH_SETTING = re.compile(
    r"PIP_(FIND_LINKS|CERT|INDEX_URL|EXTRA_INDEX_URL)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE"
)
_URL_SETTING = re.compile(r"PIP_(EXTRA_)?INDEX_URL|(HTTPS?|ALL)_PROXY|(https?|all)_proxy")
_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@cache
def interpreter() -> tuple[str, ...]:
    """The directories of the Python that venvs are made with, as small as they can be."""
    prefixes = {os.path.realpath(prefix) for prefix in (sys.base_prefix, sys.base_exec_prefix)}
    return tuple(
        sorted(path for path in prefixes if path != "/" and not f"{path}/".startswith(("/usr/", "/bin/")))
    )


def settings_paths(env: Mapping[str, str]) -> tuple[str, ...]:
    """Local files and directories that the operator's package index settings name: certificates, wheels."""
    found = []
    for name, value in env.items():
        if _PATH_SETTING.fullmatch(name):
            for word in value.split():
                path = word.removeprefix("file://")
                if path.startswith("/") and ".." not in path.split("/") and path.strip("/"):
                    found.append(_whole_index(path) if "INDEX_URL" in name else path)
    return tuple(dict.fromkeys(found))


def _whole_index(path: str) -> str:
    """A local index's directory: the files that its `simple` pages name lie beside them."""
    above, _, last = path.rstrip("/").rpartition("/")
    return above if last == "simple" and above.count("/") > 1 else path


def settings_ports(env: Mapping[str, str]) -> tuple[int, ...]:
    """TCP ports of the package index and proxy that the operator has set, which a grant of network means."""
    found = []
    for name, value in env.items():
        if _URL_SETTING.fullmatch(name):
            for word in value.split():
                try:
                    parts = urlsplit(word)
                    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
                except ValueError:
                    continue  # pip will say what is wrong with it
                if port:
                    found.append(port)
    return tuple(dict.fromkeys(found))
