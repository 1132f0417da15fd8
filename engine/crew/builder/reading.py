"""Reads what the body of a skill states: its sections, its workflow's steps or its sub-agents, and its type.

Parts are taken only from structures that say what they are: headings with a keyword and a number, numbered
headings, lists and bold lines right under a heading that names a workflow, and named sub-agents that work in
parallel. Where a text has none, or several that contradict each other, it is an operator's.

Blocks are found by markdown-it, without its inline parser, which takes minutes over hostile lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from engine.crew.ontology.kinds import AgentType
from engine.value import dataclass

SURE = 0.6
"""A confidence above this is stated; at or below it the reading is a guess, and the operator is asked."""
STEPS_LEAST, AGENTS_LEAST = 3, 2
"""Parts from which on a sequence is a workflow, and from which on sub-agents are a group."""
_BLOCKS = MarkdownIt("commonmark", {"maxNesting": 200})
_BLOCKS.core.ruler.enableOnly(["block"])
_LONGEST_HEADING, _LONGEST_LINE = 1_000, 5_000
"""Characters of lines that are looked at for these; patterns would take long over longer ones."""
_STEP_WORDS = """step phase stage question schritt étape etape paso etapa fase passo stap steg trin krok vaihe
    adım шаг этап крок βήμα ステップ 手順 步骤 步驟 阶段 단계 चरण الخطوة שלב bước langkah"""
_KEYED = re.compile(
    rf"\W*(?:({'|'.join(_STEP_WORDS.split())})s?\s*(\d{{1,3}})(?![.\d])(?:\s*[-–]\s*\d+|\s+of\s+\d+)?"
    r"|第\s*(\d{1,3})\s*[步章阶段]|(\d{1,3})\s*단계)\s*[:.)\-–—|：、]*\s*(.*)",
    re.I,
)
_NUMBERED = re.compile(r"(\d{1,3})[.)](?![.\d])\s+(\S.*)")
_BOLD = re.compile(r"(\*\*|__)(\S(?:.*?\S)?)\1(.*)")
_WORKFLOW = re.compile(
    r"\b(workflow|process|procedure|methodology|steps|instructions|how (it works|to \w+)|usage)\b"
    r"|^the ([\w-]+ )?(pattern|loop)$|\b(ablauf|vorgehen|arbeitsablauf|flujo|fluxo|proceso|processo|processus"
    r"|procédure|procedimiento|werkwijze|przebieg|процесс|порядок|iş akışı)\b|流程|步骤|手順|절차|प्रक्रिया|الخطوات",
    re.I,
)
_ASIDE = re.compile(
    r"\b(pitfalls?|anti-?patterns?|examples?|references?|when (not )?to (use|apply)|troubleshooting|resources"
    r"|install(ation|ing)?|set-?up|integration|error handling|checklist|templates?|faq|do not|don'?ts?)\b",
    re.I,
)
_RULE = re.compile(r"(if|when|never|always|do not|don't|avoid|only|keep|be)\b", re.I)
_ASKS = re.compile(
    r"\bagent asks\b|\bask (the |your )?(user|operator|human|them|one|for)\b"
    r"|\bwait for (the |their )?(user|operator|answer|reply|approval)",
    re.I,
)
_AGENTS = re.compile(
    r"(the |your |our )?([\w-]+ ){0,2}(sub-?agents|agents|perspectives|reviewers|lenses|personas|council|panel)"
    r"(,? in parallel)?",
    re.I,
)
_AGENT = re.compile(r"(?:sub-?agent|agent|reviewer|perspective|persona) (?:\d{1,2}|[A-Z])\s*[:.—–-]\s*(\S.*)", re.I)
_PARALLEL = re.compile(
    r"\b(in parallel|concurrently|simultaneously|side by side|independently"
    r"|each (of the )?(sub-?agents?|agents?|perspectives?|reviewers?))\b"
)


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
class Part:
    """One step of a workflow, or one sub-agent."""

    number: int
    title: str
    line: int
    """In the body, from 1."""
    quote: str
    """The line as it stands, without the blanks around it."""
    text: str


class _Structure(NamedTuple):
    """Parts that belong together."""

    kind: str
    confidence: float
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a body states."""

    type: AgentType
    confidence: float
    """From 0 to 1, calibrated on labelled skills."""
    basis: str
    """The kind of structure that it was read from."""
    parts: tuple[Part, ...] = ()
    """Of the type; where the text contradicts itself, of the first structure that it could mean."""
    rivals: tuple[str, ...] = ()
    """Structures that contradict each other, as `3 steps from line 12`."""
    sections: tuple[Section, ...] = ()


