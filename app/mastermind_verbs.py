"""The words of the command bar for Mastermind: what changes the system itself, agents and identities.

What follows a verb as its last argument is taken as it stands, without quotes; options stand before it.
Source: mindX spec §1.2 and §7, behaviours 1 to 13.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from app.verb import Choices, Context, GrammarError, Intent, Local, Reader, Verb, only, split_word, word
from engine.domain import mastermind_commands as mm
from engine.domain.improvement import CampaignStatus, ItemStatus

CAMPAIGN_OPTIONS: Mapping[str, str] = {
    "seed": "N",
    "candidates": "N",
    "seconds": "S",
    "usd": "X",
    "component": "ID",
    "apply": "",
}
"""Options of what runs campaigns; those without a word take no value."""
_OPTION = re.compile(r"--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|\Z)")
_ITEM = re.compile(r"[A-Za-z0-9]{1,64}")
RESUMABLE = (
    *(CampaignStatus.INTERRUPTED, CampaignStatus.CANCELLED),
    *(CampaignStatus.FAILED, CampaignStatus.NEEDS_OPERATOR, CampaignStatus.ROLLED_BACK),
)
OPEN = (ItemStatus.PENDING, ItemStatus.PENDING_APPROVAL, ItemStatus.FAILED)


# ------------------------------------------------------------------ reading arguments


def _options(rest: str, known: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The options before an argument, and the argument as it stands; `--` ends the options."""
    found: dict[str, Any] = {}
    while rest.startswith("--"):
        if re.match(r"--(\s|\Z)", rest):
            return found, rest[2:].strip()
        match = _OPTION.match(rest)
        if match is None or match[1] not in known:
            said = " ".join(f"--{name} {value}".rstrip() for name, value in known.items())
            raise GrammarError(f"'{split_word(rest)[0][:40]}' is no option here; options: {said or 'none'}")
        name, value, rest = match[1], match[2], rest[match.end() :]
        if name in found:
            raise GrammarError(f"--{name} is given twice")
        if not known[name]:
            if value is not None:
                raise GrammarError(f"--{name} takes no value")
            found[name] = True
            continue
        if value is None:
            value, _, rest = split_word(rest)
            rest = rest.strip()
        if not value:
            raise GrammarError(f"--{name} needs a value: --{name} {known[name]}")
        found[name] = value
    return found, rest


def _start(verb: str, argument: str, options: Mapping[str, Any], **more: Any) -> mm.StartJob:
    given = dict(options)
    fields = {
        name: given.pop(name)
        for name in ("seed", "candidates", "seconds", "usd", "component")
        if name in given
    }
    return mm.StartJob.model_validate(
        {"verb": verb, "argument": argument, "options": given, **fields, **more}
    )


def _job(verb: str, what: str, known: Mapping[str, str] | None = None, *, needed: bool = True) -> Reader:
    """Reads a verb that begins a job: options, then one argument to the end of the line."""

    def read(rest: str, context: Context) -> Intent:
        options, argument = _options(rest, known or {})
        if needed and not argument:
            raise GrammarError(f"{what} is missing")
        return _start(verb, argument, options)

    return read


def _bare(action: str) -> Reader:
    def read(rest: str, context: Context) -> Intent:
        if rest:
            raise GrammarError(f"nothing follows this word; '{rest[:40]}' is too much")
        return Local(action)

    return read


def _read_analyze(rest: str, context: Context) -> Intent:
    path, tail = _path(rest)
    return _start("analyze_codebase", f"{shlex.quote(path)} {tail}".rstrip(), {})


def _path(rest: str) -> tuple[str, str]:
    """The path at the beginning, in quotes where it has blanks, and what follows it."""
    if rest[:1] in ("'", '"'):
        end = rest.find(rest[0], 1)
        if end < 0:
            raise GrammarError(f"the quote {rest[0]} at the beginning has no end")
        head, tail = rest[1:end], rest[end + 1 :].strip()
    else:
        head, tail = word(rest, "a path such as sample")
    if not head or "\0" in head:
        raise GrammarError("a path such as sample is missing")
    return head, tail


def _read_basegen(rest: str, context: Context) -> Intent:
    if rest[:1] in ("'", '"'):
        path, tail = _path(rest)
        if tail:
            raise GrammarError(f"only a path is expected; '{tail[:40]}' is too much")
    else:
        path = rest
    if not path or "\0" in path:
        raise GrammarError("a path such as sample is missing")
    return _start("basegen", path, {})


