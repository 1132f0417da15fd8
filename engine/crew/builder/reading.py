"""Reads what the body of a skill states: the steps of its workflow or its sub-agents, and so its type.

Parts are taken only from structures that say what they are: headings with a keyword and a number, numbered
headings, lists and bold lines right under a heading that names a workflow, and named sub-agents that work in
parallel. Where a text has none, or several that contradict each other, it is an operator's.

Blocks are found by markdown-it, without its inline parser, which takes minutes over hostile lines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.token import Token

from engine.crew.ontology.kinds import AgentType
from engine.value import dataclass

SURE = 0.6
"""A confidence above this is stated; at or below it the reading is a guess, and the operator is asked."""
_BLOCKS = MarkdownIt("commonmark", {"maxNesting": 200})
_BLOCKS.core.ruler.enableOnly(["block"])
_LONGEST_TITLE, _LONGEST_LINE = 300, 5_000
"""Characters of lines that are looked at for these; patterns would take long over longer ones."""
_NUMBERED = re.compile(r"(\d{1,3})[.)](?![.\d])\s+(\S.*)")
_BOLD = re.compile(r"(\*\*|__)(\S(?:.*?\S)?)\1(.*)")
_SENTENCE = re.compile(r"[^.:;—]{1,80}")


def words(name: str) -> re.Pattern[str]:
    """A pattern of words.toml."""
    return re.compile("|".join(WORDS[name]), re.I)


WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
"""Words and phrases by which a text is read, by name."""
_KEYED = re.compile(
    rf"\W*(?:({'|'.join(WORDS['keywords'])})s?\s*(\d{{1,3}})((?:\.\d+)?[a-z]?)(?![.\w])(?:\s*[-–+&]\s*\d+|\s+of\s+\d+)?"
    r"|第\s*(\d{1,3})\s*[步章阶段]+|(\d{1,3})\s*단계)[\s:.)\-–—|·：、]*(.*)",
    re.I,
)
_WORKFLOW = re.compile(
    rf"\W*(the |\d+\. )?([\w-]+ ){{0,2}}({'|'.join(WORDS['workflows'])})( flow| pattern| overview| summary)?"
    rf"(\s*[:(—–]| for\b| when\b|$)|{'|'.join(WORDS['workflow_phrases'])}",
    re.I,
)
_LEADS, _ASIDE, _RULE, _ASKS = words("leads"), words("asides"), words("rules"), words("asks")
_AGENTS, _AGENT, _PARALLEL = words("agents"), words("agent"), words("parallel")


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a workflow, or one sub-agent."""

    title: str
    line: int
    """In the body, from 1."""
    quote: str
    """The line as it stands, without the blanks around it."""
    text: str


