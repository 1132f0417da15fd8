"""An agent's memory and its own thinking: the memory browser, the context meter, meta-cognition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from app.cockpit.context import CockpitContext, in_background
from app.cockpit.controllers.panes import READ_EVERY_S, Panes, change_command
from app.commands.embedder import WORDS_ALONE, embed_by
from app.projection import memory_views, pictures
from app.projection import metacognition_views as views
from engine.agent.steering.left_out import left_out
from engine.core import commands as cmd
from engine.core.events import payload_of
from engine.core.journal import JournalError
from engine.core.state import AgentState
from engine.core.thinking import ModelCalled
from engine.memory.embedder_choice import MINILM
from engine.memory.errors import MemoryFault, MemoryNotFound
from engine.memory.metacognition.schedule import root_goal
from widgets.base.facts import Section
from widgets.base.line_pane import Notice
from widgets.dialogs.lists import ContextDialog, MetaDialog
from widgets.dialogs.memory_browser import BrowserModel, MemoryBrowser, MemorySearch
from widgets.dialogs.picture import Picture

if TYPE_CHECKING:
    from engine.memory.search import SearchMatch

RESULTS = 50
BY_WORDS = "by words alone; L finds what is meant"


class Mind:
    """Looking for memories, the last prompt, and what is due in the background."""

    def __init__(self, context: CockpitContext, panes: Panes) -> None:
        self._context = context
        self._read_mind = panes.mind_of
        self._search: MemorySearch | None = None
        """What the browser looks for and was not asked of memory yet."""
        self._memory_id = ""
        self._found: Sequence[SearchMatch] = ()
        """What the browser shows."""
        self._asked: dict[str, str] = {}
        """The query and the workflow that this answers; empty where no words were looked for."""
        self._note = ""
        """What was to be said of memory when the browser was answered last."""
        self._filling = False
        """Whether a worker answers the browser; it continues until nothing more is wanted."""
        context.app.set_interval(READ_EVERY_S, self._look_at_memories, name="memory browser")
        context.app.set_interval(READ_EVERY_S, self._look_at_gauges, name="gauges")

    def open_memories(self, query: str = "", memory: str = "") -> None:
        """Open the browser with the results of a query, or with one memory."""
        engine = self._context.opened_engine()
        if not self._context.no_dialog or engine is None or engine.memory_status is None:
            return
        if trouble := engine.health.memory:
            self._context.say(trouble, "error")
        search = MemorySearch(query)
        model = BrowserModel(self._context.agent, search=search, notice=Notice("reading memory …", "loading"))
        self._search, self._memory_id = search, ""
        self._context.push(MemoryBrowser(model, opens=memory))
        self._answer()

    def _look_at_memories(self) -> None:
        """Answer an open browser."""
        browser, engine = self._context.showing(MemoryBrowser), self._context.engine
        if browser is not None and engine is not None and engine.memory_status is not None:
            if browser.search.query and engine.memory_status.note != self._note:
                self._search = browser.search  # texts were embedded since, or the embedder fails
            if self._search or self._memory_id:
                self._answer()

    def on_memory_browser_search(self, search: MemorySearch) -> None:
        """Look for it at the next tick; of several until then only for the last."""
        self._search = search

    def on_memory_browser_picture(self) -> None:
        """Draw how often what was found was recalled."""
        self._context.show_picture(self._recalls)

    async def _recalls(self) -> Picture:
        return pictures.recalls(self._found, self._context.shown_time)

    @in_background("embedder")
    async def on_memory_browser_likeness(self) -> None:
        """Have memories embedded from now on, where nothing does; else say how far that is."""
        engine = self._context.engine
        if engine is not None:
            _, _, text = await embed_by(engine, "")
            if text == WORDS_ALONE:
                _, _, text = await embed_by(engine, MINILM)
            if (browser := self._context.showing(MemoryBrowser)) is not None:
                browser.again()
                browser.say(text)

    def on_memory_browser_open(self, memory_id: str) -> None:
        """Read a memory at once: the operator goes from one to the next."""
        self._memory_id = memory_id
        self._answer()

    def _answer(self) -> None:
        if not self._filling:
            self._filling = True
            self._context.settle(self._fill_browser(), "memory browser")

    async def _fill_browser(self) -> None:
        """Answer what the open browser wants to know, until it wants nothing more."""
        try:
            while (
                browser := self._context.showing(MemoryBrowser)
            ) is not None and self._context.engine is not None:
                search, memory = self._search, self._memory_id
                if search is None and not memory:
                    return
                self._search, self._memory_id = None, ""
                if search is not None:
                    browser.show(await self._results(search))
                if memory:
                    await self._show_memory(browser, memory)
        finally:
            self._filling = False

    async def _results(self, search: MemorySearch) -> BrowserModel:
        model = partial(BrowserModel, self._context.agent, search=search)
        engine, state = self._context.engine, self._context.state
        if engine is None or state is None:
            return model(notice=Notice("the workspace is closed", "error"))
        try:
            workflow, _ = await self._read_mind(state.agent_id, root_goal(state))
            if not workflow and not search.everywhere:
                return model(
                    notice=Notice("This agent has no work yet: give it a goal. W looks in all work.")
                )
            asked = {"workflow_id": "" if search.everywhere else workflow, "limit": RESULTS}
            verb = "query_memories"
            more: dict[str, object] = {"sort_by": "created_at"}
            if search.query:
                verb, more = (
                    "hybrid_search_memories",
                    {"query": search.query, "nearest": True, "rewrite": True},
                )
            answer = await engine.recall(verb, {**more, **asked}, as_of=self._context.as_of)
            judged = await self._judged(search.query, str(asked["workflow_id"]))
        except (MemoryFault, JournalError) as error:
            return model(notice=Notice(str(error), "error"))
        memory, hits = engine.memory_status, tuple(answer)
        self._found = hits
        self._asked = (
            {"query": search.query, "workflow_id": str(asked["workflow_id"])} if search.query else {}
        )
        note = ""
        if memory is not None:
            self._note = memory.note
            if search.query:
                note = memory.note if memory.embedder or memory.note else BY_WORDS
            note = answer.note if search.query and answer.note else note
        if search.query and hits and not answer.relevant:
            note = " · ".join(filter(None, ("nothing fits; these are the nearest", note)))
        work = await self._work_named(workflow)
        return model(
            work=work,
            found=memory_views.search_results(
                hits, self._context.shown_time, scored=bool(search.query), judged=judged
            ),
            note=note,
        )

    async def _judged(self, query: str, workflow: str) -> dict[str, bool]:
        """What the operator said of memories as answers to these words."""
        if not query or self._context.engine is None:
            return {}
        judged = await self._context.engine.recall(
            "list_judgements", {"query": query}, as_of=self._context.as_of
        )
        return {one.memory: one.right for one in judged if one.workflow == workflow}

    async def _work_named(self, workflow: str) -> str:
        if not workflow or self._context.engine is None:
            return ""
        asked = {"workflow_id": workflow}
        details = await self._context.engine.recall("get_workflow_details", asked, as_of=self._context.as_of)
        return f"{workflow} {details.title}"

    async def _show_memory(self, browser: MemoryBrowser, ident: str) -> None:
        assert self._context.engine is not None
        try:
            card = await self._context.engine.recall(
                "show_memory", {"memory_id": ident}, as_of=self._context.as_of
            )
        except MemoryNotFound:
            browser.show_detail(None)
            self._context.say(f"{ident} is forgotten", "note")
            return
        except (MemoryFault, JournalError) as error:
            self._context.say(str(error), "error")
            return
        if browser.opened == ident:
            hit = next((one for one in self._found if self._asked and one.memory.id == ident), None)
            browser.show_detail(memory_views.detail(card, self._context.shown_time, hit))

    def on_memory_browser_judge(self, memory_id: str, right: bool) -> None:
        """Keep what the operator says of a memory as an answer to what was looked for."""
        if self._context.refused_in_past():
            return
        if not self._asked:
            self._context.say("look for something first: + and - say whether a memory answers it", "note")
            return
        arguments = {**self._asked, "memory_id": memory_id, "right": right}
        command = cmd.Remember(agent=self._context.agent, verb="judge_memory", arguments=arguments)
        self._context.run(self._written(command), "judgement")

    def on_memory_browser_change(self, memory_id: str, how: str) -> None:
        """Write as the operator; what is forgotten is asked about first."""
        if self._context.refused_in_past():
            return
        if how == "forget":
            self._context.confirm(
                f"Forget {memory_id}?",
                "The agent finds it no more, nor do you; its history stays in the journal.",
                lambda: self._forget(memory_id),
            )
        else:
            self._change_mind(memory_id, how)

    @in_background("memory change", MemoryFault, JournalError)
    async def _change_mind(self, memory_id: str, how: str) -> None:
        if self._context.engine is not None:
            details = await self._context.engine.recall("get_memory_by_id", {"memory_id": memory_id})
            await self._written(change_command(how, memory_id, details.memory.workflow, self._context.agent))

    def _forget(self, memory: str) -> None:
        arguments = {"memory_ids": [memory]}
        command = cmd.Remember(agent=self._context.agent, verb="forget_memories", arguments=arguments)
        self._context.run(self._written(command), "memory change")

    async def _written(self, command: cmd.Remember) -> None:
        """Write, and let the browser show the result."""
        await self._context.submit(command)
        if (browser := self._context.showing(MemoryBrowser)) is not None:
            browser.again()

    @in_background("context", opens=True)
    async def open_context(self) -> None:
        """Show the shares of the last prompt, its words, and what calls took."""
        state = self._context.shown_state()
        sections = await self._metered(state) if state is not None else ()
        if state is not None and self._context.no_dialog:
            self._context.push(ContextDialog(f"Context of {state.agent_id}", sections))

    def on_context_dialog_bring_back(self) -> None:
        """Have the first text that the shown agent's prompt left out in the next one."""
        state = self._context.state
        first = next((each for each in left_out(state) if each.what), None) if state is not None else None
        if (dialog := self._context.showing(ContextDialog)) is not None:
            dialog.dismiss(None)
        if state is None or first is None:
            self._context.say("nothing was left out of the prompt", "note")
        else:
            self._context.send(cmd.RestoreContext(agent=state.agent_id, what=first.what))

    async def _metered(self, state: AgentState) -> tuple[Section, ...]:
        """What the meter shows of an agent; its newest call is read from the journal, not kept here."""
        engine, at = self._context.engine, self._context.past_at
        if engine is None:
            return ()
        past = engine.past(state.agent_id)
        called = await past.newest(ModelCalled, await past.head() if at is None else at)
        if called is None or not isinstance(payload := payload_of(called), ModelCalled):
            return views.context(state)
        return views.context(state, payload, called.at)

    def open_meta(self) -> None:
        """Show what is due and what runs in the background."""
        state = self._context.shown_state()
        if state is not None and self._context.no_dialog:
            self._context.push(MetaDialog(views.metacognition(state, self._context.shown_time)))

    def _look_at_gauges(self) -> None:
        """Bring open gauges up to date."""
        state, dialog = self._context.state, self._context.showing(MetaDialog)
        if dialog is not None and state is not None:
            dialog.show(views.metacognition(state, self._context.shown_time))

    def _task(self, row: str) -> str:
        """The task of a row of the gauges: its own, or its job's; empty where it has none."""
        kind, _, name = row.partition(":")
        jobs = self._context.state.meta.running if self._context.state is not None else ()
        return name if kind == "task" else next((job.task for job in jobs if job.id == name), "")

    def on_meta_dialog_picture(self, _row: str) -> None:
        """Draw how many events each second has, of all agents."""
        self._context.show_picture(self._rate)

    async def _rate(self) -> Picture:
        engine = self._context.engine
        newest = await engine.store.last(pictures.COUNTED) if engine is not None else []
        return pictures.rate(newest, datetime.now(UTC))

    def on_meta_dialog_force(self, row: str) -> None:
        """Do a task now."""
        if task := self._task(row):
            self._context.send(cmd.ForceMeta.model_validate({"agent": self._context.agent, "task": task}))

    def on_meta_dialog_veto(self, row: str) -> None:
        """Keep a task from beginning by itself, or let it again."""
        state = self._context.state
        if state is not None and (task := self._task(row)):
            veto = {"agent": state.agent_id, "task": task, "lifted": task in state.meta.vetoed}
            self._context.send(cmd.VetoMeta.model_validate(veto))

    def on_meta_dialog_cancel(self, row: str) -> None:
        """Cut a background job off: that of the row, or the task's running one."""
        jobs = self._context.state.meta.running if self._context.state is not None else ()
        for job in jobs:
            if row in (f"job:{job.id}", f"task:{job.task}"):
                self._context.send(cmd.CancelBackground(agent=self._context.agent, job=job.id))
                return