def _read_process(rest: str, context: Context) -> Intent:
    known = {name: value for name, value in CAMPAIGN_OPTIONS.items() if name != "component"}
    options, argument = _options(rest, known)
    if argument == "auto":
        return _start("coord_process_backlog", "auto", options, auto=True)
    if argument and not re.fullmatch(r"[1-9][0-9]{0,2}", argument):
        raise GrammarError("how many items, or auto, is expected")
    return _start("coord_process_backlog", argument, options, count=int(argument or 1))


def _read_suggest(rest: str, context: Context) -> Intent:
    priority = 5
    match = re.match(r"!\s*(-?\d{1,6})\s+", rest)
    if match:
        priority, rest = int(match[1]), rest[match.end() :]
    target, text = word(rest, "a component")
    if not text:
        raise GrammarError("the suggestion is missing")
    return mm.AddItem(target=target, suggestion=text, priority=priority)


def _item(text: str) -> str:
    if not _ITEM.fullmatch(text):
        raise GrammarError(f"'{text[:40]}' is no item's id, such as i3 or the beginning of a long one")
    return text


def _read_approve(rest: str, context: Context) -> Intent:
    return mm.SettleItem(item=_item(only(rest, "an item such as i3")), approve=True)


def _read_reject(rest: str, context: Context) -> Intent:
    item, reason = word(rest, "an item such as i3")
    return mm.SettleItem(item=_item(item), approve=False, reason=reason)


def _campaign(text: str, context: Context, status: CampaignStatus | None = None) -> str:
    """A campaign's id as typed (`k2` or `2`); with a status the only one that stands so needs no name."""
    if re.fullmatch(r"[kK]?[0-9]{1,9}", text):
        return f"k{text.lstrip('kK')}"
    if text:
        raise GrammarError(f"'{text[:40]}' is no campaign's id, such as k2")
    state = context.mastermind
    fitting = [one.id for one in state.campaigns.values() if one.status is status] if state else []
    if len(fitting) != 1:
        raise GrammarError(f"a campaign such as k2 is missing; there are: {', '.join(fitting) or 'none'}")
    return fitting[0]


def _read_apply(rest: str, context: Context) -> Intent:
    wanted = only(rest, "a campaign") if rest else ""
    return mm.ApplyCandidate(campaign=_campaign(wanted, context, CampaignStatus.NEEDS_OPERATOR))


def _read_shadow(rest: str, context: Context) -> Intent:
    wanted = only(rest, "a campaign") if rest else ""
    return _start("coord_shadow", _campaign(wanted, context, CampaignStatus.NEEDS_OPERATOR), {})


def _read_decline(rest: str, context: Context) -> Intent:
    wanted, _, reason = split_word(rest)
    campaign = _campaign(wanted, context, CampaignStatus.NEEDS_OPERATOR)
    return mm.DeclineCampaign(campaign=campaign, reason=reason.strip())


def _read_rollback(rest: str, context: Context) -> Intent:
    wanted = only(rest, "a campaign") if rest else "last"
    return mm.RollBack(campaign="last" if wanted == "last" else _campaign(wanted, context))


def _read_resume(rest: str, context: Context) -> Intent:
    return _start("campaign_resume", _campaign(only(rest, "a campaign such as k2"), context), {})


def _read_campaign(rest: str, context: Context) -> Intent:
    return Local("campaign", _campaign(only(rest, "a campaign"), context) if rest else "")


def _read_cancel(rest: str, context: Context) -> Intent:
    running = [job for job, _ in _running(context)]
    if not rest and len(running) != 1:
        raise GrammarError(f"name the job; under way: {', '.join(running) or 'none'}")
    job = only(rest, "a job") if rest else running[0]
    if not re.fullmatch(r"[jJ]?[0-9]{1,9}", job):
        raise GrammarError(f"'{job[:40]}' is no job's id, such as j3")
    return mm.CancelJob(job=f"j{job.lstrip('jJ')}")


def _read_evolve_agent(rest: str, context: Context) -> Intent:
    options, argument = _options(rest, {n: v for n, v in CAMPAIGN_OPTIONS.items() if n != "component"})
    agent, directive = word(argument, "an agent id")
    if not directive:
        raise GrammarError("the directive is missing")
    if agent not in context.agents:
        raise GrammarError(
            f"there is no agent '{agent[:40]}'; agents: {', '.join(context.agents) or 'none yet'}"
        )
    return _start("evolve", directive, {**options, "component": f"agent:{agent}"})


