"""`pilothouse doctor`: what works on this machine, and why not where it does not."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

from app.settings import Settings
from engine import __version__
from engine.actions import SnapshotRule
from engine.domain.ports import Ports
from engine.domain.text import clean_line
from engine.engine import SANDBOX_DIRECTORY, SNAPSHOTS_DIRECTORY
from engine.journal.errors import JournalError, JournalMissing
from engine.journal.store import DATA_DIRECTORY, JournalStore
from engine.journal.verify import verify
from engine.models import ModelError, ask
from engine.models.choice import ModelChoice
from engine.sandbox import PathError, SandboxFiles, SandboxPolicy, SandboxReport, best_jail, layers
from engine.sandbox.shared import shared_files
from engine.sandbox.tier import PROMISES
from engine.snapshots import SnapshotError, Standing, standing

Answer = tuple[int, dict[str, Any], str]
LEFT_OUT_SHOWN, LEFT_OUT_CELLS = 5, 120
"""How many things a snapshot cannot bring back are named, and how long each is at most."""


async def examine(workspace: Path, *, ask_model: bool = False) -> Answer:
    """Look at everything; exit code 0 when nothing that is needed is broken, 1 otherwise.

    Args:
        workspace: whose settings, sandbox and journal are looked at.
        ask_model: whether the model is asked for one word.
    """
    settings = Settings.load(workspace)
    report = await asyncio.to_thread(_report, settings.engine_config().policy)
    answer = {
        "version": __version__,
        "python": sys.version.split()[0],
        "sandbox": _sandbox(report),
        "root": await asyncio.to_thread(_root, workspace / SANDBOX_DIRECTORY),
        "settings": {"ok": not settings.problems, "reason": "; ".join(settings.problems)},
        "terminal": _terminal(),
        "sqlite": _sqlite(),
        "model": await _model(settings.model, ask_it=ask_model),
        "snapshots": await asyncio.to_thread(_snapshots, workspace, settings.snapshots),
        "journal": await _journal(workspace),
        "plugins": await asyncio.to_thread(_plugins),
    }
    journal = answer["journal"]
    model = answer["model"]
    good = bool(isinstance(journal, dict) and journal["ok"] and isinstance(model, dict) and model["ok"])
    return (0 if good else 1), answer, _text(answer, report)


def _report(policy: SandboxPolicy) -> SandboxReport:
    return SandboxReport(policy, best_jail(policy), layers())


def _sandbox(report: SandboxReport) -> dict[str, Any]:
    return {
        "tier": report.tier.value,
        "promise": PROMISES[report.tier],
        "refusal": report.refusal,
        "gets_through": list(report.gets_through),
        "layers": {
            layer.name: {"ok": layer.ok, "reason": layer.reason, **({"fix": layer.fix} if layer.fix else {})}
            for layer in report.layers
        },
        "policy": report.policy.explain(),
    }


def _root(root: Path) -> dict[str, Any]:
    """The sandbox root, and what in it a program could change outside."""
    if not root.exists() and not root.is_symlink():
        return {"ok": True, "reason": "no sandbox here yet"}
    try:
        files = SandboxFiles(root)
    except PathError as error:
        return {"ok": False, "reason": error.message}
    try:
        found = shared_files(files)
    finally:
        files.close()
    if not found.count:
        return {"ok": True, "reason": "" if found.whole else "too large to be looked at as a whole"}
    examples = ", ".join(found.examples) + (" …" if found.count > len(found.examples) else "")
    reason = (
        f"{found.count} of its files have a name outside of it too, and a program that writes them changes "
        f"them there: {examples}. Copy them to new files if they are not meant to be shared"
    )
    return {"ok": False, "reason": reason}


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


async def _model(choice: ModelChoice | None, *, ask_it: bool) -> dict[str, Any]:
    if choice is None:
        reason = "no key and no endpoint; agents plan by the plan library. A model thinks once you set "
        return {
            "ok": not ask_it,
            "thinker": "procedural",
            "reason": f"{reason}ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a server of your own",
        }
    known = choice.client().capabilities(choice.name)
    found = {"ok": True, "thinker": "claude", "model": choice.name, "endpoint": choice.endpoint.host}
    found["repairs"] = choice.repairs
    unknown = "" if known.known else "no table describes this model, so its price is unknown"
    if not ask_it:
        return {**found, "reason": unknown or "not asked; --model asks it for one word"}
    client = choice.client()
    try:
        answer = await ask(client, choice.name, "", "Answer with the word: ready", max_tokens=16)
    except ModelError as error:
        if error.answer is None:
            return {**found, "ok": False, "reason": error.message}
        answer = error.answer  # it reached its limit, but it answered
    finally:
        await client.close()
    took = f"answered in {answer.latency_ms} ms with {answer.usage.total_tokens} tokens"
    return {**found, "reason": "; ".join(part for part in (took, unknown) if part)}


def _snapshots(workspace: Path, rule: SnapshotRule) -> dict[str, Any]:
    place = workspace / DATA_DIRECTORY / SNAPSHOTS_DIRECTORY
    try:
        found = standing(place)
    except SnapshotError as error:
        return {"ok": False, "rule": rule.value, "place": str(place), "reason": str(error)}
    return {
        "ok": True,
        "rule": rule.value,
        "kept": found.kept,
        "bytes": found.bytes,
        "place": str(place),
        "reason": _left_out(found),
    }


def _left_out(found: Standing) -> str:
    """What the newest snapshot cannot bring back, in a line."""
    if found.newest is None:
        return "none yet"
    skipped = found.newest.skipped
    named = [
        clean_line(f"{skip.path}: {skip.why}", limit=LEFT_OUT_CELLS) for skip in skipped[:LEFT_OUT_SHOWN]
    ]
    more = len(skipped) + found.newest.skipped_more - len(named)
    return f"the newest leaves out {'; '.join(named)}{f'; {more} more' if more else ''}" if named else ""


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


def _plugins() -> dict[str, Any]:
    """The verbs that plugins add, and which of them cannot be used."""
    from app.grammar import all_verbs, broken_plugins

    names = [verb.name for verb in all_verbs() if verb.group == "Plugins"]
    broken = [f"{one.name} ({one.source}): {one.wrong}" for one in broken_plugins()]
    facts = {"verbs": ", ".join(names)} if names else {}
    return {"ok": not broken, **facts, "reason": "; ".join(broken) or ("" if names else "none are installed")}


def _text(answer: dict[str, Any], report: SandboxReport) -> str:
    lines = [f"pilothouse {answer['version']} on Python {answer['python']}", f"sandbox   {report.summary}"]
    lines.append(report.text())
    for name in ("root", "settings", "terminal", "sqlite", "model", "snapshots", "journal", "plugins"):
        part = answer[name]
        facts = ", ".join(f"{key} {value}" for key, value in part.items() if key not in ("ok", "reason"))
        said = " — ".join(text for text in (facts, part["reason"]) if text) or "nothing is wrong"
        lines.append(f"{'✓' if part['ok'] else '✗'} {name:<9} {said}")
    return "\n".join(lines)
