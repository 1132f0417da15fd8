"""`pilothouse do`: one line, as typed in the command bar; in the engine that runs here, or alone."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from app.cli.beside import answer_in_engine, refused_beside
from app.cli.options import Answer, accepted_tier, flag, imported, run_answer, workspace_of
from app.gateways.engine_client import EngineClient


def run(options: argparse.Namespace) -> int:
    """Carry the line out."""
    beside, alone = partial(_beside, options), partial(_alone, options)
    return run_answer(options, answer_in_engine(workspace_of(options), beside, alone))


async def _beside(options: argparse.Namespace, client: EngineClient) -> Answer:
    for name, option in (("accept_tier", "--accept-tier"), ("network", "--network"), ("trust", "--trust")):
        if getattr(options, name, None):
            return refused_beside(client, option)
    line = " ".join(options.line)
    asked = {"agent": options.agent, "dry": options.dry_run, "cwd": str(Path.cwd())}
    given = await client.ask_once("line", line=line, **asked)
    return given["code"], given["answer"], given["text"]


async def _alone(options: argparse.Namespace) -> Answer:
    # Late: beside a running engine none of these is needed.
    if not (options.dry_run or options.trust or accepted_tier(options)):
        ask = imported("app.commands.statuses").answer_of_closed
        answer: Answer | None = await ask(workspace_of(options), " ".join(options.line), options.agent)
        if answer is not None:
            return answer
    served = partial(imported("app.gateways.socket_server").served, kind="do")
    done: Answer = await imported("app.commands.command_runner").run_command(
        workspace_of(options),
        " ".join(options.line),
        agent=options.agent,
        accept=accepted_tier(options),
        dry=options.dry_run,
        quiet=flag(options, "quiet"),
        trust=options.trust,
        serving=served,
    )
    return done