class Structure(NamedTuple):
    """Parts that belong together."""

    kind: str
    confidence: float
    """That it is what the skill is made of."""
    parts: tuple[Part, ...]

    @property
    def agents(self) -> bool:
        """Whether its parts are sub-agents, and no steps."""
        return self.kind == "named agents"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a body states."""

    type: AgentType
    confidence: float
    """From 0 to 1, calibrated on labelled skills."""
    basis: str
    """The kind of structure that it was read from."""
    structures: tuple[Structure, ...] = ()
    """What its parts are; several where the text contradicts itself."""

    def parts(self, kind: AgentType) -> tuple[Part, ...]:
        """The parts that an agent of a type would have."""
        agents = kind is AgentType.COLLABORATIVE
        fitting = (each.parts for each in self.structures if each.agents == agents)
        return () if kind is AgentType.OPERATOR else next(fitting, ())


class _Block(NamedTuple):
    """A heading, a paragraph that begins in bold, or an item of a list; and where it ends, from 0."""

    kind: str
    """`heading`, `bold`, `bullet`, or the marks of a numbered list."""
    begin: int
    end: int
    level: int
    """Of a heading; 7 for what stands below headings."""
    title: str


def least_of(agents: bool) -> int:
    """Parts from which on steps are a workflow, and sub-agents a group."""
    return 2 if agents else 3


def read_body(text: str) -> Reading:
    """Read a body."""
    lines = text.replace("\r\n", "\n").split("\n")
    # A line that is too long to be markup is text, so that no nesting in it hides what follows.
    tokens = _BLOCKS.parse("\n".join(line if len(line) <= _LONGEST_LINE else "text" for line in lines))
    return _decided(_structures(lines, list(_blocks(tokens)), _PARALLEL.search(text) is not None))


def _blocks(tokens: list[Token]) -> Iterator[_Block]:
    items = 0
    for at, token in enumerate(tokens):
        begin, end = token.map or (0, 0)
        if token.type == "ordered_list_open" and not token.level:
            items = int(token.attrs.get("start", 1))
        elif token.type == "list_item_open" and token.level == 1:
            inline = tokens[at + 2] if tokens[at + 1].type == "paragraph_open" else None
            title = inline.content.split("\n")[0][:_LONGEST_TITLE] if inline is not None else ""
            yield _Block(f"{items}{token.markup}" if token.info else "bullet", begin, end, 7, title)
            items += 1
        elif token.type in ("heading_open", "paragraph_open") and not token.level:
            title = " ".join(tokens[at + 1].content.split("\n"))
            if token.type == "heading_open":
                if len(title) <= _LONGEST_TITLE:
                    yield _Block("heading", begin, end, int(token.tag[1:]), _plain(title))
            elif _BOLD.match(title[:_LONGEST_TITLE]):
                yield _Block("bold", begin, end, 7, title[:_LONGEST_TITLE])


def _ends(blocks: list[_Block], last: int) -> list[int]:
    """Where what stands under each of them ends: at the next of its level or above."""
    ends = [last] * len(blocks)
    open_: list[int] = []
    for index, block in enumerate(blocks):
        if block.kind in ("heading", "bold"):
            while open_ and blocks[open_[-1]].level >= block.level:
                ends[open_.pop()] = block.begin
            open_.append(index)
        else:
            ends[index] = block.end
    return ends


def _plain(text: str) -> str:
    return re.sub(r"[*_`]{1,3}(\S(?:.*?\S)?)[*_`]{1,3}", r"\1", text).strip()


_CONFIDENCE = {
    "keyed headings": 0.9,
    "numbered headings": 0.8,
    "keyed lines": 0.75,
    "numbered list": 0.7,
    "named agents": 0.7,
    "numbered lines": 0.65,
}
"""By kind of structure, where the heading above says that it is the skill's workflow."""
_Seen: TypeAlias = tuple[str, tuple[int, str], str]
"""Kind, number and title of what may be a part."""


def _structures(lines: list[str], blocks: list[_Block], parallel: bool) -> list[Structure]:
    """Every structure that could be the skill's parts, the surest first."""
    groups: dict[tuple[str, int, _Block | None, int], list[tuple[_Seen, int]]] = {}
    above: list[_Block] = []
    inside = 0
    """Level of the part that the blocks stand in; 0 for none."""
    for at, block in enumerate(blocks):
        if block.kind == "heading":
            while above and above[-1].level >= block.level:
                above.pop()
            if inside >= block.level:
                inside = 0
        if not inside and not any(_ASIDE.search(head.title) for head in above if head.level > 1):
            parent = above[-1] if above else None
            if (seen := _part(block, parent)) is not None:
                key = (seen[0], block.level, parent, 0)
                if groups.get(key) and seen[1] <= groups[key][-1][0][1] and seen[0] != "named agents":
                    groups[(*key[:3], at)] = groups.pop(key)
                groups.setdefault(key, []).append((seen, at))
                if block.kind == "heading" and seen[0] != "other":
                    inside = block.level
        if block.kind == "heading":
            above.append(block)
    ends = _ends(blocks, len(lines))
    made = (_structure(key[2], group, blocks, ends, lines) for key, group in groups.items())
    found = [each for each in made if each is not None and (parallel or not each.agents)]
    return sorted(found, key=lambda each: (-each.confidence, each.parts[0].line))