def _read_deploy(rest: str, context: Context) -> Intent:
    options, directive = _options(rest, {"approve": "DIGEST"})
    if not directive:
        raise GrammarError("the directive is missing")
    approved = {"approved": options["approve"]} if options else {}
    return _start("deploy", directive, approved)


BUILD_OPTIONS = {
    "strict": "", "dry-run": "", "live": "", "trust": "", "optional-mcp": "", "watch": "", "type": "TYPE",
}  # fmt: skip


def _read_build(rest: str, context: Context) -> Intent:
    """`build PATH [--strict …]`: options may stand before the path and behind it."""
    match = re.match(r"(?P<path>(?!--)\S.*?)(?P<behind>(?:\s+--(?:type[= ]\S+|\S+))*)\s*\Z", rest, re.S)
    if match is not None and match["behind"]:
        rest = f"{match['behind'].strip()} {match['path']}"
    options, path = _options(rest, BUILD_OPTIONS)
    if not path:
        raise GrammarError("the path of a folder with a SKILL.md is missing")
    verb = "agent_watch" if options.pop("watch", False) else "agent_build"
    return _start(verb, path.strip("\"'"), options)


def names_path(rest: str) -> bool:
    """Whether what stands behind `agent_create` is a skill's place and not a type with an id."""
    head = split_word(rest)[0]
    return "/" in head or head[:1] in (".", "~") or head.lower().endswith(".md")


def _read_create(rest: str, context: Context) -> Intent:
    if names_path(rest):
        return _read_build(rest, context)
    from engine.mastermind.agent_types import CreationError
    from engine.mastermind.specifying import settings_in, split_request

    options, rest = _options(rest, {"fill": ""})
    word(word(rest, "an agent type")[1], "an agent id")
    try:
        kind, ident, text = split_request(rest)
        settings_in(text)
    except CreationError as error:
        raise GrammarError(str(error).partition(" · usage: ")[0]) from None
    if options:
        return _start("agent_create", f"{kind} {ident} {text}".rstrip(), options)
    return Local("agent_create", f"{kind} {ident} {text}".rstrip())


def _read_sign(rest: str, context: Context) -> Intent:
    _, message = word(rest, "an agent id or an address")
    if not message:
        raise GrammarError("the message is missing")
    return Local("agent_sign", rest)


def _read_verify(rest: str, context: Context) -> Intent:
    _, tail = word(rest, "an address")
    _, message = word(tail, "a signature")
    if not message:
        raise GrammarError("the message is missing")
    return Local("agent_verify", rest)


def _read_deprecate(rest: str, context: Context) -> Intent:
    word(rest, "an address, its beginning, or an entity")
    return Local("id_deprecate", rest)


# ------------------------------------------------------------------ choices for completion


def _components(context: Context) -> Iterable[tuple[str, str]]:
    return context.components


def _items(*statuses: ItemStatus) -> Choices:
    def choices(context: Context) -> Iterable[tuple[str, str]]:
        state = context.mastermind
        items = state.items.values() if state is not None else ()
        return [(one.id, f"{one.target}: {one.suggestion}") for one in items if one.status in statuses]

    return choices


def _campaigns(*statuses: CampaignStatus) -> Choices:
    def choices(context: Context) -> Iterable[tuple[str, str]]:
        state = context.mastermind
        found = reversed(state.campaigns.values()) if state is not None else ()
        return [
            (one.id, f"{one.status}: {one.directive}")
            for one in found
            if not statuses or one.status in statuses
        ]

    return choices


def _running(context: Context) -> Iterable[tuple[str, str]]:
    jobs = context.mastermind.jobs.values() if context.mastermind is not None else ()
    return [(one.id, f"{one.verb} {one.argument}") for one in jobs if not one.status.over]


def _agents(context: Context) -> Iterable[tuple[str, str]]:
    return [(name, "agent") for name in context.agents]


def _signers(context: Context) -> Iterable[tuple[str, str]]:
    state = context.mastermind
    held = [one for one in state.identities.values() if not one.deprecated] if state is not None else []
    return [(one.entity, one.address) for one in held]


def _addresses(context: Context) -> Iterable[tuple[str, str]]:
    state = context.mastermind
    held = [one for one in state.identities.values() if not one.deprecated] if state is not None else []
    return [(one.address, one.entity) for one in held]


def _paths(context: Context) -> Iterable[tuple[str, str]]:
    return [(path, "") for path in context.paths]


