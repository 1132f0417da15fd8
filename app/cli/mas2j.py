"""Jason's project files: which agents there are, how many of each, and with what beliefs and goals."""

from __future__ import annotations

from dataclasses import replace

from engine.bdi.errors import Position, ProgramError, SyntaxProblem
from engine.bdi.expressions import END, NAME, NUMBER, STRING, VARIABLE, Lines, Tokens, described, unescaped
from engine.bdi.parser import parse_term
from engine.bdi.syntax import Belief, Goal, Program, TriggerKind
from engine.bdi.terms import Struct, items_of
from engine.value import dataclass, field

MOST = 10_000
"""Agents of one line."""
_JAVA = frozenset({"agentArchClass", "agentClass", "beliefBaseClass"})
"""What an agent's line may say of Java classes."""
_OF_NO_EFFECT = frozenset({"infrastructure", "executionControl", "classpath", "classPath"})
"""Where and in what order Jason runs agents."""


@dataclass(frozen=True, slots=True)
class ProjectAgent:
    """One line of the agents: a program, and how many agents run it."""

    name: str
    file: str
    count: int = 1
    beliefs: str = ""
    """Separated by commas."""
    goals: str = ""

    @property
    def names(self) -> list[str]:
        """The agents: `ann`, or `ann1`, `ann2`, … of several."""
        if self.count == 1:
            return [self.name]
        return [f"{self.name}{number}" for number in range(1, self.count + 1)]

    def extended(self, program: Program) -> Program:
        """The program with the beliefs and goals that the line gives.

        Raises:
            ProgramError: they are not literals.
        """
        beliefs = tuple(map(Belief, _literals(self.beliefs)))
        goals = tuple(Goal(TriggerKind.ACHIEVE, goal) for goal in _literals(self.goals))
        return replace(program, knowledge=program.knowledge + beliefs, goals=program.goals + goals)


def _literals(text: str) -> list[Struct]:
    terms = items_of(parse_term(f"[{text}]", "the project's beliefs or goals")) or []
    return [term for term in terms if isinstance(term, Struct)]


@dataclass(slots=True)
class Project:
    """A project file."""

    agents: list[ProjectAgent] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """Folders of the programs."""


def read_project(text: str, source: str) -> Project:
    """Read `MAS name { … }`.

    Raises:
        ProgramError: it is no project, or asks for Java classes.
    """
    return _Reader(text, source).project()


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        tokens = Tokens(text)
        self.kinds, self.texts, self.offsets = tokens.kinds, tokens.texts, tokens.offsets
        self.lines, self.source, self.at = Lines(text), source, 0

    def problem(self, expected: str, found: str = "") -> ProgramError:
        """The error at the present token."""
        line, column = self.lines.at(self.offsets[self.at]) if self.offsets else Position(1, 1)
        found = found or described(self.kinds[self.at], self.texts[self.at])
        return ProgramError((SyntaxProblem(self.source, line, column, expected, found),))

    def take(self, *kinds: str) -> str | None:
        """Take a token of one of these kinds."""
        if self.kinds[self.at] not in kinds:
            return None
        self.at += 1
        return self.texts[self.at - 1] or self.kinds[self.at - 1]

    def expect(self, expected: str, *kinds: str) -> str:
        """The same, where one must stand."""
        text = self.take(*kinds)
        if text is None:
            raise self.problem(expected)
        return text

    def project(self) -> Project:
        """Read it whole."""
        if self.take(VARIABLE) != "MAS":
            self.at = 0
            raise self.problem("'MAS'")
        self.expect("the project's name", NAME, VARIABLE)
        self.expect("'{'", "{")
        project = Project()
        while not self.take("}"):
            self.section(project)
        if self.kinds[self.at] != END:
            raise self.problem("the end of the text")
        if not project.agents:
            raise self.problem("'agents:' with at least one agent before it")
        return project

    def section(self, project: Project) -> None:
        """Read `agents: …`, or another part."""
        name = self.expect("'agents', 'aslSourcePath', another part of a project or '}'", NAME)
        self.expect("':'", ":")
        if name == "agents":
            while self.kinds[self.at] == NAME and self.kinds[self.at + 1] != ":":
                project.agents.append(self.agent())
        elif name == "aslSourcePath":
            while (path := self.take(STRING)) is not None:
                project.paths.append(unescaped(path))
                self.take(";", ",")
        elif name in _OF_NO_EFFECT:
            self.skipped()
        else:
            start = self.at
            value = self.skipped()
            self.at = start
            java = "a Java class" if name == "environment" else "Java classes"
            raise self.problem(f"no '{name}', which names {java}", f"'{value[:60]}'")

    def skipped(self) -> str:
        """Pass over the value of a part; its text."""
        start = self.at
        while self.kinds[self.at] not in ("}", END):
            if self.take(";"):
                break
            if self.at > start and self.kinds[self.at] == NAME and self.kinds[self.at + 1] == ":":
                break
            self.at += 1
        return "".join(self.texts[start : self.at]).rstrip(";")

    def agent(self) -> ProjectAgent:
        """Read `name file.asl [beliefs="…"] #3;`; a file may be named without its ending."""
        name = self.expect("an agent's name", NAME)
        file, count = f"{name}.asl", 1
        options: dict[str, str] = {}
        if (quoted := self.take(STRING)) is not None:
            file = unescaped(quoted)
        elif self.kinds[self.at] == NAME and self.texts[self.at] not in (*_JAVA, "at"):
            file = self.expect("a file", NAME)
            file = file if file.endswith(".asl") else f"{file}.asl"
        elif name.endswith(".asl"):
            name, file = name.removesuffix(".asl"), name
        if self.take("["):
            options = self.options()
        while not self.take(";"):
            word = self.texts[self.at]
            if word == "#":
                self.at += 1
                count = self.number()
            elif word == "at":
                self.at += 1
                self.expect("a host in quotes", STRING)
            elif word in _JAVA:
                raise self.problem("an agent without Java classes")
            else:
                raise self.problem("'#' and a number, 'at' and a host, or ';'")
        return ProjectAgent(name, file, count, options.get("beliefs", ""), options.get("goals", ""))

    def number(self) -> int:
        """Read how many agents there are."""
        text = self.expect("a number", NUMBER)
        if not (text.isdecimal() and 0 < int(text) <= MOST):
            self.at -= 1
            raise self.problem(f"a number of agents from 1 to {MOST}")
        return int(text)

    def options(self) -> dict[str, str]:
        """Read `beliefs="a,b", goals="g"]`; what else there is concerns Jason's windows."""
        made: dict[str, str] = {}
        while not self.take("]"):
            name = self.expect("an option", NAME)
            self.expect("'='", "=")
            value = self.expect("a value", STRING, NAME, NUMBER, VARIABLE)
            made[name] = unescaped(value) if value[0] == '"' else value
            self.take(",")
        return made
