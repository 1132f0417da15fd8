"""Programs laid out: one step a line, four columns a block, the same spaces everywhere.

Words, comments, blank lines and line breaks inside of formulas stay.
"""

from __future__ import annotations

import re

from engine.bdi.errors import ProgramError
from engine.bdi.expressions import BINARY, END, NAME, NUMBER, TOKEN, VARIABLE, WORDS
from engine.bdi.parser import read_program

_PREFIXES = {"!", "!!", "?", "^", "~", "@", "::"}
_SIGNS = {"+", "-"}
_OPERANDS = {NAME, VARIABLE, NUMBER, "string", "quoted", ")", "]"}
"""What an operator may stand behind."""
_SPACED = {*BINARY, ":-", "|&|", "|||", "<-", ":"}
_INDENT = "    "
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def formatted(text: str, source: str = "") -> str:
    """The program laid out.

    Raises:
        ProgramError: it cannot be read.
        ValueError: it would become another program.
    """
    program, problems = read_program(text, source)
    if problems:
        raise ProgramError(problems)
    laid_out = _Layout(text).text()
    if read_program(laid_out, source) != (program, ()):  # comparing passes places over
        raise ValueError("it stays as it is: laid out, it would be another program")
    return laid_out


class _Layout:
    """Writes token by token."""

    def __init__(self, text: str) -> None:
        self.whole = text
        self.lines: list[str] = []
        self.line = ""
        self.brackets: list[str] = []
        """Open brackets; `{;` for one around steps."""
        self.before = ""
        """Kind of the token before."""
        self.prefix = False
        """Whether that one was a sign, which has no space behind it."""
        self.in_body = False
        self.labelled = False
        """Whether a trigger is to come behind a label."""

    def text(self) -> str:
        """The whole."""
        at = 0
        while (match := TOKEN.match(self.whole, at)) is not None:
            kind = match.lastgroup or END
            start, at = match.start(kind), match.end()
            self.gap(self.whole[match.start() : start])
            if kind == END:
                break
            written = match[0][start - match.start() :]
            if written == "//@":
                at = self.whole.find("\n", at)
                at = len(self.whole) if at < 0 else at
                self.comment(self.whole[start:at])
                continue
            goal = kind == "mark" and self.whole.startswith(("!", "?"), at)
            self.token(written if kind == "mark" or written in WORDS else kind, written, goal=goal)
        self.end_line()
        return "\n".join(self.lines).strip("\n") + "\n"

    def end_line(self) -> None:
        """Begin a new line."""
        if self.line.strip():
            self.lines.append(self.line.rstrip())
        self.line = ""

    def resume(self) -> None:
        """Write on in the line above where this one is empty, unless that one ends with a comment."""
        if self.line:
            return
        while self.lines and not self.lines[-1]:
            self.lines.pop()
        if self.lines and "//" not in self.lines[-1]:
            self.line = self.lines.pop()

    def depth(self) -> int:
        """Blocks and the body around the present place; a clause that goes on lies one deeper."""
        blocks = self.brackets.count("{;") + self.in_body
        return blocks + (bool(self.before) and not self.at_start())

    def at_start(self) -> bool:
        """Whether a clause or a step begins here."""
        return self.in_steps() and self.before in ("", ";", "<-", "{;", "};", "@")

    def gap(self, text: str) -> None:
        """Take what stands between two tokens: comments stay, a blank line stays between clauses."""
        at = 0
        for match in _COMMENT.finditer(text):
            space, at = text[at : match.start()], match.end()
            self.space(space)
            self.comment(match[0], beside="\n" not in space)
        self.space(text[at:])

    def space(self, text: str) -> None:
        """Take line breaks: a blank line before a clause or step stays, and a break inside of a formula."""
        if not self.at_start():
            if "\n" in text and self.before:
                self.end_line()
        elif text.count("\n") > 1:
            self.end_line()
            self.lines += [""] * (bool(self.lines) and bool(self.lines[-1]))

    def comment(self, text: str, *, beside: bool = False) -> None:
        """A comment on a line of its own, or behind what stands there."""
        if beside and not self.line.strip() and self.lines and self.lines[-1]:
            self.line = self.lines.pop()
        elif not beside:
            self.end_line()
        self.line = (self.line.rstrip() + " " if self.line.strip() else _INDENT * self.depth()) + text.strip()
        self.end_line()

    def token(self, kind: str, text: str, *, goal: bool) -> None:
        """Write a token, which may stand right before that of a goal; begin a new line where one belongs."""
        opens_block = kind == "{" and self.before in (")", NAME) and self.in_body and self.in_steps()
        if kind == "}" and self.brackets[-1:] == ["{;"]:
            self.brackets.pop()
            self.end_line()
            self.before, kind = "", "};"
        elif kind in (")", "]", "}") and self.brackets:
            self.brackets.pop()
        follows = text in ("else", "elif", ";", ".", "|&|", "|||") or kind in (")", "}")
        if self.before == "};":
            self.resume() if follows else self.end_line()
        if self.labelled and kind in ("+", "-", "^") and not self.brackets:
            self.end_line()
            self.before, self.labelled = "", False
        self.labelled = self.labelled or (kind == "@" and not self.before)
        sign = kind in _PREFIXES or (kind in _SIGNS and (self.before not in _OPERANDS or goal))
        if kind in ("<-", "."):
            self.resume()
        if not self.line:
            self.line = _INDENT * self.depth()
        elif self.spaced(kind, text):
            self.line += " "
        self.line += text
        self.prefix, self.before = sign, kind
        self.after(kind, opens_block)

    def in_steps(self) -> bool:
        """Whether no bracket is open but those around steps."""
        return not self.brackets or self.brackets[-1] == "{;"

    def after(self, kind: str, opens_block: bool) -> None:
        """What a token changes for those behind it."""
        if opens_block:
            self.brackets.append("{;")
            self.before = "{;"
            self.end_line()
        elif kind in ("(", "[", "{"):
            self.brackets.append(kind)
        elif kind == "<-" and not self.brackets:
            self.in_body = True
            self.end_line()
        elif kind == ";" and self.in_steps():
            self.end_line()
        elif (kind == "." and not self.brackets) or (kind == "}" and not self.brackets and not self.in_body):
            self.in_body, self.before = False, ""
            self.end_line()

    def spaced(self, kind: str, text: str) -> bool:
        """Whether a space stands before a token."""
        before = self.before
        if self.prefix or before in ("(", "[", "::") or kind in (",", ";", ".", ")", "]", "::"):
            return False
        if "|" in (kind, before) and self.brackets[-1:] == ["["]:
            return False
        if kind == "(":
            return before in (*_SPACED, "not", ",", ";", "{") or self.line.endswith(
                ("if", "while", "for", "elif")
            )
        return not (kind == "[" and before in _OPERANDS)