def _agent_types(context: Context) -> Iterable[tuple[str, str]]:
    return [
        ("bdi_agent", "an agent with goals, beliefs and plans of steps"),
        ("asl_agent", "an agent that an AgentSpeak(L) program runs: asl_agent ID file=PROGRAM.asl"),
    ]


def _values(context: Context) -> Mapping[str, Iterable[tuple[str, str]]]:
    """What options of campaigns may be set to."""
    state = context.mastermind
    seeds = [(str(one.seed), f"of {one.id}") for one in reversed(state.campaigns.values())] if state else []
    return {
        "--component": _components(context),
        "--seed": seeds,
        "--usd": [("1", "for models"), ("0", "no model")],
        "--candidates": [("12", "at most"), ("3", "at most")],
        "--seconds": [("600", "of processor"), ("60", "of processor")],
    }


def _approvable(context: Context) -> Mapping[str, Iterable[tuple[str, str]]]:
    """Digests of steps that were shown and not done."""
    jobs = reversed(context.mastermind.jobs.values()) if context.mastermind is not None else ()
    shown = [(str(one.answer["approve"]), one.argument) for one in jobs if one.answer.get("approve")]
    return {"--approve": shown}


def _settings(context: Context) -> Iterable[tuple[str, str]]:
    """Settings of agents, as they begin; read when somebody types an agent."""
    from engine.mastermind.agent_types import TYPES

    return [(f"{name}=", said) for kind in TYPES for name, (said, _) in kind.settings.items()]


def _nothing(_context: Context) -> Iterable[tuple[str, str]]:
    return ()


def _focus(_context: Context) -> Iterable[tuple[str, str]]:
    words = ("structure", "sizes", "complexity", "tests", "hot spots")
    return [(one, "what to look at first") for one in words]


# ------------------------------------------------------------------ the table

_OF_CAMPAIGNS = "[--seed N] [--candidates N] [--seconds S] [--usd X] [--apply]"
_ON_ONE = f"[--component ID] {_OF_CAMPAIGNS}"
_WAITS = CampaignStatus.NEEDS_OPERATOR

