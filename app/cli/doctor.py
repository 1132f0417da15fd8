"""`pilothouse doctor`: what works on this machine and in this terminal, and why not where it does not."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import select
import shutil
import sqlite3
import subprocess
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from app.cli.options import Answer, run_answer, workspace_of
from app.cockpit import keymap
from app.commands.command_runner import FAULT_LOG
from app.commands.registry import all_commands, broken_plugins
from app.commands.settings import Settings, untrusted_line
from app.commands.watchdog import LOOP_LOG, read_held
from engine import __version__
from engine.agent.actions.snapshots import SnapshotRule
from engine.agent.branches import SNAPSHOTS_DIRECTORY
from engine.api.closed_workspace import recorded
from engine.core.journal import JournalError, JournalMissing
from engine.core.store.port import DATA_DIRECTORY
from engine.core.store.verify import verify
from engine.core.text import clean_line
from engine.memory.embedder_choice import MINILM, EmbedderChoice
from engine.memory.embedding import INSTALL, EmbedderError
from engine.models.choice import ModelChoice
from engine.models.completion import ask
from engine.models.errors import ModelError
from engine.sandbox.file_search import shared_files
from engine.sandbox.files import SANDBOX_DIRECTORY, SandboxFiles
from engine.sandbox.paths import PathError
from engine.sandbox.policy import SandboxPolicy
from engine.sandbox.snapshots.entry import SnapshotError, StoreStatus
from engine.sandbox.snapshots.store import store_status
from engine.sandbox.tier import PROMISES, SandboxReport, best_jail, layers

GLYPHS = "●▶▷✓✗»‖★◆▓░…─日"
"""Characters that panes are drawn with, and one that is two cells wide."""


def terminal_report() -> dict[str, dict[str, Any]]:
    """The terminal, its characters, clipboard and keys, as `pilothouse doctor` tells them."""
    term, size = os.environ.get("TERM", ""), shutil.get_terminal_size()
    here = sys.stdin.isatty() and sys.stdout.isatty()
    usable = here and term not in ("", "dumb")
    reason = "" if here else "standard input or output is no terminal"
    if here and not usable:
        reason = f"TERM is '{term}': set it to what your terminal is, such as xterm-256color"
    terminal = {
        "ok": usable,
        "term": term,
        "program": os.environ.get("TERM_PROGRAM", "") or "unknown",
        "colours": "none (NO_COLOR)" if "NO_COLOR" in os.environ else Console().color_system or "none",
        "columns": size.columns,
        "rows": size.lines,
        "tmux": "TMUX" in os.environ,
    }
    setting = _tmux("-sv", "set-clipboard")
    dropped = f"tmux drops what y copies (set-clipboard is {setting}): tmux set -s set-clipboard on"
    copies = setting in ("", "on")
    wrong = _wrong_characters() if usable else ""
    return {
        "terminal": {**terminal, "reason": reason},
        "characters": {"ok": not wrong, "reason": wrong or f"{sys.stdout.encoding}, widths as expected"},
        "clipboard": {"ok": copies, "reason": "OSC 52, where the terminal allows it" if copies else dropped},
        "keys": {"ok": True, "reason": "; ".join(_taken_keys()) or "none is known to be taken"},
    }


def _wrong_characters() -> str:
    """Which characters are not as wide as panes take them to be; the terminal is asked."""
    if (encoding := sys.stdout.encoding.lower().replace("-", "")) != "utf8":
        return f"{encoding} cannot show them: set LANG to a UTF-8 one such as C.UTF-8"
    widths = _measured(GLYPHS)
    wrong = [f"{glyph} takes {cells}" for glyph, cells in widths.items() if cells != cell_len(glyph)]
    return f"{', '.join(wrong)} cells: set ambiguous characters to narrow" if wrong else ""


def _measured(glyphs: str) -> dict[str, int]:
    """How many cells the terminal gives each character; nothing where it does not answer."""
    widths: dict[str, int] = {}
    with suppress(OSError, termios.error):
        file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        before = termios.tcgetattr(file)
        try:
            tty.setcbreak(file)
            for glyph in glyphs:
                os.write(file, f"\r{glyph}\x1b[6n".encode())
                answer = b""
                # Half a second for an answer; what comes without an end is none.
                while len(answer) < 64 and answer[-1:] != b"R" and select.select([file], [], [], 0.5)[0]:
                    answer += os.read(file, 32) or b"R"
                match = re.search(rb"\x1b\[\d+;(\d+)R", answer)
                if match is None:
                    break
                widths[glyph] = int(match[1]) - 1
            os.write(file, b"\r\x1b[K")
        finally:
            termios.tcsetattr(file, termios.TCSAFLUSH, before)
            os.close(file)
    return widths


def _tmux(*words: str) -> str:
    """What tmux answers; empty where it does not."""
    if "TMUX" not in os.environ:
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.check_output(["tmux", "show-options", *words], text=True, timeout=2).strip()
    return ""


def _taken_keys() -> Iterator[str]:
    """Keys of the cockpit that the surroundings keep for themselves, with what to do."""
    for name in ("prefix", "prefix2"):
        if (key := _tmux("-gv", name).lower().replace("c-", "ctrl+")) not in ("", "none"):
            yield f"{key} is tmux's (twice sends it)"
    if "STY" in os.environ:
        yield "ctrl+a is screen's (ctrl+a a sends it)"
    if os.environ.get("TERM_PROGRAM") == "vscode":
        yield "f1, ctrl+p, ctrl+q may be the editor's (? shows all keys, : is the command bar, :quit leaves)"
    elif "VTE_VERSION" in os.environ:
        yield "f1 and f10 may be the window's (turn its menu keys off; : help also opens help)"
    with suppress(termios.error, OSError):
        if sys.stdin.isatty() and termios.tcgetattr(0)[0] & termios.IXON:
            yield "ctrl+s and ctrl+q are flow control's in the shell (the cockpit turns it off)"


LEFT_OUT_SHOWN, LEFT_OUT_CELLS = 5, 120
"""How many things a snapshot cannot bring back are named, and how long each is at most."""


async def check_installation(workspace: Path, *, ask_model: bool = False) -> Answer:
    """Look at everything; exit code 0 when nothing that is needed is broken, 1 otherwise.

    Args:
        workspace: whose settings, sandbox and journal are looked at.
        ask_model: whether the model is asked for one word.
    """
    settings = Settings.load(workspace)
    left_out = untrusted_line(settings.trust)
    problems = [*settings.problems, *keymap.checked(settings.keys)[1]]
    report = await asyncio.to_thread(_report, settings.engine_config().policy)
    answer: dict[str, Any] = {
        "version": __version__,
        "python": sys.version.split()[0],
        "sandbox": _sandbox(report),
        "workspace": await _asked(_workspace, workspace),
        "root": await _asked(_root, workspace / SANDBOX_DIRECTORY),
        "settings": {"ok": not problems, "reason": "; ".join(problems)},
        "trust": {"ok": not left_out, "reason": left_out or "all that is in the folder is yours or trusted"},
        **terminal_report(),
        "logs": await _asked(_logs, workspace),
        "sqlite": _sqlite(),
        "model": await _model(settings.model, ask_it=ask_model),
        "memory": await _memory(settings.embedder, ask_it=ask_model),
        "snapshots": await _asked(_snapshots, workspace, settings.snapshots),
        "journal": await _journal(workspace),
        "loop": await _asked(_loop, workspace),
        "plugins": await asyncio.to_thread(_plugins),
    }
    good = all(answer[name]["ok"] for name in ("workspace", "journal", "model"))
    return (0 if good else 1), answer, _text(answer, report)


async def _asked(look: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """What a look at files says; a file that may not be read is named."""
    try:
        return await asyncio.to_thread(look, *args)
    except PermissionError as error:
        return {"ok": False, "reason": f"{error.filename} cannot be used ({error.strerror})"}


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


def _workspace(workspace: Path) -> dict[str, Any]:
    """The directory, and whether an engine can write there."""
    place = next(
        place for place in (workspace / DATA_DIRECTORY, workspace, *workspace.parents) if place.exists()
    )
    facts = {"place": str(workspace)}
    if not place.is_dir():
        return {"ok": False, **facts, "reason": f"{place} is no directory: choose another with --workspace"}
    if not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        return {"ok": False, **facts, "reason": f"{place} cannot be written: check who may write there"}
    new = "" if workspace.exists() else "it is not there yet: what acts first makes it"
    return {"ok": True, **facts, "reason": new}


def _root(root: Path) -> dict[str, Any]:
    """The sandbox root, and what in it a program could change outside."""
    if not root.exists() and not root.is_symlink():
        return {"ok": True, "reason": "no sandbox here yet"}
    try:
        with closing(SandboxFiles(root)) as files:
            shared = shared_files(files)
    except PathError as error:
        return {"ok": False, "reason": error.message}
    if not shared.count:
        return {"ok": True, "reason": "" if shared.whole else "too large to be looked at as a whole"}
    examples = ", ".join(shared.examples) + (" …" if shared.count > len(shared.examples) else "")
    reason = (
        f"{shared.count} of its files have several names (hard links); where one lies outside of it, a "
        f"program that writes them changes them there: {examples}. Copy them to new files if they are not "
        "meant to be shared"
    )
    return {"ok": False, "reason": reason}


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
    facts = {"ok": True, "thinker": "claude", "model": choice.name, "endpoint": choice.endpoint.host}
    facts["repairs"] = choice.repairs
    unknown = "" if known.known else "no table describes this model, so its price is unknown"
    if not ask_it:
        return {**facts, "reason": unknown or "not asked; --model asks it for one word"}
    client = choice.client()
    try:
        answer = await ask(client, choice.name, "", "Answer with the word: ready", max_tokens=16)
    except ModelError as error:
        if error.answer is None:
            return {**facts, "ok": False, "reason": error.message}
        answer = error.answer  # it reached its limit, but it answered
    finally:
        await client.close()
    took = f"answered in {answer.latency_ms} ms with {answer.usage.total_tokens} tokens"
    return {**facts, "reason": "; ".join(part for part in (took, unknown) if part)}


async def _memory(choice: EmbedderChoice | None, *, ask_it: bool) -> dict[str, Any]:
    """Who embeds memories; an endpoint is asked only where that is said."""
    if choice is None:
        missing = EmbedderChoice(MINILM).missing
        first = f"{INSTALL}, then " if missing else ""
        reason = f"words alone find memories; by what they mean: {first}pilothouse memory embedder minilm"
        return {"ok": True, "embedder": "none", "reason": reason}
    facts = {"ok": not choice.missing, "embedder": str(choice), "reason": choice.missing}
    if choice.missing or not (ask_it or choice.name == MINILM):
        return facts if choice.missing else {**facts, "reason": "not asked; --model asks it for a vector"}
    embedder = choice.open()
    try:
        ((*numbers,),) = await embedder.embed(["ready"], "query")
    except EmbedderError as error:
        return {**facts, "ok": False, "reason": str(error)}
    finally:
        await embedder.close()
    return {**facts, "reason": f"answers vectors of {len(numbers)} numbers"}


def _snapshots(workspace: Path, rule: SnapshotRule) -> dict[str, Any]:
    place = workspace / DATA_DIRECTORY / SNAPSHOTS_DIRECTORY
    try:
        status = store_status(place)
    except SnapshotError as error:
        return {"ok": False, "rule": rule.value, "place": str(place), "reason": str(error)}
    facts = {"rule": rule.value, "kept": status.kept, "bytes": status.bytes, "place": str(place)}
    return {"ok": True, **facts, "reason": _left_out(status)}


def _left_out(status: StoreStatus) -> str:
    """What the newest snapshot cannot bring back, in a line."""
    if status.newest is None:
        return "none yet"
    skipped = status.newest.skipped
    named = [
        clean_line(f"{skip.path}: {skip.why}", limit=LEFT_OUT_CELLS) for skip in skipped[:LEFT_OUT_SHOWN]
    ]
    more = len(skipped) + status.newest.skipped_more - len(named)
    return f"the newest leaves out {'; '.join(named)}{f'; {more} more' if more else ''}" if named else ""


async def _journal(workspace: Path) -> dict[str, Any]:
    try:
        async with recorded(workspace) as store:
            check = await verify(store)
    except JournalMissing:
        return {"ok": True, "reason": "no journal here yet"}
    except (JournalError, PermissionError) as error:
        return {"ok": False, "reason": str(error)}
    reason = "" if check.ok else f"{check.first_bad}: {check.reason}"
    return {"ok": check.ok, "events": check.events, "head": check.head, "reason": reason}


def _loop(workspace: Path) -> dict[str, Any]:
    """What has held the event loop of the workspace's programs for more than a tenth of a second."""
    held = read_held(workspace)
    if not held:
        return {"ok": True, "held": 0, "reason": "nothing has held it"}
    longest, newest = max(held, key=lambda entry: entry.seconds), held[-1]
    words = f"longest {clean_line(longest.at, limit=30)}: {longest.words}"
    if newest is not longest:
        words += f"; last {clean_line(newest.at, limit=30)}: {newest.words}"
    return {"ok": True, "held": len(held), "reason": words}