class _Block(NamedTuple):
    """A heading, a paragraph that begins in bold, or an item of a list; and where it ends, from 0."""

    kind: str
    """`heading`, `bold`, `bullet`, or the marks of a numbered list."""
    begin: int
    end: int
    level: int
    """Of a heading; 7 for what stands below headings."""
    title: str


def read_body(text: str) -> Reading:
    """Read a body."""
    lines = text.replace("\r\n", "\n").split("\n")
    # A line that is too long to be markup is text, so that no nesting in it hides what follows.
    tokens = _BLOCKS.parse("\n".join(line if len(line) <= _LONGEST_LINE else "text" for line in lines))
    blocks = list(_blocks(tokens))
    heads = [block for block in blocks if block.kind == "heading"]
    sections = tuple(_sections(lines, heads))
    structures = _structures(lines, blocks, _PARALLEL.search(text) is not None)
    return _decided(structures, sections)


def _blocks(tokens: list[Token]) -> Iterator[_Block]:
    number, items = "", 0
    for at, token in enumerate(tokens):
        begin, end = token.map or (0, 0)
        if token.type == "ordered_list_open" and not token.level:
            items = int(token.attrs.get("start", 1))
        elif token.type == "list_item_open" and token.level == 1:
            inline = tokens[at + 2] if tokens[at + 1].type == "paragraph_open" else None
            title = inline.content.split("\n")[0] if inline is not None else ""
            number = token.info
            yield _Block(f"{items}{token.markup}" if number else "bullet", begin, end, 7, title)
            items += 1
        elif token.type in ("heading_open", "paragraph_open") and not token.level:
            title = " ".join(tokens[at + 1].content.split("\n"))
            if token.type == "heading_open":
                if len(title) <= _LONGEST_HEADING:
                    yield _Block("heading", begin, end, int(token.tag[1:]), _plain(title))
            elif _BOLD.match(title[:_LONGEST_HEADING]):
                yield _Block("bold", begin, end, 7, title[:_LONGEST_HEADING])


def _sections(lines: list[str], heads: list[_Block]) -> Iterator[Section]:
    for head, end in zip(heads, _ends(heads, len(lines)), strict=True):
        yield Section(head.level, head.title, head.begin + 1, "\n".join(lines[head.end : end]).strip("\n"))


def _ends(blocks: list[_Block], last: int) -> list[int]:
    """Where what stands under each of them ends: at the next of its level or above."""
    ends, open_ = [last] * len(blocks), []
    for index, block in enumerate(blocks):
        while open_ and blocks[open_[-1]].level >= block.level:
            ends[open_.pop()] = block.begin
        open_.append(index)
    return ends


def _plain(text: str) -> str:
    return re.sub(r"[*_`]{1,3}(\S(?:.*?\S)?)[*_`]{1,3}", r"\1", text).strip()


_CONFIDENCE = {
    "keyed headings": 0.95,
    "keyed lines": 0.85,
    "numbered headings": 0.85,
    "numbered list": 0.8,
    "named agents": 0.8,
    "numbered lines": 0.7,
}
"""By kind of structure; what is numbered and under no heading that says what it is counts for nothing."""


def _structures(lines: list[str], blocks: list[_Block], parallel: bool) -> list[_Structure]:
    """Every structure that could be the skill's parts, in order of the text; others are of kind `other`."""
    groups: dict[tuple[object, ...], list[tuple[int, str, int]]] = {}
    above: list[_Block] = []
    inside = -1
    """Level of the part that the blocks stand in."""
    for at, block in enumerate(blocks):
        if block.kind == "heading":
            while above and above[-1].level >= block.level:
                above.pop()
            if inside >= block.level:
                inside = -1
        if inside < 0 and not any(_ASIDE.search(head.title) for head in above if head.level > 1):
            parent = above[-1] if above else None
            if (seen := _part(block, parent.title if parent is not None else "")) is not None:
                kind, word, number, title = seen
                key = (kind, word, block.level, parent)
                if groups.get(key) and number and number <= groups[key][-1][0]:
                    groups[(*key, at)] = groups.pop(key)
                groups.setdefault(key, []).append((number, title, at))
                if block.kind == "heading" and kind != "other":
                    inside = block.level
        if block.kind == "heading":
            above.append(block)
    ends = _ends(blocks, len(lines))
    found = [_structure(str(key[0]), str(key[1]), group, blocks, ends, lines) for key, group in groups.items()]
    found = [each for each in found if each.kind != "named agents" or parallel]
    return sorted(filter(_counts, found), key=lambda each: (-each.confidence, each.parts[0].line))


