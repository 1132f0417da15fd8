"""Saying what the operator waits for or has to know: in the bar, by bell and terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from app.cockpit.context import CockpitContext
from app.cockpit.controllers.run import RunControl
from app.cockpit.controllers.turn import Turn
from app.projection import pane_views as views
from app.projection.projector import NOTHING_CHANGED
from engine.core import events as ev
from engine.core.goals import ending_of
from engine.core.journal import Event
from engine.core.text import clean_line
from engine.inquiry.notices import Notice, NoticeFilter, Rule, notice_of

TITLE_LIMIT, TEXT_LIMIT = 60, 200

BELL = "\a"

_OSC_9 = frozenset({"iterm.app", "wezterm", "ghostty"})
"""Values of TERM_PROGRAM, in small letters, of terminals that show OSC 9."""


class TerminalNotifier:
    """Rings the bell and writes the sequence that the terminal takes.

    Args:
        write: takes text for the terminal, as it is.
        environ: the environment, which says what terminal it is.
    """

    def __init__(self, write: Callable[[str], None], environ: Mapping[str, str]) -> None:
        self._write = write
        self._form = escape_sequence(environ)

    def tell(self, notice: Notice) -> None:
        """Ring, and say it once."""
        title, text = notice_title(notice), notice_text(notice)
        self._write(BELL)
        if self._form == 9:
            self._write(f"\x1b]9;{title}: {text}\x1b\\")
        elif self._form == 777:
            # A semicolon would end the title.
            self._write(f"\x1b]777;notify;{title.replace(';', ',')};{text}\x1b\\")


def escape_sequence(environ: Mapping[str, str]) -> int:
    """The sequence that a terminal takes: 9, 777, or 0 for none."""
    term = environ.get("TERM", "").casefold()
    if "TMUX" in environ or term.startswith(("tmux", "screen")):
        return 0  # it would keep the sequence to itself
    if environ.get("TERM_PROGRAM", "").casefold() in _OSC_9 or "kitty" in term or "ghostty" in term:
        return 9
    if "VTE_VERSION" in environ or term.startswith(("rxvt", "foot")):
        return 777
    return 0


def notice_title(notice: Notice) -> str:
    """What kind of notice it is, and of whom."""
    what = "needs you" if notice.rule is Rule.NEEDS_YOU else "done"
    return f"pilothouse: {clean_line(notice.agent, limit=TITLE_LIMIT)} {what}"


def notice_text(notice: Notice) -> str:
    """What it says, on a short line."""
    return clean_line(notice.text, limit=TEXT_LIMIT)


class Announcements:
    """Says what an event asks of the operator, opens the dialog for it, and notifies them elsewhere."""

    def __init__(
        self,
        context: CockpitContext,
        run: RunControl,
        turn: Turn,
        write: Callable[[str], None],
        *,
        offer: Callable[[type[ev.Payload]], None],
    ) -> None:
        self._context = context
        self._turn = turn
        self._write = write
        self.notifier: TerminalNotifier | None = None
        """Who is notified; None for the terminal."""
        self._filter: NoticeFilter | None = None
        asks = "asks for your approval: press n (A shows all that waits)"
        self._offers: dict[type[ev.Payload], tuple[str, Callable[[], object]]] = {
            ev.ApprovalAsked: (asks, partial(offer, ev.ApprovalAsked)),
            ev.ReplanHeld: (asks, partial(offer, ev.ReplanHeld)),
            ev.PlansHeld: ("has plans for you to approve: press n", partial(offer, ev.PlansHeld)),
            ev.InterventionOpened: ("needs you: press n", turn.offer),
            ev.ChangesOffered: ("needs you: press n", turn.offer_changes),
        }
        """What is said of other agents, and what opens by itself for the shown one."""
        self._reactions: dict[type[ev.Payload], Callable[[str, Any], None]] = {
            ev.ActionFinished: self._action_ended,
            ev.ActionCancelled: self._action_ended,
            ev.WorldPerceived: self._world_perceived,
            ev.ChangesSettled: self._changes_settled,
            ev.GoalEnded: self._goal_ended,
            ev.StopObserved: lambda _agent, payload: run.take_receipt(payload.receipt),
            ev.AgentResumed: lambda agent, _payload: run.drop_receipt(agent),
            ev.AgentThawed: lambda agent, _payload: run.drop_receipt(agent),
            ev.StepGranted: lambda agent, _payload: run.drop_receipt(agent),
            ev.BudgetReached: self._budget_reached,
            ev.MindBreakpointHit: self._mind_breakpoint_hit,
            ev.BreakpointHit: self._breakpoint_hit,
            ev.ControlTaken: self._control_taken,
            ev.ControlAsked: self._control_asked,
            ev.ControlGiven: self._control_given,
            **dict.fromkeys(self._offers, self._offer),
        }
        self._compared = ""
        """The shown agent while it finds out what changed at the shell."""

    def notify(self, event: Event, payload: ev.Payload) -> None:
        """Notify of an event where it is one of those few."""
        states = self._context.projector.states if isinstance(payload, ev.GoalEnded) else ()
        state = next((shown for shown in states if shown.agent_id == event.stream), None)
        notice = notice_of(event, payload, state)
        # Who hands a shell back in this pane is there and sees the question.
        if notice is None or (isinstance(payload, ev.ControlAsked) and payload.holder != self._me):
            return
        if isinstance(payload, ev.ChangesOffered) and event.stream == self._context.agent:
            return
        if self._filter is None:
            self._filter = NoticeFilter(self._context.settings.notify)
        if self._filter.passes(notice):
            self._notifier().tell(notice)

    def _notifier(self) -> TerminalNotifier:
        if self.notifier is None:
            self.notifier = TerminalNotifier(self._write, os.environ)
        return self.notifier

    def take(self, agent: str, payload: ev.Payload) -> None:
        """Say what there is to say of an event of an agent."""
        reaction = self._reactions.get(type(payload))
        if reaction is not None:
            reaction(agent, payload)

    @property
    def _me(self) -> str:
        return self._context.settings.operator

    def _control_taken(self, agent: str, payload: ev.ControlTaken) -> None:
        if payload.before == self._me:
            self._context.say(
                f"{payload.holder} took the controls of {agent} from you; control take takes them back",
                "note",
            )

    def _control_asked(self, agent: str, payload: ev.ControlAsked) -> None:
        if payload.holder == self._me:
            self._context.say(
                f"{payload.by} asks you for the controls of {agent}: A, then a gives them", "asks"
            )

    def _control_given(self, agent: str, payload: ev.ControlGiven) -> None:
        if payload.holder == self._me:
            self._context.say(f"{payload.before} gave you the controls of {agent}", "ok")

    def _shown(self, agent: str) -> bool:
        return agent == self._context.agent

    def _offer(self, agent: str, payload: ev.Payload) -> None:
        said, show = self._offers[type(payload)]
        if not self._shown(agent):
            self._context.say(f"{agent} {said}", "error")
            return
        if isinstance(payload, ev.ChangesOffered):
            self._compared = ""
        self._context.app.call_later(show)

    def _action_ended(self, agent: str, _payload: ev.Payload) -> None:
        state = self._context.live.state
        if self._shown(agent) and state is not None and state.returned:
            self._compared = agent

    def _world_perceived(self, agent: str, _payload: ev.WorldPerceived) -> None:
        if agent == self._compared:
            self._compared = ""
            self._context.say(NOTHING_CHANGED, "note")
            self._context.app.call_later(self._turn.open, unasked=True)

    def _changes_settled(self, agent: str, _payload: ev.ChangesSettled) -> None:
        if self._shown(agent):
            self._context.app.call_later(self._turn.open, unasked=True)

    def _goal_ended(self, agent: str, payload: ev.GoalEnded) -> None:
        state = self._context.live.state
        if not self._shown(agent) or state is None or state.goals[payload.goal].parent:
            return
        mark, words = ending_of(payload.status, payload.reason)
        good = mark in ("achieved", "partly")
        why = f": {payload.reason}" if payload.reason and words == mark and not good else ""
        why = views.goal_evidence(state, payload.goal) if good else why
        kind = "ok" if mark == "achieved" else "note" if good else "error"
        self._context.say(f"goal {payload.goal} {words}{why}", kind)

    def _budget_reached(self, agent: str, payload: ev.BudgetReached) -> None:
        self._context.say(f"{agent}: {payload.reason} · $ shows the budgets and gives more", "error")

    def _mind_breakpoint_hit(self, agent: str, payload: ev.MindBreakpointHit) -> None:
        if self._shown(agent):
            self._held(agent, f"breakpoint {payload.breakpoint}: {payload.what}", "s steps, space resumes")

    def _breakpoint_hit(self, agent: str, payload: ev.BreakpointHit) -> None:
        if self._shown(agent) and not payload.breakpoint:
            self._held(agent, f"held before {payload.step} by its breakpoint", "s runs it, space resumes")
        else:
            why = f"breakpoint {payload.breakpoint}: {payload.what}"
            self._context.app.call_later(self._held, agent, why, "s steps, space resumes, B lists")

    def _held(self, agent: str, why: str, keys: str) -> None:
        """Say that a breakpoint holds an agent, shown or not."""
        line = f"{why}; {keys}" if self._shown(agent) else f"{agent} is held: {why}"
        self._context.say(line, "note")