def _logs(workspace: Path) -> dict[str, Any]:
    """Where logs are; the newest faults are named by the ids that were said on the screen."""
    place = workspace / DATA_DIRECTORY
    facts = {"ok": True, "place": str(place), "files": f"{FAULT_LOG} {LOOP_LOG}"}
    try:
        text = (place / FAULT_LOG).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {**facts, "reason": "no fault was logged"}
    idents = [line.removeprefix("--- ") for line in text.splitlines() if line.startswith("--- e")]
    return {**facts, "reason": f"newest faults: {', '.join(map(clean_line, idents[-3:]))}"}


def _plugins() -> dict[str, Any]:
    """The commands that plug-ins add, and which of them cannot be used."""
    names = [command.name for command in all_commands() if command.group == "Plugins"]
    broken = [f"{plugin.name} ({plugin.source}): {plugin.wrong}" for plugin in broken_plugins()]
    facts = {"verbs": ", ".join(names)} if names else {}
    return {"ok": not broken, **facts, "reason": "; ".join(broken) or ("" if names else "none are installed")}


def _text(answer: dict[str, Any], report: SandboxReport) -> str:
    lines = [f"pilothouse {answer['version']} on Python {answer['python']}", f"sandbox    {report.summary}"]
    lines.append(report.text())
    for name, part in answer.items():
        if name in ("version", "python", "sandbox"):
            continue
        facts = ", ".join(f"{key} {value}" for key, value in part.items() if key not in ("ok", "reason"))
        words = " — ".join(filter(None, (facts, part["reason"]))) or "nothing is wrong"
        lines.append(f"{'✓' if part['ok'] else '✗'} {name:<10} {words}")
    return "\n".join(lines)


# ------------------------------------------------------------------ the subcommand


def run(options: argparse.Namespace) -> int:
    """Look at this machine and workspace."""
    return run_answer(options, check_installation(workspace_of(options), ask_model=options.model))