def _part(block: _Block, parent: str) -> tuple[str, str, int, str] | None:
    """Kind, keyword, number and title of the part that a block may be."""
    bold = _BOLD.match(block.title) if block.level == 7 else None
    title = bold[2] if bold is not None else block.title
    headed = block.kind == "heading"
    workflow = _WORKFLOW.search(parent) is not None and not _ASIDE.search(parent)
    if block.kind in ("heading", "bold"):
        if (keyed := _KEYED.fullmatch(title)) is not None:
            number = int(keyed[2] or keyed[3] or keyed[4])
            name = keyed[5].strip() or keyed[0].strip()
            return f"keyed {'headings' if headed else 'lines'}", (keyed[1] or "step").lower(), number, name
        if headed and (agent := _AGENT.fullmatch(title)) is not None:
            return "named agents", "", 0, agent[1]
        if (numbered := _NUMBERED.fullmatch(title)) is not None:
            kind = f"numbered {'headings' if headed else 'lines'}" if workflow else "other"
            return kind, "", int(numbered[1]), _plain(numbered[2]).rstrip(" :")
    elif block.kind != "bullet":
        name = bold[2] if bold is not None else _plain(block.title)
        return "numbered list" if workflow else "other", "", int(block.kind[:-1]), name.rstrip(" :.")
    elif bold is not None and _AGENTS.fullmatch(parent):
        return "named agents", "", 0, title.strip(" :")
    return None


def _structure(
    kind: str, word: str, group: list[tuple[int, str, int]], blocks: list[_Block], ends: list[int], lines: list[str]
) -> _Structure:
    parts = []
    for index, (number, title, at) in enumerate(group):
        block = blocks[at]
        end = blocks[group[index + 1][2]].begin if index + 1 < len(group) else max(ends[at], block.end)
        if block.kind not in ("heading", "bold") and index + 1 == len(group):
            end = block.end
        body = lines[block.end if block.kind == "heading" else block.begin : end]
        text = "\n".join(line.strip() if block.kind != "heading" else line for line in body).strip("\n")
        parts.append(Part(number, title, block.begin + 1, lines[block.begin].strip(), text))
    confidence = _CONFIDENCE.get(kind, 0.0)
    return _Structure(f"{kind} {word}".strip() if word == "question" else kind, confidence, tuple(parts))


def _counts(structure: _Structure) -> bool:
    """Whether it has parts enough, and they are no list of rules."""
    if structure.kind == "named agents":
        return len(structure.parts) >= AGENTS_LEAST
    rules = sum(_RULE.match(part.title) is not None for part in structure.parts)
    return len(structure.parts) >= STEPS_LEAST and 2 * rules < len(structure.parts)


def _decided(structures: list[_Structure], sections: tuple[Section, ...]) -> Reading:
    named = [structure for structure in structures if structure.confidence]
    if not named:
        confidence = SURE if structures else 0.8
        return Reading(AgentType.OPERATOR, confidence, "other" if structures else "none", sections=sections)
    best = named[0]
    agents = best.kind == "named agents"
    rivals = [each for each in named if each.kind == best.kind or (each.kind == "named agents") != agents]
    if len(rivals) > 1:
        told = tuple(f"{len(each.parts)} {each.kind} from line {each.parts[0].line}" for each in rivals)
        return Reading(AgentType.OPERATOR, SURE - 0.1, "several", rivals[0].parts, told, sections)
    kind, confidence = AgentType.COLLABORATIVE if agents else AgentType.PIPELINE, best.confidence
    asking = sum(_ASKS.search(part.text) is not None for part in best.parts) / len(best.parts)
    if "question" in best.kind or asking >= 0.6:
        kind = AgentType.GUIDED
    elif asking >= 0.4:
        confidence = SURE
    return Reading(kind, confidence, best.kind, best.parts, (), sections)
