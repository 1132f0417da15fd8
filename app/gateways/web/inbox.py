"""What the page for a phone shows, kept up to date by one client of the engine; and answers to it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import Field

from app.gateways.addresses import AddressError
from app.gateways.answers import Arguments, validated
from app.gateways.engine_client import EngineClient, EngineLostError
from app.gateways.protocol import ProtocolError
from app.gateways.web.guard import RefusedError
from app.gateways.web.tokens import Token
from app.projection.steering_views import arguments, consequences
from engine.core.agents import RunState
from engine.core.text import clean, clean_line
from engine.inquiry.inbox import NeedKind

UNUSABLE = (AddressError, ProtocolError, EngineLostError)
OPERATOR = "web"
"""In whose name the server itself looks, and records what it refused."""
QUIET_S = 0.5
"""How often what is shown may change."""
WANTED_S = 40.0
"""How long after a page was there the engine is still followed."""
AGAIN_S = 2.0
NEEDS, AGENTS = 50, 100
"""How many are shown."""
TEXT = 20_000
"""Characters of a call that are shown; one that has more is not allowed from here."""


class Answering(Arguments):
    """An answer to something that waits, as it was shown."""

    agent: str = Field(max_length=64)
    kind: str = Field(max_length=64)
    thing: str = Field(max_length=128)
    event: str = Field(default="", max_length=128)
    allow: bool = False
    option: int = Field(default=0, ge=0, le=64)
    text: str = Field(default="", max_length=2_000)
    """Why it is denied, or the answer to a question."""


class Stopping(Arguments):
    """An agent to stop; empty for all."""

    agent: str = Field(default="", max_length=64)


class Inbox:
    """What waits for the operator, for all pages that are open.

    Args:
        workspace: its directory.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._client: EngineClient | None = None
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._dirty, self._open_page = asyncio.Event(), asyncio.Event()
        self._wanted = 0.0
        self._changed = asyncio.Condition()
        self._opening = asyncio.Lock()
        self.version = 0
        """Counts the changes of what is shown."""
        self.shown: dict[str, Any] = {"workspace": clean_line(workspace.name), "lost": "connecting"}

    async def run(self) -> None:
        """Follow the engine until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            while True:
                await self._dirty.wait()
                self._dirty.clear()
                await self._refresh()
                await asyncio.sleep(QUIET_S)

    async def _refresh(self) -> None:
        try:
            await self._show(await self._look(await self._connected()))
        except UNUSABLE as error:
            await self._show({"lost": clean_line(str(error), limit=300)})

    async def want(self) -> None:
        """A page is there: what is shown is now, and kept up for a while."""
        self._wanted = asyncio.get_running_loop().time() + WANTED_S
        if not self._open_page.is_set():
            self._open_page.set()
            await self._refresh()

    async def _follow(self) -> None:
        """Follow the engine's events while pages are there; it has no work with this else."""
        loop = asyncio.get_running_loop()
        while True:
            await self._open_page.wait()
            self._dirty.set()
            with suppress(*UNUSABLE):
                client = await self._connected()
                async for _event in client.events((await client.ask("head"))["seq"]):
                    if loop.time() > self._wanted:
                        self._open_page.clear()
                        break
                    self._dirty.set()
            await asyncio.sleep(AGAIN_S)

    async def close(self) -> None:
        """End the connection."""
        if self._client is not None:
            await self._client.close()

    async def _connected(self) -> EngineClient:
        """The connection that only looks."""
        async with self._opening:
            if self._client is None or self._client.ended:
                before, self._client = self._client, await self._open(OPERATOR, watch=True)
                if before is not None:
                    await before.close()
        return self._client

    async def _open(self, operator: str, *, watch: bool = False) -> EngineClient:
        client = await EngineClient.open(self._workspace, operator, watch=watch)
        if client is None:
            raise EngineLostError("the engine has ended")
        return client

    async def submit(self, operator: str, command: dict[str, Any]) -> dict[str, Any]:
        """Have a command carried out in the name of a token, on a connection of its own; the receipt.

        Raises:
            AddressError, ProtocolError, EngineLostError: the engine cannot be used, or refuses.
        """
        client = await self._open(operator)
        try:
            receipt: dict[str, Any] = await client.ask("submit", command=command)
        finally:
            await client.close()
        return receipt

    async def next(self, version: int) -> None:
        """Wait until something else is shown than at a version."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.version != version)

    async def _show(self, shown: dict[str, Any]) -> None:
        shown = {"workspace": self.shown["workspace"], **shown}
        if shown != self.shown:
            self.shown = shown
            async with self._changed:
                self.version += 1
                self._changed.notify_all()

    # -------------------------------------------------------------- what is shown

    async def _look(self, client: EngineClient) -> dict[str, Any]:
        agents, needs = await client.ask("agents"), await client.ask("inbox")
        rows = [await self._need(client, need) for need in needs[:NEEDS]]
        self._rows = {(row["agent"], row["event"]): row for row in rows}
        return {
            "agents": [_agent(row) for row in agents[:AGENTS]],
            "needs": rows,
            "more": max(0, len(needs) - NEEDS),
        }

    async def _need(self, client: EngineClient, need: dict[str, Any]) -> dict[str, Any]:
        row = {name: need.get(name, "") for name in ("agent", "kind", "thing", "since", "event", "until")}
        row |= {"what": clean_line(need["what"]), "urgent": need["urgent"]}
        row["options"] = [clean_line(option, limit=200) for option in need.get("options", ())]
        if need["kind"] != NeedKind.APPROVAL:
            return row
        before = self._rows.get((row["agent"], row["event"]))
        if before is not None and "text" in before:
            return {**row, **{name: before[name] for name in ("title", "text", "cut", "notes")}}
        with suppress(KeyError):
            state = await client.view(need["agent"])
            question = state.approvals.question
            if question is not None and question.event == need["event"]:
                text = arguments(question.call)
                notes = [clean(note, limit=2_000) for note in consequences(state, question)]
                row |= {
                    "title": clean_line(question.call.name),
                    "text": clean(text, limit=TEXT),
                    "notes": notes,
                }
                row["cut"] = len(text) > TEXT
        return row

    # -------------------------------------------------------------- answers

    async def answer(self, token: Token, given: dict[str, Any]) -> str:
        """Answer what waits, in the name of a token; in words what that led to.

        Raises:
            RefusedError: it cannot be answered so, or does not wait any more.
            AddressError, ProtocolError, EngineLostError: the engine cannot be used.
        """
        answer: Answering = validated(Answering, given, "answer")
        command: dict[str, Any]
        if answer.kind == NeedKind.APPROVAL:
            await self._check_shown(answer)
            command = {"do": "answer_approval", "action": answer.thing, "allow": answer.allow}
            command |= {} if answer.allow else {"reason": answer.text}
        elif answer.kind == NeedKind.REQUEST and not answer.option and not answer.text.strip():
            raise RefusedError(400, "answer.empty", "choose an answer or write one")
        elif answer.kind == NeedKind.REQUEST:
            option = str(answer.option) if answer.option else ""
            command = {"do": "crew_answer", "request": answer.thing, "option": option, "text": answer.text}
        else:
            raise RefusedError(400, "answer.kind", "this is answered in the cockpit")
        agent = "" if answer.kind == NeedKind.REQUEST else answer.agent
        return await self._carry_out(token, {**command, "agent": agent})

    async def _check_shown(self, answer: Answering) -> None:
        """See that what is answered is what was shown; of what waits no more the engine says who answered."""
        same = (NeedKind.APPROVAL, answer.agent, answer.thing)
        for need in await (await self._connected()).ask("inbox"):
            if (need["kind"], need["agent"], need["thing"]) == same:
                if need["event"] != answer.event:
                    raise RefusedError(409, "answer.late", "something else is asked now: look again")
                shown = self._rows.get((answer.agent, answer.event))
                if answer.allow and (shown is None or shown.get("cut", True)):
                    words = "it is too long to be seen whole here: use the cockpit"
                    raise RefusedError(403, "answer.cut", words)

    async def stop(self, token: Token, given: dict[str, Any]) -> str:
        """Stop an agent, or all. Errors as for `answer`."""
        agent = validated(Stopping, given, "stop").agent
        return await self._carry_out(
            token, {"do": "stop", "agent": agent, "scope": "agent" if agent else "all"}
        )

    async def _carry_out(self, token: Token, command: dict[str, Any]) -> str:
        receipt = await self.submit(token.name, command)
        self._dirty.set()
        if not receipt["ok"]:
            raise RefusedError(409, "engine", clean_line(receipt["message"]))
        return clean_line(receipt["message"])


def _agent(row: dict[str, Any]) -> dict[str, Any]:
    """An agent as it is shown."""
    about = clean_line(row["fault"] or (row.get("waits") or {}).get("what", ""), limit=300)
    run = row.get("run", "")
    words = " · ".join(filter(None, (run, f"${row.get('cost_usd', 0.0):.2f}", about)))
    shown = {"agent": row["agent"], "goal": clean_line(row.get("goal", ""), limit=300), "about": words}
    return {**shown, "stops": bool(run) and run != RunState.STOPPED.value}
