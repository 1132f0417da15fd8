"""`pilothouse doctor`: what works on this machine, and why not where it does not."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

from engine import __version__
from engine.domain.ports import Ports
from engine.journal.errors import JournalError, JournalMissing
from engine.journal.store import JournalStore
from engine.journal.verify import verify
from engine.sandbox import SandboxPolicy, gets_through, layers
from engine.sandbox.paths import KernelOpener, best_opener
from engine.sandbox.tier import PROMISES, JailRefusal, best_jail, best_tier

Answer = tuple[int, dict[str, Any], str]


async def examine(workspace: Path) -> Answer:
    """Look at everything; exit code 0 when nothing that is needed is broken, 1 otherwise."""
    answer = {
        "version": __version__,
        "python": sys.version.split()[0],
        "sandbox": await asyncio.to_thread(_sandbox),
        "terminal": _terminal(),
        "sqlite": _sqlite(),
        "model": _model(),
        "journal": await _journal(workspace),
    }
    journal = answer["journal"]
    good = bool(isinstance(journal, dict) and journal["ok"])
    return (0 if good else 1), answer, _text(answer)


def _sandbox() -> dict[str, Any]:
    directory = os.open(os.curdir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        beneath = isinstance(best_opener(directory), KernelOpener)
    finally:
        os.close(directory)
    found, policy = layers(), SandboxPolicy()
    tier, jail = best_tier(found), best_jail(policy)
    own = {
        "beneath_root": {
            "ok": True,
            "reason": "openat2" if beneath else "no openat2; a walk without links does the same, slower",
        },
        "environment": {"ok": True, "reason": "built from an allow-list"},
        "process_tree": {"ok": sys.platform == "linux", "reason": "a supervisor ends whole trees"},
    }
    tried = {
        layer.name: {"ok": layer.ok, "reason": layer.reason, **({"fix": layer.fix} if layer.fix else {})}
        for layer in found.reports
    }
    return {
        "tier": tier.value,
        "promise": PROMISES[tier],
        "refusal": jail.message if isinstance(jail, JailRefusal) else "",
        "gets_through": list(gets_through(tier, found)),
        "layers": {**own, **tried},
        "policy": policy.explain(),
    }


def _terminal() -> dict[str, Any]:
    size = shutil.get_terminal_size()
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    term = os.environ.get("TERM", "")
    depth = "truecolor" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256 or fewer colours"
    reason = "" if interactive else "standard input or output is no terminal"
    if interactive and term in ("", "dumb"):
        interactive, reason = False, f"TERM is '{term}'"
    return {
        "ok": interactive,
        "reason": reason,
        "term": term,
        "colours": "none (NO_COLOR)" if "NO_COLOR" in os.environ else depth,
        "columns": size.columns,
        "rows": size.lines,
        "tmux": "TMUX" in os.environ,
    }


def _sqlite() -> dict[str, Any]:
    fixed = sqlite3.sqlite_version_info >= (3, 51, 3)
    reason = (
        "" if fixed else "has the WAL-reset fault; Pilothouse writes with one connection, which avoids it"
    )
    return {"ok": True, "version": sqlite3.sqlite_version, "reason": reason}


def _model() -> dict[str, Any]:
    key = bool(os.environ.get("ANTHROPIC_API_KEY"))
    endpoint = bool(os.environ.get("ANTHROPIC_BASE_URL"))
    found = [name for name, there in (("a key", key), ("an endpoint of your own", endpoint)) if there]
    what = f"{' and '.join(found)} found; " if found else "no key and no endpoint; "
    return {"ok": True, "thinker": "procedural", "reason": f"{what}agents plan by the plan library"}


async def _journal(workspace: Path) -> dict[str, Any]:
    try:
        store = await JournalStore.open(workspace, clock=Ports().clock, read_only=True)
    except JournalMissing:
        return {"ok": True, "reason": "no journal here yet"}
    except JournalError as error:
        return {"ok": False, "reason": str(error)}
    try:
        found = await verify(store)
    finally:
        await store.close()
    reason = "" if found.ok else f"{found.first_bad}: {found.reason}"
    return {"ok": found.ok, "events": found.events, "head": found.head, "reason": reason}


def _text(answer: dict[str, Any]) -> str:
    lines = [f"pilothouse {answer['version']} on Python {answer['python']}"]
    sandbox = answer["sandbox"]
    lines.append(f"sandbox   {sandbox['tier']}: {sandbox['promise']}")
    for name, layer in sandbox["layers"].items():
        lines.append(f"  {'✓' if layer['ok'] else '✗'} {name:<14} {layer['reason']}")
        if "fix" in layer:
            lines.append(f"    {'':<14} fix: {layer['fix']}")
    lines += [f"  ! gets through   {what}" for what in sandbox["gets_through"]]
    lines += [f"  ✗ {sandbox['refusal']}"] if sandbox["refusal"] else []
    lines += ["  policy of an agent, unless you change it", *(f"    {line}" for line in sandbox["policy"])]
    for name in ("terminal", "sqlite", "model", "journal"):
        part = answer[name]
        facts = ", ".join(f"{key} {value}" for key, value in part.items() if key not in ("ok", "reason"))
        why = f" — {part['reason']}" if part["reason"] else ""
        lines.append(f"{'✓' if part['ok'] else '✗'} {name:<9} {facts}{why}")
    return "\n".join(lines)
