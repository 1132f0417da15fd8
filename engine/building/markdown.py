"""A skill's body as Markdown: headings, sections, steps and links, none of them taken from fenced code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

_FENCE = re.compile(r"[ \t]*(?:[-*+][ \t]+|\d+[.)][ \t]+|>[ \t]?)*(`{3,}|~{3,})([^\n]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(={3,}|-{3,})[ \t]*")
_PARAGRAPH = re.compile(r" {0,3}[^\s#>|*+\-`~\d].*")
_KEYWORD_STEP = re.compile(
    r"\W*(Phase|Stage|Step|Question|Part)\s+(\d{1,3})(?![.\d])\s*[:.)\-–—|]*\s*(.*)", re.I
)
_NUMBER_STEP = re.compile(r"(\d{1,3})[.)](?!\d)\s+(\S.*)")
_LISTED_STEP = re.compile(r"( {0,3})(\d{1,3})[.)][ \t]+(\S.*)")
_PROCESS = re.compile(
    r"\b(workflow|process|procedure|steps?|pattern|methodology|application|how to use)\b", re.I
)
_NO_PROCESS = re.compile(
    r"\b(pitfalls?|anti-?patterns?|examples?|references?|when (not )?to (use|apply)|troubleshooting)\b", re.I
)
_CODE_SPAN = re.compile(r"(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_LINK = re.compile(
    r"!?\[[^\]\n]*\]\(\s*(<[^>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+[\"'(][^\n]*?)?\s*\)"
)
_DEFINITION = re.compile(r" {0,3}\[[^\]\n]+\]:[ \t]*(<[^>\n]*>|\S+)", re.M)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LIST_LEVEL = 7
_LONGEST_HEADING, _LONGEST_LINKED = 1_000, 5_000
"""Characters of lines that are looked at for these; patterns would take long over longer ones."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with all that stands under it."""

    level: int
    """1 to 6."""
    title: str
    line: int
    """In the body, from 1."""
    text: str
    """To the next heading of the same or a higher level, sub-headings included."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a workflow."""

    number: int
    title: str
    line: int
    level: int
    """The heading's; 7 for an item of a list."""
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Something that the text points to in its folder."""

    target: str
    line: int
    outside: bool
    """Whether it leads out of the folder, so that it is never looked at."""


@dataclass(frozen=True, slots=True)
class Document:
    """A body, looked through once."""

    plain: tuple[str, ...]
    """The lines with fenced code and comments blanked."""
    sections: tuple[Section, ...]
    steps: tuple[Step, ...]

    @property
    def prose(self) -> str:
        """The text without fenced code."""
        return "\n".join(self.plain)


def read_markdown(text: str) -> Document:
    """Look through a body."""
    lines = text.replace("\r\n", "\n").split("\n")
    plain = list(_without_code(lines))
    sections = tuple(_sections(lines, plain))
    return Document(tuple(plain), sections, _steps(sections, plain))


def _without_code(lines: list[str]) -> Iterator[str]:
    """Each line, blank where it belongs to a fence or an HTML comment."""
    fence, comment = "", False
    for line in lines:
        if fence:
            mark = line.strip().lstrip("> ")
            if mark and set(mark) == {fence[0]} and len(mark) >= len(fence):
                fence = ""
            yield ""
        elif comment:
            comment = "-->" not in line
            yield ""
        elif (opened := _FENCE.fullmatch(line)) and not (opened[1][0] == "`" and "`" in opened[2]):
            fence = opened[1]
            yield ""
        elif line.lstrip().startswith("<!--"):
            comment = "-->" not in line
            yield ""
        else:
            yield line


def _sections(lines: list[str], plain: list[str]) -> Iterator[Section]:
    heads = list(_headings(plain))
    ends = [len(lines)] * len(heads)
    open_: list[int] = []
    for index, (at, level, _) in enumerate(heads):
        while open_ and heads[open_[-1]][1] >= level:
            ends[open_.pop()] = at
        open_.append(index)
    for (at, level, title), end in zip(heads, ends, strict=True):
        # A heading that is underlined takes two lines.
        begin = at + (1 if _HEADING.fullmatch(plain[at]) else 2)
        yield Section(level, title, at + 1, "\n".join(lines[begin:end]).strip("\n"))


def _headings(plain: list[str]) -> Iterator[tuple[int, int, str]]:
    for at, line in enumerate(plain):
        if len(line) > _LONGEST_HEADING:
            continue
        if found := _HEADING.fullmatch(line):
            yield at, len(found[1]), _title(found[2] or "")
        elif (
            (under := _UNDERLINE.fullmatch(line))
            and at
            and _PARAGRAPH.fullmatch(plain[at - 1])
            and (at == 1 or not plain[at - 2].strip())
        ):
            yield at - 1, 1 if under[1][0] == "=" else 2, _title(plain[at - 1])


def _title(text: str) -> str:
    return re.sub(r"[*_`]{1,3}(\S(?:.*?\S)?)[*_`]{1,3}", r"\1", text).strip()


def _steps(sections: tuple[Section, ...], plain: list[str]) -> tuple[Step, ...]:
    """Headings with a keyword, else numbered ones, else a numbered list, of a workflow; the topmost only."""
    keyed: list[Step] = []
    numbered: list[Step] = []
    listed: list[Step] = []
    above: list[Section] = []
    for section in sections:
        while above and above[-1].level >= section.level:
            above.pop()
        titles = [one.title for one in above]
        above.append(section)
        if any(_NO_PROCESS.search(title) for title in titles):
            continue
        if found := _KEYWORD_STEP.fullmatch(section.title):
            title = found[3].strip() or found[0].strip()
            keyed.append(Step(int(found[2]), title, section.line, section.level, section.text))
            continue
        if _NO_PROCESS.search(section.title):
            continue
        process = any(_PROCESS.search(title) for title in titles)
        if process and (found := _NUMBER_STEP.fullmatch(section.title)):
            numbered.append(Step(int(found[1]), found[2], section.line, section.level, section.text))
        elif not listed and _PROCESS.search(section.title):
            listed = _listed(section, plain)
    chosen = keyed or numbered or listed
    top = min((step.level for step in chosen), default=0)
    return tuple(step for step in chosen if step.level == top)


def _listed(section: Section, plain: list[str]) -> list[Step]:
    """The items of the first numbered list right under a heading; what is indented belongs to its item."""
    steps: list[Step] = []
    edge = 3
    for at in range(section.line, len(plain)):
        line = plain[at]
        if _HEADING.fullmatch(line):
            break
        if (found := _LISTED_STEP.fullmatch(line)) and len(found[1]) <= edge:
            if int(found[2]) == 1 and len(steps) > 1:
                break
            edge = len(found[1]) + 1
            steps.append(Step(int(found[2]), _title(found[3]), at + 1, _LIST_LEVEL, found[3]))
        elif steps and line.strip():
            last = steps[-1]
            steps[-1] = Step(last.number, last.title, last.line, last.level, f"{last.text}\n{line.strip()}")
    return steps if len(steps) > 1 else []


def links_in(document: Document) -> Iterator[Link]:
    """What the prose links to, save addresses of the web and places in the text itself."""
    lines = (line if len(line) <= _LONGEST_LINKED else "" for line in document.plain)
    prose = _CODE_SPAN.sub(lambda found: " " * len(found[0]), "\n".join(lines))
    seen: set[str] = set()
    starts = [0, *(found.end() for found in re.finditer("\n", prose))]
    for pattern in (_LINK, _DEFINITION):
        for found in pattern.finditer(prose):
            target = found[1].strip("<>").strip()
            target = unquote(target.partition("#")[0].partition("?")[0])
            if not target or target in seen:
                continue
            drive = re.match(r"[A-Za-z]:[\\/]", target)
            if _SCHEME.match(target) and not drive and not target.lower().startswith("file:"):
                continue
            seen.add(target)
            yield Link(target, bisect_right(starts, found.start()), bool(drive) or leads_out(target))


def leads_out(target: str) -> bool:
    """Whether a path leads out of the folder that it is read from."""
    if target.startswith(("/", "\\", "~")) or target.lower().startswith("file:"):
        return True
    depth = 0
    for part in re.split(r"[\\/]", target):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1
        if depth < 0:
            return True
    return False
