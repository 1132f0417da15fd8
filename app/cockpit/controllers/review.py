"""What the journal answers: recap, search, why; and the help."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual.widget import Widget
from textual.worker import Worker

from app.cockpit import keymap
from app.cockpit.context import CockpitContext, in_background
from app.cockpit.screens.guide import GuideScreen
from app.commands.beliefs import split_direction
from app.commands.disputes import NONE, dispute, disputed_event, retract
from app.commands.registry import help_answer
from app.commands.review import last_command, recap_line, recap_of
from app.commands.search import full_hit, search_notes, stream_search
from app.commands.why import Direction, find_why
from app.projection import pane_views as views
from engine.core.journal import JournalError
from engine.core.text import clean_line
from engine.inquiry.record import Record, UnknownSubjectError
from engine.inquiry.search import Batch, Hit, SearchError, Source, newest_first, parse_query
from engine.inquiry.why import unsupported_beliefs
from widgets.base.facts import Section
from widgets.base.line_pane import Notice
from widgets.base.rows import Row
from widgets.base.text_layout import Piece
from widgets.dialogs.help import HelpDialog
from widgets.dialogs.review import SearchDialog, SearchModel, WhyDialog, WhyModel, why_row
from widgets.panes.beliefs import BeliefsPane, WorkingMemory
from widgets.panes.errors import ErrorPanel
from widgets.panes.goals import GoalStack
from widgets.panes.plan import PlanPane


def _model(words: str, hits: list[Hit], last: dict[str, Batch], *, over: bool) -> SearchModel:
    newest = {f"{hit.source}:{hit.ref}": hit for hit in newest_first(hits)}
    lines = tuple(_hit_row(key, hit) for key, hit in newest.items())
    looked = ", ".join(f"{batch.looked_at:,} {batch.source.several}" for _, batch in sorted(last.items()))
    standing = " · ".join(
        (f"{len(lines)} found", f"{'looked' if over else 'looking'} at {looked or 'nothing yet'}",
         *search_notes(list(last.values())))
    )  # fmt: skip
    notice = None if lines else Notice("Nothing was found.")
    if not over:
        notice = Notice("searching …", "loading")
    return SearchModel(words, lines, standing, notice)


def _hit_row(key: str, hit: Hit) -> Row:
    when, who = hit.at[:19].replace("T", " "), clean_line(hit.agent or hit.source, limit=24)
    ref, text = clean_line(hit.ref, limit=60), clean_line(hit.text)
    kind = Piece(f"{clean_line(hit.kind, limit=40)} ", "accent")
    pieces = (Piece(f"{clean_line(when)} {who} ", "dim"), kind, Piece(text))
    return Row(key, pieces, tail=(Piece(ref, "dim"),), indent=2, most=3, copy=f"{ref} {text}")


BELIEF, GOAL = "belief:", "goal:"

WITH_A_MODEL = (
    ("no model is set", "agents plan by the plan library, and say which clause no recipe covers"),
    ("ANTHROPIC_API_KEY", "set it before you open the cockpit, and Claude plans for new agents"),
    ("ANTHROPIC_BASE_URL", "or this: a server of your own that speaks the Messages API"),
    ("PILOTHOUSE_MODEL", "the model's name; pilothouse doctor --model tries it"),
    ("PILOTHOUSE_MODEL_FAST", "of agents that want a fast one; _DEEP of those that want a deep one"),
)


class Review:
    """Recap, search, why this, and the help."""

    def __init__(self, context: CockpitContext) -> None:
        self._context = context
        self.searching: Worker[None] | None = None
        self._looked = 0
        """The place of the last event that the operator may have seen."""

    async def begin_recap(self) -> None:
        """Begin at the operator's last command, and say what happened since."""
        if self._context.engine is None:
            return
        try:
            self._looked = await last_command(self._context.engine, self._context.settings.operator)
        except JournalError:
            return
        state = self._context.state
        waits = state is not None and views.needs_operator(state)
        if self._looked and not self._context.problems and not waits:
            await self._say_recap()

    async def _say_recap(self) -> None:
        if self._context.engine is None:
            return
        try:
            line = recap_line(await recap_of(self._context.engine, self._looked))
        except (JournalError, KeyError):
            return  # the recap itself says what is wrong, when it is asked for
        if line and not self._context.occupied:
            self._context.say(f"since your last command: {line} · N shows all", "note")

    def open_search(self, words: str = "") -> None:
        """Search for words, or let the operator type them."""
        if self._context.opened_engine() is not None and self._context.no_dialog:
            self._context.push(SearchDialog(words), lambda _none: self._end_search())

    def _end_search(self) -> None:
        if self.searching is not None:
            self.searching.cancel()
            self.searching = None

    def on_search_dialog_search(self, words: str) -> None:
        """Look for these words and no longer for the ones before."""
        self._end_search()
        if words and (dialog := self._context.showing(SearchDialog)) is not None:
            found = asyncio.Event()
            self.searching = self._context.run(self._search(dialog, words, found), "search")
            self._context.settle(found.wait(), "search")

    async def _search(self, dialog: SearchDialog, words: str, found: asyncio.Event) -> None:
        engine = self._context.engine
        if engine is None:
            return
        try:
            what = parse_query(words)
        except SearchError as error:
            dialog.show(SearchModel(words, notice=Notice(str(error), "error")))
            found.set()
            return
        hits: list[Hit] = []
        last: dict[str, Batch] = {}

        def take(batch: Batch) -> None:
            hits.extend(batch.hits)
            last[batch.source.value] = batch
            dialog.show(_model(words, hits, last, over=False))
            if hits:
                found.set()

        await stream_search(engine, what, take)
        dialog.show(_model(words, hits, last, over=True))
        found.set()

    def on_search_dialog_open(self, key: str) -> None:
        """Read what was chosen."""
        if (dialog := self._context.showing(SearchDialog)) is not None:
            self._context.settle(self._show_hit(dialog, key), "found")

    async def _show_hit(self, dialog: SearchDialog, key: str) -> None:
        if self._context.engine is None:
            return
        try:
            source, _, ref = key.partition(":")
            parts = await full_hit(self._context.engine, Source(source), ref)
        except JournalError as error:
            parts = [(str(error), "")]
        sections = tuple(Section(title, text) for title, text in parts)
        dialog.show_whole(key, sections)

    def action_why(self) -> None:
        """Ask about what is selected in the focused pane, else about the newest action."""
        if self._context.no_dialog:
            self.ask_why(self.selected_subject())

    def ask_why(self, line: str) -> None:
        """Answer a question as it is typed in the bar."""
        self.answer(*split_direction(line))

    def answer(self, subject: str = "", direction: str = "backward") -> None:
        """Answer why something is; an empty subject is what is selected."""
        self._answer_why(subject or self.selected_subject(), direction)

    def selected_subject(self) -> str:
        """The step, failure, belief or goal under the cursor of the focused pane; empty for none."""
        focused = self._context.app.focused
        pane = next((node for node in focused.ancestors_with_self if node.id), None) if focused else None
        match pane:
            case PlanPane():
                return pane.selected
            case ErrorPanel():
                return pane.cursor
            case WorkingMemory() if pane.cursor.startswith((BELIEF, GOAL)):
                return pane.cursor.partition(":")[2]
            case BeliefsPane():
                return pane.cursor.partition("[")[0]
            case GoalStack() if pane.cursor.startswith(GOAL):
                return pane.cursor.partition(":")[2]
        return ""

    @in_background("why", UnknownSubjectError, JournalError, group="why", opens=True)
    async def _answer_why(self, what: str, way: str, *, opens: bool = True) -> None:
        """Read the journal, and show the answer in the open dialog, or if it `opens` one, in a new dialog."""
        if (engine := self._context.opened_engine()) is None:
            return
        record = await engine.record()
        answer = await asyncio.to_thread(find_why, record, what, Direction(way), self._context.agent)
        rows = [
            why_row(at, line.ref, line.lead, line.glyph, line.kind, line.text, line.time)
            for at, line in enumerate(answer.lines)
        ]
        subject = answer.subject.name if answer.subject.kind != "error" else answer.subject.newest
        model = WhyModel(subject, way, answer.title, rows, answer.notes)
        if isinstance(self._context.app.screen, WhyDialog):
            self._context.app.screen.show(model)
        elif opens and self._context.no_dialog:
            self._context.push(WhyDialog(model))

    def on_why_dialog_asked(self, what: str, way: str) -> None:
        """Answer on in the open dialog."""
        self._answer_why(what, way, opens=False)

    def on_mind_stream_why(self, entry: str) -> None:
        """Answer why the mind moved so; of what one event says each part has its number behind that."""
        self.answer(entry.partition("/")[0])

    def on_why_dialog_mark(self, ref: str) -> None:
        """Mark the event under the cursor as wrong, or take its mark back."""
        self.mark(ref, "", lifted=None)

    def on_why_dialog_retract(self, ref: str) -> None:
        """Take back what depends on the event under the cursor alone."""
        self.retract(ref)

    @in_background("mark", UnknownSubjectError, JournalError, group="mark")
    async def mark(self, subject: str, reason: str, *, lifted: bool | None) -> None:
        """Mark something as wrong or lift its mark, with None whichever changes it, and show its effects."""
        if (disputed := await self._disputed(subject)) is None:
            return
        record, ref = disputed
        lifts = ref in record.disputes if lifted is None else lifted
        receipt = await dispute(self._context.submit, ref, reason, lifted=lifts)
        if receipt.ok:
            self._answer_why(ref, "backward" if lifts else "wrong", opens=lifted is not None)

    async def _disputed(self, what: str) -> tuple[Record, str] | None:
        """The journal's record and the event that is disputed; None where there is none, which is said."""
        if self._context.engine is None or self._context.refused_in_past():
            return None
        record = await self._context.engine.record()
        return record, disputed_event(record, what, self._context.agent)

    @in_background("mark", UnknownSubjectError, JournalError, group="mark", opens=True)
    async def retract(self, subject: str) -> None:
        """Ask whether the beliefs are to be taken back that nothing else speaks for, and do it."""
        if (disputed := await self._disputed(subject)) is None:
            return
        record, ref = disputed
        alone = unsupported_beliefs(record, [ref])
        if not alone:
            self._context.say(NONE.format(ref=ref), "note")
            return
        names = ", ".join(belief.name for belief in alone)

        async def take_back() -> None:
            receipts = await retract(self._context.submit, alone)
            done = sum(receipt.ok for receipt in receipts)
            failed = next((receipt.message for receipt in receipts if not receipt.ok), "")
            self._context.say(f"{done} forgotten{': ' * bool(failed)}{failed}", "error" if failed else "ok")

        self._context.confirm(
            f"Take back {len(alone)} belief{'s' * (len(alone) != 1)} that nothing but {ref} speaks for?",
            f"{names}. Each is forgotten by a command of its own, and can be believed again.",
            lambda: self._context.run(take_back(), "retract"),
            yes="take them back",
        )

    def action_manual(self) -> None:
        """Open the user's guide, or close it."""
        if isinstance(self._context.app.screen, GuideScreen):
            self._context.app.screen.dismiss()
        else:
            self._context.push(GuideScreen())

    def show_help(self, name: str = "") -> None:
        """Show all keys and commands, or say what one command does."""
        code, answer, text = help_answer(name)
        if name:
            self._context.say(text, "error" if code else "note")
            return
        focused = self._context.app.focused
        about = ""
        while focused is not None and not about:
            about = getattr(type(focused), "HELP", None) or ""
            focused = focused.parent if isinstance(focused.parent, Widget) else None
        broken = [(row["verb"], f"a plugin that cannot be used: {row['wrong']}") for row in answer["broken"]]
        wrong = [(f"{number}", problem) for number, problem in enumerate(self._context.problems, 1)]
        groups: dict[str, Sequence[tuple[str, str]]] = {"Problems": wrong} if wrong else {}
        groups |= keymap.help_groups(self._context.keys)
        groups["Commands of the bar"] = [*((row["usage"], row["help"]) for row in answer["verbs"]), *broken]
        if self._context.settings.model is None:
            groups["With a model"] = WITH_A_MODEL
        self._context.push(HelpDialog(groups, about))
