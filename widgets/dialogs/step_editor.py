"""The step editor: tool, command and arguments of a step, checked as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from engine.value import dataclass, field
from widgets.base.dialog import BoxDialog, show_problems
from widgets.base.text_layout import visible

Check = Callable[[str, str, str], list[str]]
"""Takes tool, command and the arguments' text, and gives what is wrong with them, in sentences."""


@dataclass(frozen=True, slots=True)
class StepDraft:
    """The step as it is before the edit."""

    title: str
    """What the box is called, such as `Edit step 4: run pip install httpx`."""
    tool: str = ""
    command: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepEdit:
    """The step as the operator wants it."""

    tool: str
    command: str
    args: dict[str, Any]


class StepEditor(BoxDialog[StepEdit | None]):
    """Gives a `StepEdit`, or None when the operator changed nothing or gave up.

    Args:
        draft: the step.
        check: says what is wrong with what is typed.
        typed: what was typed before and could not be saved.
        refused: why that was so.
    """

    HINT = "ctrl+s save · tab next field · ctrl+e your editor · esc cancel"

    _tool = getters.query_one("#tool", Input)
    _command = getters.query_one("#command", Input)
    _args = getters.query_one("#args", TextArea)
    _problems = getters.query_one("#problems", Static)

    def __init__(
        self, draft: StepDraft, check: Check, typed: StepEdit | None = None, refused: str = ""
    ) -> None:
        super().__init__()
        self._draft, self._typed, self._refused = draft, typed, refused
        self._check = check
        self._warned = False
        self._before = (visible(draft.tool), visible(draft.command), args_text(draft.args))

    def compose(self) -> ComposeResult:
        """Tool and command side by side, the arguments, and what is wrong."""
        tool, command, args = self._before
        if self._typed is not None:
            tool, command, args = self._typed.tool, self._typed.command, args_text(self._typed.args)
        self._given = tool, command, args
        fields = Horizontal(
            Vertical(_label("tool"), Input(tool, id="tool")),
            Vertical(_label("command"), Input(command, id="command")),
        )
        area = TextArea(args, id="args", tab_behavior="focus")
        problems = Static(id="problems", classes="-problems")
        parts = (fields, _label("arguments, as a JSON object"), area, problems)
        yield self.box(*parts, title=self._draft.title)

    def on_mount(self) -> None:
        """The arguments are what is changed most."""
        self._args.focus()
        self._show_problems(self.problems())

    def problems(self) -> list[str]:
        """What is wrong with the step as it stands; empty when it can be saved."""
        tool, command, text = self._tool.value.strip(), self._command.value.strip(), self._args.text
        try:
            parse_args(text)
        except ValueError as error:
            return [str(error)]
        return self._check(tool, command, text)

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._warned, self._refused = False, self._refused if self._values() == self._given else ""
        self._show_problems(self.problems())

    def _show_problems(self, problems: list[str]) -> None:
        show_problems(self._problems, [*filter(None, [self._refused]), *problems], "can be saved")

    def action_save(self) -> None:
        """Save if nothing is wrong."""
        if problems := self.problems():
            self._show_problems(problems)
            return
        edit = StepEdit(self._tool.value.strip(), self._command.value.strip(), parse_args(self._args.text))
        self.dismiss(edit if self._values() != self._before else None)

    def action_close(self) -> None:
        """Give up; with unsaved changes the first escape only warns."""
        if self._values() != self._before and not self._warned:
            self._warned = True
            wrong = self.problems()[:1]
            saves = f"ctrl+s cannot save them: {wrong[0]}" if wrong else "ctrl+s saves them."
            self._problems.update(Content(f"! Unsaved changes: esc again drops them, {saves}"))
            return
        self.dismiss(None)

    def _values(self) -> tuple[str, str, str]:
        return self._tool.value, self._command.value, self._args.text


def _label(text: str) -> Static:
    return Static(Content(text), classes="-label")


def args_text(args: Mapping[str, Any]) -> str:
    """Arguments as indented JSON; characters that cannot be seen are escaped and survive unchanged."""
    text = json.dumps(dict(args), ensure_ascii=False, indent=2, default=str)
    return "\n".join(visible(line) for line in text.split("\n"))


def parse_args(text: str) -> dict[str, Any]:
    """The arguments of a JSON text; an empty text means none.

    Raises:
        ValueError: it is not JSON, or not an object; says where and what to do.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"this is no valid JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except RecursionError as error:
        raise ValueError("the arguments are nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError('the arguments must be one JSON object, such as {"path": "main.py"}')  # noqa: TRY004
    return value
