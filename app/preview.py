"""What a line of the command bar would do, told before it is done: pure functions of what was understood.

Source: steering spec §2.7 (a dry run of every command), mindX spec §7, behaviours 33 and 36.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from app.verb import Intent, Local, Verb
from engine.domain import crew_commands as cc
from engine.domain.command import Command
from engine.domain.mastermind_commands import CancelJob, ForMastermind, SettleItem, StartJob
from engine.domain.server_commands import DistrustServer, TrustServer
from engine.domain.text import clean_line

if TYPE_CHECKING:
    from engine.crew.state import CrewState

PATHS_SHOWN = 8
_FACTS = (
    ("target", "component"),
    ("read as", "rule"),
    ("measured by", "measure"),
    ("left alone", "unsearched"),
    ("budget", "cost"),
    ("forecast", "forecast"),
    ("workspace", "left"),
)
"""Labels of what a preview says of a campaign, by the names that Mastermind says it under."""
VALUE_LIMIT = 400


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several things that a line may mean."""

    id: str
    rule: str = ""
    """Why it may be meant."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a line would do."""

    line: str
    """As it would be entered."""
    does: str
    """In a sentence."""
    facts: tuple[tuple[str, str], ...] = ()
    """What it resolves to: label and text."""
    choices: tuple[Choice, ...] = ()
    """What may be meant, where that is not certain."""
    wrong: str = ""
    """Why it would be refused; empty where it would not be."""

    def as_json(self) -> dict[str, Any]:
        """The preview as plain values."""
        return {**asdict(self), "facts": [list(one) for one in self.facts], "ok": not self.wrong}

    def text(self) -> str:
        """The preview for a person."""
        lines = [self.line, f"does: {self.does}"] if not self.wrong else [f"refused: {self.wrong}"]
        lines += [f"{label}: {value}" if label else value for label, value in self.facts]
        lines += [
            f"may be: {one.id} ({one.rule})" if one.rule else f"may be: {one.id}" for one in self.choices
        ]
        return "\n".join(lines)


SHOWS = frozenset(
    {
        *("help", "agent_list", "status", "why", "drift", "budgets", "policy", "inbox", "envelope"),
        *("generated_plans", "breakpoints", "break_dry", "past", "compare", "outcomes", "recap", "search"),
        *("meta", "context", "memories", "world", "select_agent", "campaign", "coord_backlog", "id_list"),
        *("mastermind_status", "mastermind_jobs", "show_agent_registry", "show_tool_registry"),
        *("agent_verify", "approvals", "theme", "say", "edit_step"),
        *("fleet", "handoffs", "handoff", "agents", "select", "ideas"),
    }
)
"""What only shows something."""
BEGINS: Mapping[str, tuple[str, str, str]] = {
    "coord_analyze": (
        "looks at everything that can be improved and puts what is found into the backlog",
        "nothing",
        "items of the backlog are rejected one by one",
    ),
    "coord_query": (
        "answers from the journal, by a model where there is one",
        "nothing",
        "it changes nothing",
    ),
    "analyze_codebase": ("reads a project and tells what is in it", "nothing", "it changes nothing"),
    "basegen": ("writes one Markdown file with what is in a directory", "nothing", "the file can be deleted"),
    "deploy": (
        "reads the directive as steps and shows them",
        "to approve the steps before any is done",
        "agents that it creates can be deleted; their actions are held by the gate as all are",
    ),
    "introspect": (
        "tells what a role is to be, by a model where there is one",
        "nothing",
        "it changes nothing",
    ),
    "agent_build": (
        "builds an agent of a skill in seven phases, tests it in the sandbox and registers it",
        "its type where the text does not tell, and about folders that agents can write to",
        "agent_remove takes it out; versions before it are kept",
    ),
    "agent_watch": (
        "builds an agent of a skill now, and again after each change",
        "nothing",
        "job_cancel ends it; agent_remove takes the agent out",
    ),
    "agent_create": (
        "has the model say what the agent is to do, and shows it",
        "whether the agent is to be created as it was filled in",
        "agent_delete removes it",
    ),
    "coord_shadow": (
        "runs the candidate that waits beside what is there, on sealed tasks drawn for this",
        "nothing",
        "it changes nothing",
    ),
    "campaign_resume": (
        "goes on with a campaign; what was judged is not judged again",
        "to look at what is found better",
        "nothing is applied without you",
    ),
}
"""Of verbs that begin a job: what they do, what they will ask, what takes it back."""


