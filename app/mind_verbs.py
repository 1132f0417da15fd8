"""The words of the command bar for agents whose goals an AgentSpeak(L) program pursues."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.verb import Context, GrammarError, Intent, Local, Verb, only, split_word, word
from engine.domain import commands as cmd
from engine.domain.reasoning import GenerationStage

PROGRAM_LIMIT = 1_000_000
"""Bytes of a program's file."""
STEERED = ("suspend", "resume", "drop", "fail")
DECISIONS = {"approve": "install them", "reject": "with a reason", "again": "ask the model once more"}


def reads_program(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the text of the file that its program is in.

    Raises:
        GrammarError: the file cannot be read.
    """
    named = config.pop("file", None)
    if named is None:
        return config
    path = Path(str(named)).expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(PROGRAM_LIMIT + 1)
        if len(content) > PROGRAM_LIMIT:
            raise GrammarError(f"{path}: larger than {PROGRAM_LIMIT} bytes")
        text = content.decode("utf-8")
    except OSError as error:
        raise GrammarError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise GrammarError(f"{path}: not a text in UTF-8") from None
    return {"program": text, "source": path.name, **config}


def _read_intention(rest: str, context: Context) -> Intent:
    number, tail = word(rest, "an intention")
    how, reason = word(tail, f"one of {', '.join(STEERED)}")
    if number in STEERED and how.isdigit():
        number, how = how, number
    if how not in STEERED or not number.isdigit():
        raise GrammarError(f"give a number and one of {', '.join(STEERED)}: intention 2 suspend")
    fields = {"agent": context.agent, "intention": int(number), "how": how, "reason": reason}
    return cmd.SteerIntention.model_validate(fields)


def _intentions(context: Context) -> Iterable[tuple[str, str]]:
    for number, view in context.state.intentions.items() if context.state else ():
        goal = view.frames[0].goal if view.frames else ""
        how = "resume" if view.state == "suspended" else "suspend"
        yield f"{number} {how}", f"{goal} {view.state}"
        yield f"{number} drop", f"{goal} {view.state}"


def _read_trace(rest: str, context: Context) -> Intent:
    if rest not in ("on", "off"):
        raise GrammarError("say on or off")
    return cmd.SetTracing(agent=context.agent, on=rest == "on")


def _read_plans(rest: str, context: Context) -> Intent:
    if not rest:
        return Local("generated_plans")
    decision, tail = word(rest, f"one of {', '.join(DECISIONS)}")
    ident, _, text = split_word(tail)
    held = [one for one, _ in _held(context)]
    if ident not in held and len(held) == 1:
        ident, text = held[0], tail
    if decision not in DECISIONS or not ident:
        raise GrammarError(f"say {', '.join(DECISIONS)}, and which; waiting: {', '.join(held) or 'none'}")
    fields = {"agent": context.agent, "generation": ident, "decision": decision, "text": text.strip()}
    return cmd.DecidePlans.model_validate(fields)


def _held(context: Context) -> list[tuple[str, str]]:
    generations = context.state.generations.values() if context.state else ()
    return [(one.id, one.goal) for one in generations if one.stage is GenerationStage.HELD]


def _plans(context: Context) -> Iterable[tuple[str, str]]:
    return [(f"{how} {one}", f"plans for {goal}") for one, goal in _held(context) for how in DECISIONS]


VERBS: tuple[Verb, ...] = (
    Verb("intention", "intention N suspend|resume|drop|fail [REASON]", "steer an intention of a reasoner",
         _read_intention, "Mind", choices=_intentions),
    Verb("trace", "trace on|off", "journal every change of beliefs, events and intentions", _read_trace,
         "Mind", choices=lambda c: [("on", "every change"), ("off", "only what the panes need")]),
    Verb("plans", "plans [approve|reject|again ID [TEXT]]", "decide on plans that a model made", _read_plans,
         "Mind", choices=_plans),
    Verb("world", "world", "the small world that the agent lives in, or its session again",
         lambda rest, c: Local("world", only(rest, "nothing") if rest else ""), "Mind"),
)  # fmt: skip