def _part(block: _Block, parent: _Block | None) -> _Seen | None:
    bold = _BOLD.match(block.title) if block.level == 7 else None
    title = bold[2] if bold is not None else block.title
    place = "headings" if block.kind == "heading" else "lines"
    workflow = parent is not None and parent.level <= 2 and _WORKFLOW.match(parent.title) is not None
    if block.kind in ("heading", "bold"):
        if (keyed := _KEYED.fullmatch(title)) is not None:
            number = int(keyed[2] or keyed[4] or keyed[5]), (keyed[3] or "").lower()
            question = " question" if (keyed[1] or "").lower() == "question" else ""
            rest = _SENTENCE.match(bold[3].strip(" :—–-")) if bold is not None else None
            name = keyed[6] or (rest[0] if rest is not None else "") or keyed[0]
            return f"keyed {place}{question}", number, _plain(name)
        if block.kind == "heading" and (agent := _AGENT.fullmatch(title)) is not None:
            return "named agents", (0, ""), agent[1]
        if (numbered := _NUMBERED.fullmatch(title)) is not None:
            return f"numbered {place}" if workflow else "other", (int(numbered[1]), ""), _plain(numbered[2])
    elif block.kind != "bullet":
        kind = "numbered list" if workflow else "other"
        return kind, (int(block.kind[:-1]), ""), bold[2] if bold is not None else _plain(block.title)
    elif bold is not None and parent is not None and _AGENTS.fullmatch(parent.title):
        return "named agents", (0, ""), title
    return None


def _structure(
    parent: _Block | None,
    group: list[tuple[_Seen, int]],
    blocks: list[_Block],
    ends: list[int],
    lines: list[str],
) -> Structure | None:
    """What stands together, unless there are too few or they are a list of rules."""
    kind = group[0][0][0]
    if len(group) < least_of(kind == "named agents"):
        return None
    parts = []
    for index, ((_, _, title), at) in enumerate(group):
        block = blocks[at]
        last = index + 1 == len(group)
        end = ends[at] if block.kind == "heading" or last else blocks[group[index + 1][1]].begin
        body = lines[block.end if block.kind == "heading" else block.begin : end]
        text = "\n".join(line if block.level < 7 else line.strip() for line in body).strip("\n")
        parts.append(Part(title.rstrip(" :."), block.begin + 1, lines[block.begin].strip(), text))
    rules = sum(_RULE.match(part.title) is not None for part in parts) / len(parts)
    if rules >= 0.5:
        return None
    plain = kind.removesuffix(" question")
    confidence = _CONFIDENCE.get(plain, 0.0)
    deepest = 2 + (plain == "keyed headings")
    leads = parent is None or parent.level == 1 or (parent.level <= deepest and _LEADS.search(parent.title))
    if rules > 0.3 or (plain.startswith("keyed") and not leads):
        confidence = min(confidence, SURE)
    return Structure(kind, confidence, tuple(parts))


def _decided(structures: list[Structure]) -> Reading:
    named = [structure for structure in structures if structure.confidence]
    if not named:
        return Reading(AgentType.OPERATOR, SURE if structures else 0.8, "other" if structures else "none")
    best = named[0]
    rivals = tuple(each for each in named if each.kind == best.kind or each.agents != best.agents)
    asking = sum(_ASKS.search(part.text) is not None for part in best.parts) / len(best.parts)
    asks = best.kind.endswith("question") or asking >= 0.6
    if len(rivals) > 1 or best.confidence <= SURE or (asking >= 0.4 and not asks):
        return Reading(AgentType.OPERATOR, SURE - 0.1, "unsure", rivals)
    steps = AgentType.GUIDED if asks else AgentType.PIPELINE
    return Reading(AgentType.COLLABORATIVE if best.agents else steps, best.confidence, best.kind, (best,))