def preview_of(
    line: str,
    verb: Verb,
    intent: Intent,
    *,
    agent: str = "",
    model: str = "",
    said: Mapping[str, Any] | None = None,
    crew: CrewState | None = None,
) -> Preview:
    """What an understood line would do.

    Args:
        line: as it would be entered.
        verb: that it begins with.
        intent: what it means.
        agent: for whom it is meant, where it is.
        model: the model's name; empty where there is none.
        said: what Mastermind says that it would do (`Mastermind.preview`), for its commands; for those to
            the crew, what is known of their fields.
        crew: what the crew knows, for commands to it.
    """
    if isinstance(intent, ForMastermind):
        return of_mastermind(line, verb, intent, model=model, said=said or {})
    if isinstance(intent, cc.ForCrew):
        from app.crew_preview import of_crew

        return of_crew(line, verb, intent, model=model, crew=crew, said=said or {})
    if isinstance(intent, Local):
        facts = (("on", clean_line(intent.argument, limit=VALUE_LIMIT)),) if intent.argument else ()
        back = (("undo", "it changes nothing"),) if intent.action in SHOWS else ()
        return Preview(line, verb.help, (*facts, *back))
    return Preview(line, verb.help, (*fields_of(intent, agent), ("undo", _undone(intent))))


def of_mastermind(
    line: str, verb: Verb, command: ForMastermind, *, model: str, said: Mapping[str, Any]
) -> Preview:
    """What a command to Mastermind would do, from what it says itself."""
    wrong = clean_line(str(said.get("wrong", "")), limit=VALUE_LIMIT)
    begins = BEGINS.get(command.verb) if isinstance(command, StartJob) else None
    does, asks, back = begins or (str(said.get("does") or verb.help), "", "")
    facts: list[tuple[str, str]] = []
    for label, name in _FACTS:
        if said.get(name):
            facts.append((label, clean_line(str(said[name]), limit=VALUE_LIMIT)))
    for split, what in dict(said.get("sets", {})).items():
        facts.append((clean_line(str(split)), clean_line(str(what), limit=VALUE_LIMIT)))
    paths = [clean_line(str(path), limit=120) for path in said.get("paths", ())]
    if paths:
        more = f" and {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
        facts.append(("files", ", ".join(paths[:PATHS_SHOWN]) + more))
    if isinstance(command, StartJob):
        facts.append(("model", model or "none is set; nothing that needs one is done"))
        facts.append(("runs as", "a job beside the cockpit; job_cancel ends it"))
    if not asks and said.get("asks"):
        asks = "before anything is applied, or where it is not certain what is meant"
    facts.append(("asks", asks or "nothing"))
    facts.append(("undo", back or _back(command, said)))
    choices = tuple(
        Choice(clean_line(str(one.get("component", ""))), clean_line(str(one.get("rule", "")), limit=200))
        for one in said.get("choices", ())
    )
    return Preview(line, clean_line(does, limit=VALUE_LIMIT), tuple(facts), choices, wrong)


def of_server(
    line: str, verb: Verb, command: TrustServer | DistrustServer, facts: Sequence[tuple[str, str]]
) -> Preview:
    """What a word about an MCP server would do; its entry is shown whole.

    Args:
        line: as it would be entered.
        verb: that it begins with.
        command: what it means.
        facts: the server's entry, safe to show.
    """
    return Preview(line, verb.help, (*facts, ("undo", _undone(command))))


def of_lines(
    line: str, verb: Verb, lines: Sequence[str], *, asks: str = "nothing", back: str = ""
) -> Preview:
    """A preview whose lines somebody else made, such as an agent that would be created."""
    shown = tuple(("", clean_line(one, limit=VALUE_LIMIT)) for one in lines)
    facts = (*shown, ("asks", asks), *((("undo", back),) if back else ()))
    return Preview(line, verb.help, facts)


def refused(line: str, wrong: str) -> Preview:
    """A preview of what would be refused."""
    return Preview(line, "nothing", wrong=clean_line(wrong, limit=1_000))


def understood_as(preview: Preview, line: str) -> Preview:
    """The preview of a wish, which is entered as another line than it was typed."""
    return replace(preview, line=line)


def _back(command: ForMastermind, said: Mapping[str, Any]) -> str:
    if isinstance(command, CancelJob):
        return "no: it has to be begun anew"
    if isinstance(command, SettleItem):
        return "no: an item is settled once"
    if command.do == "mastermind_apply":
        return "yes: coord_rollback brings the files back"
    reversible = said.get("reversible")
    if reversible is None:
        return "it changes no files"
    return "yes: nothing is applied without you, and coord_rollback undoes it" if reversible else "no"


def _undone(command: Command) -> str:
    from engine.steering.compensations import CANNOT, COMPENSATIONS

    if type(command) in COMPENSATIONS:
        return "yes: undo"
    if why := CANNOT.get(type(command)):
        return f"no: {why.format(at='EVENT')}"
    return "not by undo; rewind takes the agent back"


def fields_of(command: Command, agent: str) -> list[tuple[str, str]]:
    """What a command holds besides what it is, as far as it was said."""
    given = command.model_dump(exclude_defaults=True, exclude={"do"})
    given.setdefault("agent", agent)
    return [
        (name.replace("_", " "), clean_line(_shown(value), limit=VALUE_LIMIT))
        for name, value in given.items()
        if value not in ("", None, ())
    ]


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