VERBS: tuple[Verb, ...] = (
    Verb("evolve", f"evolve {_ON_ONE} DIRECTIVE", "find out what is meant, look for something better, "
         "have it judged; nothing is applied without you",
         _job("evolve", "the directive", CAMPAIGN_OPTIONS), "Mastermind", choices=_components,
         values=_values),
    Verb("coord_improve", f"coord_improve {_ON_ONE} COMPONENT [CONTEXT]",
         "run a campaign on a component; the rest of what is found goes to the backlog",
         _job("coord_improve", "a component", CAMPAIGN_OPTIONS), "Mastermind", aliases=("improve",),
         choices=_components, values=_values),
    Verb("campaign", "campaign [ID]", "the campaigns: candidates, verdicts, differences", _read_campaign,
         "Mastermind", aliases=("campaigns",), choices=_campaigns()),
    Verb("campaign_resume", "campaign_resume CAMPAIGN", "go on with a campaign that was cut off",
         _read_resume, "Mastermind", aliases=("coord_resume",),
         choices=_campaigns(*RESUMABLE)),
    Verb("coord_shadow", "coord_shadow [CAMPAIGN]", "run the candidate that waits beside what is there, on "
         "sealed tasks drawn for this; nothing changes", _read_shadow, "Mastermind", aliases=("shadow",),
         choices=_campaigns(_WAITS)),
    Verb("coord_apply", "coord_apply [CAMPAIGN]", "write the candidate that waits to the workspace",
         _read_apply, "Mastermind", choices=_campaigns(_WAITS)),
    Verb("coord_decline", "coord_decline [CAMPAIGN [REASON]]", "say no to the candidate that waits",
         _read_decline, "Mastermind", choices=_campaigns(_WAITS)),
    Verb("coord_rollback", "coord_rollback [CAMPAIGN|last]", "bring back the files that a campaign changed",
         _read_rollback, "Mastermind", aliases=("rollback",), choices=_campaigns(CampaignStatus.APPLIED)),
    Verb("coord_analyze", "coord_analyze [CONTEXT]", "look at everything that can be improved; what is found "
         "goes to the backlog", _job("coord_analyze", "", needed=False), "Mastermind",
         aliases=("analyze_system",)),
    Verb("coord_query", "coord_query QUESTION", "ask what Mastermind did, and why",
         _job("coord_query", "a question"), "Mastermind", aliases=("query",)),
    Verb("coord_backlog", "coord_backlog", "what could be better, the most urgent first",
         _bare("coord_backlog"), "Mastermind", aliases=("backlog",)),
    Verb("coord_suggest", "coord_suggest [!PRIORITY] COMPONENT TEXT", "put a suggestion into the backlog",
         _read_suggest, "Mastermind", aliases=("suggest",), choices=_components),
    Verb("coord_process_backlog", f"coord_process_backlog {_OF_CAMPAIGNS} [COUNT|auto]",
         "work on the next items of the backlog; auto: until it is empty or the budget is used up",
         _read_process, "Mastermind", aliases=("process_backlog",),
         choices=lambda _c: [("auto", "until it is empty, cancelled or out of budget"), ("3", "items")],
         values=_values),
    Verb("coord_approve", "coord_approve ITEM", "let a critical item of the backlog be worked on",
         _read_approve, "Mastermind", choices=_items(ItemStatus.PENDING_APPROVAL)),
    Verb("coord_reject", "coord_reject ITEM [REASON]", "take an item of the backlog out of the way",
         _read_reject, "Mastermind", choices=_items(*OPEN)),
    Verb("mastermind_status", "mastermind_status", "what Mastermind did, and why",
         _bare("mastermind_status"), "Mastermind"),
    Verb("mastermind_jobs", "mastermind_jobs", "what goes on beside the cockpit, and what came of it",
         _bare("mastermind_jobs"), "Mastermind", aliases=("coord_jobs",)),
    Verb("job_cancel", "job_cancel [JOB]", "end a job with all that it started", _read_cancel, "Mastermind",
         aliases=("cancel_job",), choices=_running),
    Verb("analyze_codebase", "analyze_codebase PATH [FOCUS]", "structure, sizes, complexity, tests and hot "
         "spots of a project", _read_analyze, "Mastermind", choices=_paths, more=(_focus,)),
    Verb("basegen", "basegen PATH", "a Markdown snapshot of a directory", _read_basegen, "Mastermind",
         choices=_paths),
    Verb("deploy", "deploy [--approve DIGEST] DIRECTIVE", "create, use and delete agents for something; the "
         "steps are shown first", _read_deploy, "Mastermind", values=_approvable),
    Verb("introspect", "introspect [--keep] ROLE", "what a role is to be, as a prompt",
         _job("introspect", "a role", {"keep": ""}), "Mastermind"),
    Verb("build", "build PATH [--strict] [--dry-run] [--live] [--watch] [--type TYPE] [--trust]", "build an "
         "agent of a folder with a SKILL.md, test and register it", _read_build, "Agents", choices=_paths,
         values=_values),
    Verb("agent_create", "agent_create [--fill] TYPE ID [SENTENCE|JSON|SETTING=VALUE …] | agent_create PATH",
         "bring an agent to be, or build one of a skill's folder; --fill: a model says what a sentence "
         "leaves open, and shows it first",
         _read_create, "Agents", choices=_agent_types, more=(_nothing, _settings)),
    Verb("agent_delete", "agent_delete ID", "remove an agent with all that it started; its history stays",
         lambda rest, c: Local("agent_delete", only(rest, "an agent id")), "Agents", choices=_agents),
    Verb("agent_evolve", f"agent_evolve {_OF_CAMPAIGNS} ID DIRECTIVE", "look for a better specification of "
         "an agent", _read_evolve_agent, "Agents", choices=_agents, values=_values),
    Verb("show_agent_registry", "show_agent_registry", "all agents that are or were",
         _bare("show_agent_registry"), "Agents"),
    Verb("show_tool_registry", "show_tool_registry", "every command of every tool",
         _bare("show_tool_registry"), "Agents"),
    Verb("agent_sign", "agent_sign ID MESSAGE", "sign a message as an agent", _read_sign, "Identities",
         choices=_signers),
    Verb("agent_verify", "agent_verify ADDRESS SIGNATURE MESSAGE", "whether an address signed a message",
         _read_verify, "Identities", choices=_addresses),
    Verb("id_list", "id_list", "who can sign, and who could", _bare("id_list"), "Identities"),
    Verb("id_create", "id_create ENTITY", "make an identity, or show the one that there is",
         lambda rest, c: Local("id_create", only(rest, "an entity such as pilot-1")), "Identities",
         choices=_agents),
    Verb("id_deprecate", "id_deprecate ADDRESS [REASON] [--yes]", "give an identity up: its private key is "
         "destroyed", _read_deprecate, "Identities", choices=_addresses,
         more=(lambda _c: [("--yes", "it is sure")],)),
)  # fmt: skip
