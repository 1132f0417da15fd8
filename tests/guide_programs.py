"""Runs the guide's programs for Python as they stand, in a process of their own with a scripted model."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from app import guide
from tests.messages_server import Reply, object_call, serving
from tests.messages_server.server import Seen
from tests.patience import PATIENCE_S

PROGRAM = """
import ast, asyncio, inspect, json, sys
names = {}
async def run(program):
    made = eval(compile(program, "guide", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(made):
        await made
for program in json.load(sys.stdin):
    asyncio.run(run(program))
print(names["answer"])
"""
SKILL = """---
name: release-notes
description: Writes release notes of the commits since the last tag. Use when a release is made.
---
# Release notes

Write what changes for the user, one line a change.
"""
SCORES = {"problem": 22, "solution": 18, "business_case": 20, "people": 12}
PILLARS = {name: {"score": score, "evidence": ["told"]} for name, score in SCORES.items()}
PYRAMID = {
    "situation": "Pilots are hired every month.",
    "complication": "Four of ten leave within a year.",
    "question": "How do they stay?",
    "answer": "Pair each new pilot with an old one.",
    "reasons": [
        {"text": "Those who were paired stayed.", "support": "assumption"},
        {"text": "It costs an hour a week.", "support": "assumption"},
    ],
}
SECTIONS = "\n\n".join(f"## {name.title()}\n{PYRAMID[name]}" for name in list(PYRAMID)[:4])


def answer(seen: Seen) -> Reply:
    """What the built-in agents are answered by a model."""
    system = json.dumps(seen.body["system"])
    if "You are Larry" in system:
        told = json.dumps(seen.body["messages"])
        slots = {
            "what": "Four of ten pilots leave",
            "who": "Pilots of one line",
            "success": "Under 10 % a year",
        }
        for slot, text in slots.items():
            if text not in told:
                return object_call("update_clarity", slot=slot, text=text, score=0.8)
        return object_call("return_result", output="It is clear.")
    if "You are Minto" in system:
        return object_call("return_result", output=SECTIONS, data=PYRAMID)
    if "You are Synthesizer" in system:
        return object_call("return_result", output="[minto-pyramid] says pair, [pws-validation] says pivot.")
    return object_call("return_result", output="PIVOT", data={"pillars": PILLARS})


def ran(cwd: Path, python: Path) -> str:
    """What the programs of the guide print, one after the other in one process with a loop for each."""
    (cwd / "skills" / "release-notes").mkdir(parents=True)
    (cwd / "skills" / "release-notes" / "SKILL.md").write_text(SKILL)
    programs = re.findall(r"^```py\n(.*?)^```", guide.page("python"), re.MULTILINE | re.DOTALL)
    assert len(programs) == 3
    with serving(answer) as url:
        done = subprocess.run(
            [str(python), "-c", PROGRAM],
            input=json.dumps(programs),
            cwd=cwd,
            env={**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-test"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def check_said(said: str) -> None:
    """What the programs of the guide have to print."""
    assert re.search(r"Agent created at: .*/agents/release-notes\nFiles generated: \['agent.yaml'", said)
    assert "'total': 72.0} achieved" in said
    assert "[minto-pyramid] says pair, [pws-validation] says pivot.\n" in said
    assert said.endswith("PIVOT\n")
