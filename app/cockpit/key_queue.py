"""Keys in their order: each goes to what was there when it was pressed, or to what the one before opened."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea

from engine.value import dataclass

Answer = TypeVar("Answer")
Typed = events.Key | events.Paste
Place = tuple[Screen[Any], Widget | None]
PASSES = 4
"""How often messages are followed from the focus up to the app: a key, what its action posts, and so on."""
HOLD_S = 20.0
"""How long keys wait at most for what the one before them opens."""
LOOK_S = 0.02


@dataclass(eq=False, slots=True)
class _Hold:
    """Work that a key began and that the keys behind it wait for."""

    over: asyncio.Event
    before: Place | None
    """Screen and focus as it began, where it is to change them."""


class KeyQueue:
    """Hands on what is typed: the next key once what the one before it does has come to its end.

    Args:
        app: whose keys they are.
        deliver: gives a key to what has the focus.
        dropped: says how many keys were dropped, as what they were typed for did not open.
    """

    def __init__(
        self, app: App[Any], deliver: Callable[[Typed], Awaitable[None]], dropped: Callable[[int], None]
    ) -> None:
        self._app = app
        self._deliver = deliver
        self._dropped = dropped
        self._waiting: deque[Typed] = deque()
        self._holds: list[_Hold] = []
        self._settling: asyncio.Task[None] | None = None
        self._writing = False
        """Whether text was handed on that may still be on its way into its field."""
        self._shown: Screen[Any] | None = None
        """The screen that is known to be drawn and to have its focus."""

    @property
    def idle(self) -> bool:
        """Whether all that was typed has been handed on, and done as far as keys wait for it."""
        return not self._app.is_running or (self._settling is None and not self._waiting)

    @property
    def waits(self) -> bool:
        """Whether something was typed that could not be handed on yet."""
        return bool(self._waiting)

    def is_early(self, event: events.Event) -> bool:
        """Whether an event is older than what it would go to, which opened by itself."""
        return getattr(self._app.screen, "deaf_until", 0.0) > event.time

    async def take(self, typed: Typed) -> None:
        """Take a key in the app's message loop, and hand it on as soon as it is its turn."""
        self._waiting.append(typed)
        if self._settling is None:
            await self._go_on()

    async def hold(self, work: Awaitable[Answer], *, opens: bool = False) -> Answer:
        """Do some work that a key began; those behind it wait until it has ended.

        Args:
            work: what is awaited.
            opens: whether it opens something: keys that were typed for that mean nothing where it does not,
                unless they are those of an open dialog, which takes them as before.
        """
        place = self._app.screen, self._app.focused
        hold = _Hold(asyncio.Event(), place if opens and len(self._app.screen_stack) == 1 else None)
        self._holds.append(hold)
        try:
            return await work
        finally:
            hold.over.set()

    async def _go_on(self) -> None:
        """Hand on what waits, up to a key that the rest has to wait for."""
        self._settling = None
        while self._waiting and self._settling is None:
            if (self._writing and not self._is_text(self._waiting[0])) or self._app.screen is not self._shown:
                self._settle(self._app.focused)
                return
            typed = self._waiting.popleft()
            if self.is_early(typed):
                self._app.screen.refuse_early_key()  # type: ignore[attr-defined]
                continue
            self._writing, target = self._is_text(typed), self._app.focused
            await self._deliver(typed)
            if not self._writing:
                self._settle(target)

    def _is_text(self, typed: Typed) -> bool:
        """Whether a key is a letter of the field that has the focus, so that the next one need not wait."""
        field = self._app.focused
        return (
            isinstance(field, Input | TextArea)
            and isinstance(typed, events.Key)
            and typed.is_printable
            and field.check_consume_key(typed.key, typed.character)
        )

    def _settle(self, target: Widget | None) -> None:
        self._writing = False
        self._settling = asyncio.create_task(self._follow(target))

    async def _follow(self, target: Widget | None) -> None:
        """Wait until what was handed on is done, and what that opened is there."""
        holds: list[_Hold] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_S):
                while True:
                    for _ in range(PASSES):
                        await self._pass(target or self._app.focused or self._app.screen)
                        target = None
                    if self._holds:
                        await self._holds[0].over.wait()
                        holds.append(self._holds.pop(0))
                    elif self._app.screen is self._shown or await self._is_shown(self._app.screen):
                        break
        holds, self._holds = [*holds, *self._holds], []
        place = self._app.screen, self._app.focused
        if self._waiting and any(hold.before == place for hold in holds):
            self._drop()
        self._app.call_later(self._go_on)

    def _drop(self) -> None:
        """Drop what was typed for something that did not open, up to the escape that would have left it."""
        before = len(self._waiting)
        while self._waiting and getattr(self._waiting.popleft(), "key", "") != "escape":
            pass
        self._dropped(before - len(self._waiting))

    async def _pass(self, pump: MessagePump | None) -> None:
        """Wait for all messages that are under way from a widget up to the app."""
        while pump is not None:
            await self._reached(pump, pump.call_later)
            pump = pump._parent

    async def _is_shown(self, screen: Screen[Any]) -> bool:
        """Wait until a screen is drawn and has its focus; False where another one came meanwhile."""
        await self._reached(screen, screen.call_after_refresh, lambda: screen is self._app.screen)
        if screen is self._app.screen:
            self._shown = screen
        return screen is self._shown

    async def _reached(
        self,
        pump: MessagePump,
        call: Callable[[Callable[[], None]], object],
        goes_on: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait until something is called by a message loop, as long as that runs or `goes_on`."""
        done = asyncio.Event()
        call(done.set)
        while not done.is_set() and (pump.is_running or goes_on()):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await done.wait()
