"""Programs, plans and terms read from text; every clause that can be read is, and every problem is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from engine.bdi.errors import Position, ProgramError, SyntaxProblem
from engine.bdi.expressions import (
    END,
    NAME,
    NUMBER,
    RELATION,
    STRING,
    VARIABLE,
    ExpressionParser,
    Lines,
    Tokens,
    UnexpectedError,
    unescaped,
)
from engine.bdi.mends import mend
from engine.bdi.patterns import PATTERNS, expanded
from engine.bdi.printer import text_of
from engine.bdi.syntax import (
    DEFAULT_SPACE,
    RULE_MARK,
    SPACE_MARK,
    Belief,
    Body,
    BodyItem,
    Doc,
    DocKind,
    For,
    Goal,
    If,
    Include,
    Plan,
    Program,
    Rule,
    Step,
    StepKind,
    Subject,
    Trigger,
    TriggerKind,
    While,
    body_term,
    event_term,
    plan_term,
    step_kind,
)
from engine.bdi.terms import FALSE, TRUE, Struct, Term, Var

PROBLEM_LIMIT = 200
"""Problems reported for one text; a file of rubbish has no end of them."""

T = TypeVar("T")


class Parser(ExpressionParser):
    """Reads clauses."""

    def __init__(
        self, text: str, source: str, start: int = 0, stop: int | None = None, space: str = ""
    ) -> None:
        super().__init__(Tokens(text, start, stop))
        self.source = source
        self.module = self.space = space
        self.spaces = [space]
        """Namespaces of the blocks around the present clause, the innermost last."""
        self.patterns: list[tuple[int, Struct, int] | None] = []
        """Of each block the pattern, where it stands and how many plans were before; None for a namespace."""
        self.lines = Lines(text)
        self.problems: list[SyntaxProblem] = []
        self.knowledge: list[Belief | Rule] = []
        self.goals: list[Goal] = []
        self.plans: list[Plan] = []
        self.docs: list[Doc] = []
        self.includes: list[Include] = []

    def place(self) -> Position:
        """Where the present token stands."""
        return self.lines.at(self.offsets[self.at])

    def add_problem(self, error: UnexpectedError) -> None:
        """Note a problem at the present token."""
        place = self.place()
        above = self.lines.at(self.offsets[self.at - 1]).line if self.at else place.line
        result = error.found or self.found()
        hint = (
            ""
            if error.found
            else mend(self.kinds, self.texts, self.at, error.expected, above if above < place.line else 0)
        )
        written = self.lines.around(self.tokens.text, place)
        problem = SyntaxProblem(self.source, *place, error.expected, result, hint, written)
        self.problems.append(problem)

    def program(self) -> Program:
        """Read to the end, going on behind the next full stop after each problem."""
        while not self.at_end() and len(self.problems) < PROBLEM_LIMIT:
            self.anonymous = self.depth = 0
            self.space = self.spaces[-1]
            try:
                self._clause()
            except UnexpectedError as error:
                self.add_problem(error)
                self._recover(error)
        if len(self.spaces) > 1:
            self.add_problem(UnexpectedError("'{end}' behind '{begin namespace(…)}'"))
        for start, stop in self.tokens.docs:
            self._doc(start, stop)
        return Program(
            tuple(self.knowledge),
            tuple(self.goals),
            tuple(self.plans),
            tuple(self.docs),
            tuple(self.includes),
            self.source,
        )

    def _recover(self, error: UnexpectedError) -> None:
        """Go on behind the next full stop, or at a new line where only the full stop was missing."""
        line = self.place().line
        if "'.'" in error.expected and self.at and self.lines.at(self.offsets[self.at - 1]).line < line:
            return
        while not self.at_end() and not self.take("."):
            self.at += 1

    def _clause(self) -> None:
        kind = self.kinds[self.at]
        position = self.place()
        if kind in (NAME, "~", SPACE_MARK):
            literal = self.literal()
            if self.take(":-"):
                rule = Rule(literal, self.expression(expected="a formula"), position)
                self.expect(".")
                self.knowledge.append(rule)
            else:
                self.expect(".", "':-' or '.'")
                self.knowledge.append(Belief(literal, position))
        elif kind in ("!", "?"):
            self.at += 1
            goal = Goal(TriggerKind(kind), self.literal("a goal"), position)
            self.expect(".")
            self.goals.append(goal)
        elif kind in ("@", "+", "-", "^"):
            plan = self.plan()
            self.expect(".", "';' or '.'" if plan.body else "':', '<-' or '.'")
            self.plans.append(plan)
        elif kind == "{":
            self._directive(position)
        else:
            raise UnexpectedError("a belief, a rule, a goal or a plan")

    def _directive(self, position: Position) -> None:
        self.at += 1
        if self.kinds[self.at] in ("@", "+", "-", "^"):
            raise UnexpectedError(_DIRECTIVES, "plans inside of a plan, which are left out here")
        self.space = ""
        name = self.expect(NAME, _DIRECTIVES)
        begins = name == "begin"
        if name == "end" and self.patterns:
            self._end_block()
        elif name == "include":
            self._include(position)
        elif name == "register_function":
            self._function()
        elif name == "namespace" or (begins and self.texts[self.at] == "namespace"):
            self.at += begins
            space = self._namespace()
            if begins:
                self.spaces.append(space)
                self.patterns.append(None)
                self.module = space
        elif begins:
            start = self.at
            if self.texts[start] not in PATTERNS:
                raise UnexpectedError(f"'namespace' or one of the patterns {', '.join(sorted(PATTERNS))}")
            self.spaces.append(self.module)
            self.patterns.append((start, self.literal(), len(self.plans)))
        else:
            self.at -= 1
            raise UnexpectedError(_DIRECTIVES)
        self.expect("}")
        self.take(".")

    def _end_block(self) -> None:
        """Leave a namespace, or put what a pattern makes of its plans in their place."""
        self.spaces.pop()
        self.module = self.spaces[-1]
        block = self.patterns.pop()
        if block is None:
            return
        start, pattern, first = block
        try:
            made = expanded(pattern, self.plans[first:], self._plans_of)
        except ValueError as error:
            self.at = start
            raise UnexpectedError(str(error)) from None
        self.plans[first:] = [replace(plan, source=self.source) for plan in made]
        if pattern.functor == "mg" and isinstance(goal := pattern.args[0], Struct):
            self.knowledge.append(Belief(goal, self.lines.at(self.offsets[start])))

    def _plans_of(self, text: str) -> tuple[Plan, ...]:
        inner = Parser(text, self.source)
        program = inner.program()
        if inner.problems:
            raise ValueError(f"arguments that are literals: {inner.problems[0]}")
        place = self.place()
        return tuple(replace(plan, position=place) for plan in program.plans)

    def _include(self, position: Position) -> None:
        self.expect("(")
        path = unescaped(self.expect(STRING, "a file name in quotes"))
        space = self.expect(NAME, "a namespace") if self.take(",") else self.spaces[-1]
        self.expect(")")
        self.includes.append(Include(path, position, space))

    def _namespace(self) -> str:
        """Read `(name)` or `(name, local)`; a local one is called otherwise outside of a module."""
        self.expect("(")
        name = self.expect(NAME, "a namespace")
        if self.take(","):
            if self.texts[self.at] not in ("local", "global"):
                raise UnexpectedError("'local' or 'global'")
            if self.expect(NAME) == "local" and self.module:
                self.locals[name] = f"{self.module}__{name}"
        self.expect(")")
        return self.locals.get(name, "" if name == DEFAULT_SPACE else name)

    def _function(self) -> None:
        """Read `("function", arguments, "rule")`."""
        self.expect("(")
        name = unescaped(self.expect(STRING, "the name of a function in quotes"))
        if self.kinds[self.at] == ")":
            raise UnexpectedError("',', a number of arguments and a rule", f"the Java class '{name}'")
        self.expect(",")
        count = self.expect(NUMBER, "a number of arguments")
        self.expect(",")
        rule = unescaped(self.expect(STRING, "the name of a rule in quotes"))
        self.expect(")")
        self.functions[name, int(float(count))] = rule

    def plan(self) -> Plan:
        """Read a plan, without what ends it."""
        position = self.place()
        label = self._label() if self.take("@") else None
        return Plan(*self._behind_label(), label, position, self.source)

    def _behind_label(self) -> tuple[Trigger, Term, Body]:
        trigger = self.trigger()
        context = self.expression() if self.take(":") else TRUE
        position = self.place()
        until = self.expression() if self.take("<:") else None
        body = self.body() if self.take("<-") else ()
        if until is not None:
            # The body, and then nothing, until the goal's condition holds.
            waits = [(_wait(until, position),), (*body, _wait(FALSE, position))]
            fork = Struct(".fork", (Struct("any"), *map(body_term, waits)))
            body = (Step(StepKind.INTERNAL, fork, position),)
        return trigger, context, body

    def _label(self) -> Struct:
        start = self.at
        self.space, before = "", self.space
        label = Struct("", (), self.annotations()) if self.kinds[start] == "[" else self.literal("a label")
        self.space = before
        for note in label.annotations:
            if not isinstance(note, Struct) or note.functor != "priority":
                continue
            if len(note.args) != 1 or not isinstance(note.args[0], int | float):
                self.at = start
                raise UnexpectedError("a number in 'priority(…)'", f"'{text_of(note)}'")
        return label

    def quoted(self) -> tuple[Term, ...]:
        """Read the inside of `{ … }`: an event, a plan, a body or a rule."""
        start = self.at
        if self.take("}"):
            return ()
        try:
            quoted = self._quoted_plan()
            self.expect("}")
        except UnexpectedError:
            far, self.at = self.at, start
            try:
                quoted = self._quoted_body()
                self.expect("}")
            except UnexpectedError:
                self.at = max(far, self.at)
                raise
        return quoted

    def _quoted_plan(self) -> tuple[Term, ...]:
        label: Struct | Var | None = None
        if self.take("@"):
            label = self._target("a label") if self.kinds[self.at] == VARIABLE else self._label()
        trigger, context, body = self._behind_label()
        if label is None and context == TRUE and not body:
            return event_term(trigger).args
        return plan_term(label, trigger, context, body).args

    def _quoted_body(self) -> tuple[Term, ...]:
        body = self.body()
        if len(body) == 1 and isinstance(body[0], Step) and self.take(":-"):
            return (RULE_MARK, body[0].term, self.expression(expected="a formula"))
        return body_term(body).args

    # ------------------------------------------------------------------ bodies

    def body(self) -> Body:
        """Read steps separated by `;`; behind a block it may be left out, and one may stand at the end."""
        items = [self._forked()]
        while self.take(";") or isinstance(items[-1], If | While | For):
            if self.kinds[self.at] in (".", "}", END):
                break
            items.append(self._forked())
        return tuple(items)

    def _forked(self) -> BodyItem:
        """An item, or several with `|&|` or `|||` between them."""
        position = self.place()
        item = self._item()
        while (operator := self.kinds[self.at]) in _FORKS:
            items = [item]
            while self.take(operator):
                items.append(self._item())
            args = (Struct(_FORKS[operator]), *(body_term((item,)) for item in items))
            item = Step(StepKind.INTERNAL, Struct(".fork", args), position)
        return item

    def _item(self) -> BodyItem:
        position = self.place()
        kind = self.kinds[self.at]
        if kind == NAME and self.kinds[self.at + 1] == "(":
            match self.texts[self.at]:
                case "if":
                    return self._if(position)
                case "while":
                    return While(self._condition(), self._block(), position)
                case "for":
                    return For(self._condition(), self._block(), position)
        if kind == "(" and self.kinds[self.at + 1] in _SIGNS:
            self.at += 1
            self.deeper()
            steps = self.body()
            self.expect(")")
            self.depth -= 1
            return steps[0] if len(steps) == 1 else Step(StepKind.CONSTRAINT, body_term(steps), position)
        if kind in _SIGNS:
            self.at += 1
            if kind in "+-" and self.kinds[self.at] == "{":
                action = ".add_plan" if kind == "+" else ".remove_plan"
                return Step(StepKind.INTERNAL, Struct(action, (self.primary(),)), position)
            if kind in "+-" and (second := self.kinds[self.at]) in "+-<>" and f"{kind}{second}" in _APART:
                self.at += 1
                return Step(_APART[f"{kind}{second}"], self._target("a belief"), position)
            return Step(StepKind(kind), self._operand(kind), position)
        term = self.expression(expected="a step")
        return Step(step_kind(term), term, position)

    def _operand(self, kind: str) -> Term:
        if kind == "?":
            return self.expression(RELATION, "a belief to ask for")
        return self._target("a belief" if kind in "+-" else "a goal")

    def _condition(self) -> Term:
        self.at += 1
        self.deeper()
        self.expect("(")
        condition = self.expression(expected="a formula")
        self.expect(")")
        self.depth -= 1
        return condition

    def _block(self) -> Body:
        self.deeper()
        self.expect("{")
        body = () if self.kinds[self.at] == "}" else self.body()
        self.expect("}", "';' or '}'")
        self.depth -= 1
        return body

    def _if(self, position: Position) -> If:
        branches = [(self._condition(), self._block())]
        while self.kinds[self.at] == NAME and self.texts[self.at] in ("elif", "else"):
            if self.texts[self.at] == "else":
                self.at += 1
                if not (self.kinds[self.at] == NAME and self.texts[self.at] == "if"):
                    return If(tuple(branches), self._block(), position)
            branches.append((self._condition(), self._block()))
        return If(tuple(branches), (), position)

    # ------------------------------------------------------------------ documentation

    def _doc(self, start: int, stop: int) -> None:
        inner = Parser(self.tokens.text, self.source, start, stop)
        inner.lines = self.lines
        try:
            self.docs.append(inner.doc())
        except UnexpectedError as error:
            inner.add_problem(error)
            self.problems += inner.problems

    def doc(self) -> Doc:
        """Read what a documentation comment says."""
        position = self.place()
        if self.texts[self.at] not in set(DocKind):
            raise UnexpectedError("'meaning', 'admissible' or 'remark'")
        kind = DocKind(self.expect(NAME))
        subject = literal = None
        if kind is not DocKind.REMARK:
            if self.kinds[self.at + 1] in (NAME, "~"):
                if self.texts[self.at] not in set(Subject):
                    raise UnexpectedError("'goal', 'belief', 'action' or 'plan'")
                subject = Subject(self.expect(NAME))
            literal = self.literal("what it describes")
            self.expect(":")
        text = unescaped(self.expect(STRING, "a text in double quotes"))
        if not self.at_end():
            raise UnexpectedError("the end of the line")
        return Doc(kind, text, subject, literal, position)


_SIGNS = {"!", "!!", "?", "+", "-"}
_APART = {
    "-+": StepKind.UPDATE,
    "++": StepKind.ADD_APART,
    "--": StepKind.REMOVE_APART,
    "+<": StepKind.ADD,
    "+>": StepKind.ADD,
}
"""Steps of two signs."""
_FORKS = {"|&|": "all", "|||": "any"}
_DIRECTIVES = "'include', 'namespace', 'begin', 'end' of that or 'register_function'"


def _wait(formula: Term, position: Position) -> Step:
    return Step(StepKind.INTERNAL, Struct(".wait", (formula,)), position)


def read_program(text: str, source: str = "", space: str = "") -> tuple[Program, tuple[SyntaxProblem, ...]]:
    """What can be read of a program, and every problem found in it, in the order of the text.

    Args:
        text: of the program.
        source: where it came from.
        space: namespace of its names.
    """
    parser = Parser(text, source, space=space)
    program = parser.program()
    return program, tuple(sorted(parser.problems, key=lambda one: (one.line, one.column)))


def parse_program(text: str, source: str = "") -> Program:
    """Read a program.

    Raises:
        ProgramError: the text is not AgentSpeak(L); holds all problems.
    """
    program, problems = read_program(text, source)
    if problems:
        raise ProgramError(problems)
    return program


def _whole(text: str, source: str, read: Callable[[Parser], T]) -> T:
    parser = Parser(text, source)
    try:
        result = read(parser)
        parser.take(".")
        parser.expect(END, "the end of the text")
    except UnexpectedError as error:
        parser.add_problem(error)
        raise ProgramError(tuple(parser.problems)) from None
    return result


def parse_term(text: str, source: str = "") -> Term:
    """Read a term or formula; raises ProgramError."""
    return _whole(text, source, lambda parser: parser.expression())


def parse_literal(text: str, source: str = "") -> Struct:
    """Read a belief, goal or action; raises ProgramError."""
    return _whole(text, source, lambda parser: parser.literal())


def parse_trigger(text: str, source: str = "") -> Trigger:
    """Read `+!g(X)` and the like; raises ProgramError."""
    return _whole(text, source, lambda parser: parser.trigger())


def parse_plan(text: str, source: str = "") -> Plan:
    """Read one plan; raises ProgramError."""
    return _whole(text, source, lambda parser: parser.plan())
