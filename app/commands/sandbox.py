"""Commands about the sandbox: its tool, policy and tier, background jobs, and trust in MCP servers."""

from __future__ import annotations

from collections.abc import Iterable

from app.commands.arguments import Rest, Word, lower, only_choice, pairs, split_word
from app.commands.command import (
    Answer,
    CommandHost,
    Context,
    Form,
    GrammarError,
    Group,
    Show,
    Submit,
    Values,
    late,
)
from app.commands.plan import tool_line
from engine.core import commands as cmd
from engine.core.agents import DistrustServer, TrustServer
from engine.core.text import StrictJsonError, clean_line, read_json
from engine.tools.mcp.names import command_of
from engine.tools.mcp.names import split as split_name

command = Group("Sandbox")


def _call(context: Context, values: Values) -> cmd.CallTool:
    name, args, _ = values["call"]
    return cmd.CallTool(agent=context.agent, command=name, args=args)


def _call_server(context: Context, values: Values) -> cmd.CallTool:
    """A tool of an MCP server in one of its spellings, with its arguments as JSON."""
    named, _, text = split_word(values["call"])
    server, tool = split_name(named) or (named, "")
    if any(facts.waits for name, facts in context.servers.items() if name.lower() == server.lower()):
        raise GrammarError(f"{server} waits for your leave to start: mcp_trust {server}")
    try:
        args = read_json(text.strip() or "{}")
    except StrictJsonError as error:
        raise GrammarError(f"the arguments of {named} are no JSON: {error}") from None
    if not isinstance(args, dict):
        raise GrammarError(f'the arguments of {named} are a JSON object, such as {{"text": "hello"}}')
    return cmd.CallTool(agent=context.agent, tool=server, command=command_of(server, tool), args=args)


def _jobs(context: Context) -> list[tuple[str, str]]:
    return [(job.id, job.command) for job in context.state.running_jobs] if context.state else []


def _policy(host: CommandHost, _values: Values) -> Answer:
    report = host.engine.sandbox(host.context.agent)
    answer = {"tier": report.tier.value, "refusal": report.refusal, "policy": report.policy.as_json()}
    return 0, answer, report.text()


def _server(text: str, context: Context) -> str:
    known = context.servers
    server = next((name for name in known if name.lower() == text.lower()), None)
    if server is None and known:
        raise GrammarError(
            f"mcp.json names no server '{clean_line(text, limit=40)}'; servers: {', '.join(known)}"
        )
    return server or text


def _servers(context: Context) -> Iterable[tuple[str, str]]:
    return [(name, clean_line(facts.line, limit=120)) for name, facts in context.servers.items()]


ONLY_JOB = only_choice(_jobs, "name the job; running jobs: {}")
TIERS = pairs(("kernel", "without namespaces"), ("paths", "UNCONFINED: nothing holds programs"))
NETWORKS = pairs(
    ("off", "nothing"), ("ports", "HTTP, HTTPS and name look-up, of every host"), ("on", "everything")
)
SERVER = Word("server", "a server of mcp.json", parse=_server, offers=_servers)
SERVERS_TOOL = Rest("call", "a server's tool", shown="SERVER.TOOL {JSON}")
COMMANDS = (
    command(
        "! coder",
        Submit(_call, view="session"),
        Rest("call", "a sandbox command such as: ls", shown="COMMAND ARGUMENTS", parse=tool_line),
        forms=(
            Form(Submit(_call_server, view="session"), (SERVERS_TOOL,), when=r"[A-Za-z][\w-]*[.:]\w|mcp__"),
        ),
    ),
    command("policy", Show(_policy, "policy")),
    command(
        "accept_tier",
        cmd.AcceptTier,
        Word("tier", "a tier", parse=lambda text, _context: text.upper(), offers=TIERS),
    ),
    command(
        "network", cmd.GrantNetwork, Word("network", "what they may reach", parse=lower, offers=NETWORKS)
    ),
    command("jobs", Submit(cmd.CallTool, {"command": "jobs", "args": {}}, view="session")),
    command("stop_job", cmd.StopJob, Word("job", "a job", True, parse=lower, offers=_jobs, default=ONLY_JOB)),
    command("mcp_trust", TrustServer, SERVER, preview=late("preview:preview_server")),
    command("mcp_distrust", DistrustServer, SERVER, preview=late("preview:preview_server")),
)
