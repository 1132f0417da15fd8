"""A sentence about an agent read as a specification, each part with the words and the rule it came by.

Nothing here asks a model or changes anything. Where two readings are close the sentence is not guessed at: a
question names both, and how to write each so that it cannot be taken for the other (mindX spec §5.3, issue 8
no. 5; §7 nos. 33 and 36 for showing the rule).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engine.domain.budgets import BudgetKind, amount_text, check_limits
from engine.domain.text import clean_line
from engine.library.words import words_of
from engine.mastermind.imperatives import base_of, imperative, introduced

SENTENCE_LIMIT = 4_000
"""Characters of a sentence, as of a description."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that was understood."""

    name: str
    """`goal`, or the name of a setting with dots for what lies inside: `budget.usd`."""
    value: Any
    words: str
    """The words that say it, as they stand in the sentence."""
    rule: str
    """Why they are read so."""

    @property
    def line(self) -> str:
        """The part for a person, on one line."""
        words = f"from “{clean_line(self.words, limit=80)}”, " if self.words else ""
        return f"{self.name}: {clean_line(_shown(self.name, self.value), limit=300)}   ({words}{self.rule})"


@dataclass(frozen=True, slots=True)
class Question:
    """Words that can be read in two ways."""

    words: str
    readings: tuple[str, ...]
    """Each with how to write it."""

    @property
    def line(self) -> str:
        """The question on one line."""
        return f"“{clean_line(self.words, limit=80)}”: {'; or '.join(self.readings)}?"


@dataclass(frozen=True, slots=True)
class Understood:
    """What a sentence says."""

    text: str
    parts: tuple[Part, ...] = ()
    questions: tuple[Question, ...] = ()
    """Empty where every word has one reading; nothing is created before."""

    @property
    def goals(self) -> tuple[str, ...]:
        """The goals in their order."""
        return tuple(part.value for part in self.parts if part.name == "goal")

    @property
    def settings(self) -> dict[str, Any]:
        """What the agent's configuration is to have."""
        found: dict[str, Any] = {}
        for part in self.parts:
            if part.name != "goal":
                *outer, last = part.name.split(".")
                inner = found
                for name in outer:
                    inner = inner.setdefault(name, {})
                inner[last] = part.value
        return found

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it for a person."""
        return (*(part.line for part in self.parts), *(one.line for one in self.questions))


def understand(
    text: str,
    *,
    agents: Collection[str] = (),
    programs: Collection[str] = (),
    verbs: Collection[str] = (),
    covers: Callable[[str], bool] = lambda _text: False,
) -> Understood:
    """What a sentence about a new agent says; a pure function.

    Args:
        text: the sentence; what stands in quotes belongs to the goal as it is.
        agents: ids of the agents that there are, which it may work for.
        programs: names of programs that the workspace allows.
        verbs: verbs with which a goal may begin.
        covers: whether the plan library knows what to do for a text.
    """
    reader = _Reader(text.strip(), frozenset(agents), frozenset(programs))
    for rule in (_amounts, _parents, _styles, _thinkers, _networks, _approvals, _tools):
        rule(reader)
    reader.settle_conflicts()
    _rest(reader, frozenset(verbs), covers)
    return Understood(text, tuple(reader.parts), tuple(reader.questions))


@dataclass(slots=True)
class _Reader:
    """The sentence, and what has been taken of it so far."""

    text: str
    agents: frozenset[str]
    programs: frozenset[str]
    parts: list[Part] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    masked: str = ""
    """The text with blanks-like marks for what is quoted or taken; as long as the text."""

    def __post_init__(self) -> None:
        self.masked = self.text
        for word in words_of(self.text):
            if word.quoted:
                self._cover(word.start, word.end, "\x01")

    def _cover(self, start: int, end: int, mark: str) -> None:
        self.masked = f"{self.masked[:start]}{mark * (end - start)}{self.masked[end:]}"

    def found(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Where a pattern fits what nobody took; each match sees what was taken before it."""
        at = 0
        while (match := pattern.search(self.masked, at)) is not None:
            yield match
            at = max(match.end(), at + 1)

    def words(self, match: re.Match[str]) -> str:
        return self.text[match.start() : match.end()].strip(" ,;")

    def take(self, match: re.Match[str], rule: str, **values: Any) -> None:
        """Take the words of a match for settings; `__` in a name stands for the dot."""
        self.take_to(match, match.end(), rule, **values)

    def take_to(self, match: re.Match[str], end: int, rule: str, **values: Any) -> None:
        """Take the words from where a match begins to a place."""
        words = self.text[match.start() : end].strip(" ,;")
        self.parts += [Part(name.replace("__", "."), value, words, rule) for name, value in values.items()]
        self._cover(match.start(), end, "\0")

    def ask(self, match: re.Match[str], *readings: str) -> None:
        self.questions.append(Question(self.words(match), readings))

    def settle_conflicts(self) -> None:
        """Ask where the same thing is said in two ways; saying it twice alike is no matter."""
        kept: dict[str, Part] = {}
        for part in self.parts:
            other = kept.setdefault(part.name, part)
            if other.value != part.value:
                both = f"{other.words} … {part.words}"
                shown = [f"{part.name} is {_shown(part.name, one.value)}" for one in (other, part)]
                self.questions.append(Question(both, (shown[0], f"{shown[1]}: say only one")))
        self.parts = list(kept.values())

    @property
    def left(self) -> str:
        """What was not taken, with quoted text as it was."""
        pieces = [
            self.text[match.start() : match.end()].strip(" ,;\t\n") for match in _LEFT.finditer(self.masked)
        ]
        return " ".join(filter(None, pieces)).strip(" ,;")


_LEFT = re.compile("[^\0]+")
_NUMBER = r"\d(?:[\d,]{0,15}\d)?(?:\.\d{1,6})?"
_UNITS: dict[str, tuple[BudgetKind, float]] = {
    "dollar": (BudgetKind.USD, 1),
    "usd": (BudgetKind.USD, 1),
    "cent": (BudgetKind.USD, 0.01),
    "token": (BudgetKind.TOKENS, 1),
    "call": (BudgetKind.CALLS, 1),
    "action": (BudgetKind.ACTIONS, 1),
    "step": (BudgetKind.ACTIONS, 1),
    "second": (BudgetKind.SECONDS, 1),
    "minute": (BudgetKind.SECONDS, 60),
    "hour": (BudgetKind.SECONDS, 3600),
}
_SHORT_UNITS = {"s": "second", "sec": "second", "min": "minute", "h": "hour"}
_UNIT = rf"(?:model\s+)?(?P<unit>{'|'.join(_UNITS)}|secs?|mins?|s|h)s?\b"
_AMOUNT = rf"(?:\$\s?(?P<usd>{_NUMBER})|(?P<number>{_NUMBER})\s?(?P<times>k|thousand|million)?\s?{_UNIT})"
_PLAIN = re.sub(r"\?P<\w+>", "?:", _AMOUNT)
_AMOUNT_RE = re.compile(_AMOUNT, re.I)
_AMOUNTS = rf"(?P<amounts>{_PLAIN}(?:\s*(?:,|,?\s*and)\s+{_PLAIN})*)"
_BUDGET = re.compile(
    r"[,;]?\s*(?:\band\s+)?(?:\b(?:with|on|within|has|having|under)\s+)?(?:\b(?:an?|the|its\s+own)\s+)?"
    rf"\bbudget\s*(?:of|is|:|=)?\s*(?:at\s+most\s+|up\s+to\s+)?(?:{_AMOUNTS}|(?P<bare>{_NUMBER})(?![\w.]))",
    re.I,
)
_SPENDING = re.compile(
    r"[,;]?\s*(?:\band\s+)?\b(?:spend(?:s|ing)?|us(?:es|ing)|cost(?:s|ing)?|tak(?:es|ing))\s+"
    rf"(?:at\s+most|up\s+to|no\s+more\s+than|not\s+more\s+than)\s+{_AMOUNTS}",
    re.I,
)
_AT_MOST = re.compile(
    r"[,;]?\s*(?:\b(?:for|with|within|in)\s+)?\b(?:at\s+most|up\s+to|no\s+more\s+than|not\s+more\s+than)\s+"
    rf"{_AMOUNTS}",
    re.I,
)


def _amounts(reader: _Reader) -> None:
    for match in reader.found(_BUDGET):
        if match["bare"]:
            number = match["bare"]
            reader.ask(
                match, f"${number}: write budget of ${number}", f"{number} actions: write {number} actions"
            )
        else:
            reader.take(match, "an amount after “budget”", **_read_amounts(match["amounts"]))
    for match in reader.found(_SPENDING):
        reader.take(match, "the most that it may spend", **_read_amounts(match["amounts"]))
    for match in reader.found(_AT_MOST):
        amounts = _read_amounts(match["amounts"])
        if {"budget__usd", "budget__tokens"} & set(amounts):
            reader.take(
                match, "the most that it may spend: dollars and tokens are spent by agents", **amounts
            )
        else:
            said = ", ".join(_shown(name.replace("__", "."), value) for name, value in amounts.items())
            words = reader.words(match)
            reader.ask(
                match,
                f"its budget is {said}: write with a budget of …",
                f"it belongs to the goal: write '{words}'",
            )


def _read_amounts(text: str) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    for match in _AMOUNT_RE.finditer(text):
        unit = (match["unit"] or "usd").lower()
        unit = _SHORT_UNITS.get(unit.rstrip("s") or "s", unit.rstrip("s") or "second")
        kind, factor = _UNITS[unit if unit in _UNITS else _SHORT_UNITS[unit]]
        times = {"k": 1_000, "thousand": 1_000, "million": 1_000_000}.get((match["times"] or "").lower(), 1)
        amount = round(float((match["usd"] or match["number"]).replace(",", "")) * times * factor, 6)
        whole = kind not in (BudgetKind.USD, BudgetKind.SECONDS)
        found[f"budget__{kind.value}"] = int(amount) if whole and amount == int(amount) else amount
    return found


_ID = r"(?P<id>[a-z][a-z0-9_-]{0,31})"
_SET_OFF = _ID.replace("<id>", "<set_off>")
_PARENT_SURE = re.compile(
    rf"[,;]?\s*\b(?:(?:that|which|who|and)\s+)?work(?:s|ing)\s+(?:for|under)\s+{_ID}(?![\w-])"
    rf"|(?:^|[,;])\s*(?:for|under)\s+{_SET_OFF}(?![\w-])\s*"
    r"(?=[:,;\0]|\Z|\b(?:that|which|who)\b)[:,;]?",
    re.I,
)
_PARENT_OF = re.compile(rf"\b(?:of|for|under)\s+{_ID}(?![\w-])", re.I)
_ROLE_BEFORE = re.compile(r"\b(?:helper|assistant|worker|agent|child|sub-?agent)\s*\Z", re.I)


def _parents(reader: _Reader) -> None:
    for match in reader.found(_PARENT_SURE):
        name = match["id"] or match["set_off"]
        if match["id"] or name in reader.agents or re.search(r"[\d_-]", name):
            reader.take(match, "whom it works for, on whose budget it draws", parent=name)
    for match in reader.found(_PARENT_OF):
        if match["id"] not in reader.agents:
            continue
        if _ROLE_BEFORE.search(reader.masked[: match.start()]):
            reader.take(match, "an agent of another one, on whose budget it draws", parent=match["id"])
        else:
            name = match["id"]
            reader.ask(
                match,
                f"it works for {name} and draws on its budget: write works for {name}",
                f"it belongs to the goal: write '{reader.words(match)}' in quotes",
            )


_STYLE = re.compile(
    r"[,;]?\s*(?:\band\s+)?(?:\b(?:that|which|who)\s+)?(?:"
    r"(?P<decide>\b(?:decid(?:es|ing)|act(?:s|ing)|think(?:s|ing))\s+(?:on\s+)?"
    r"(?:one\s+(?:action|step)\s+(?:after\s+the\s+other|at\s+a\s+time)|step\s+by\s+step))"
    r"|(?P<plan>\bplan(?:s|ning)\s+(?:ahead|first|beforehand|everything\s+first))"
    r"|\b(?:in|with)\s+the\s+style\s+(?P<style>decide|plan)\b|\bstyle\s*[:=]\s*(?P<style2>decide|plan)\b)",
    re.I,
)


def _styles(reader: _Reader) -> None:
    for match in reader.found(_STYLE):
        named = (match["style"] or match["style2"] or "").lower()
        style = named or ("decide" if match["decide"] else "plan")
        reader.take(match, "how it thinks: decide is one action after the other", style=style)


_THINKER = re.compile(
    r"[,;]?\s*\b(?:(?P<none>(?:without|with\s+no|using\s+no)\s+(?:an?\s+|any\s+|the\s+)?model\b"
    r"|(?:by|with|from|using)\s+(?:the\s+)?recipes(?:\s+(?:only|alone))?\b)"
    r"|(?P<model>(?:with|using|by)\s+(?:an?\s+|the\s+)(?:language\s+)?model\b|(?:with|using|by)\s+claude\b))",
    re.I,
)


def _thinkers(reader: _Reader) -> None:
    for match in reader.found(_THINKER):
        thinker = "procedural" if match["none"] else "claude"
        reader.take(match, "who plans for it", thinker=thinker)


_NETWORK = re.compile(
    r"[,;]?\s*(?:\band\s+)?(?:(?P<off>\b(?:without|with\s+no)\s+(?:any\s+|the\s+)?(?:network|internet)\b(?:\s+access)?"
    r"|\boffline\b)"
    r"|(?P<on>\b(?:with|using)\s+(?:the\s+)?(?:network|internet)\b(?:\s+access)?"
    r"(?:\s+(?:on\s+)?ports?\s+(?P<ports>\d{1,5}(?:\s*(?:,|and)\s*\d{1,5})*))?))",
    re.I,
)


def _networks(reader: _Reader) -> None:
    for match in reader.found(_NETWORK):
        if match["off"]:
            reader.take(match, "its programs reach nothing", sandbox__network="off")
        elif match["ports"]:
            ports = [int(one) for one in re.findall(r"\d+", match["ports"])]
            rule = "its programs reach these ports, where the workspace allows it"
            reader.take(match, rule, sandbox__network="ports", sandbox__ports=ports)
        else:
            reader.take(
                match, "its programs reach the network, where the workspace allows it", sandbox__network="on"
            )


_ONLY = re.compile(r"[,;]?\s*\b(?:(?:with|using)\s+only|only\s+(?:with|using))\s+", re.I)
_NEXT_NAME = re.compile(r"(?P<joint>\s*(?:,\s*and|,|\band)\s+)?(?P<name>[\w+-]+(?:\.[\w+-]+)*)")


def _tools(reader: _Reader) -> None:
    for match in reader.found(_ONLY):
        names: list[str] = []
        end = match.end()
        while (following := _NEXT_NAME.match(reader.masked, end)) and bool(following["joint"]) == bool(names):
            if following["name"] not in reader.programs:
                rest = reader.masked[following.end() :].lstrip(" .")
                if names and (not rest or rest[0] in ",;\0"):
                    allowed = ", ".join(sorted(reader.programs))
                    what = f"{following['name']} is no program here: programs are {allowed}"
                    reader.questions.append(Question(reader.text[match.start() : following.end()], (what,)))
                break
            names.append(following["name"])
            end = following.end()
        if names:
            reader.take_to(match, end, "programs that it may run, and no others", sandbox__programs=names)


_ASKS = re.compile(
    r"[,;]?\s*(?:\band\s+)?(?:\b(?:that|which|who)\s+)?\bask(?:s|ing)\s+(?:me\s+|the\s+operator\s+)?(?:first\s+)?before\s+"
    r"(?:(?P<all>(?:every|each|any)\s+action|everything|(?:it\s+does|doing)\s+anything)"
    r"|(?P<changes>(?:it\s+)?chang(?:es|ing)\s+(?:anything|something)|(?:it\s+)?writ(?:es|ing)|any\s+change)"
    r"|(?P<hard>(?:anything|what)\s+(?:that\s+)?cannot\s+be\s+undone|anything\s+irreversible|(?:it\s+)?runs?(?:ning)?\s+programs))\b",
    re.I,
)


def _approvals(reader: _Reader) -> None:
    for match in reader.found(_ASKS):
        preset = "ask" if match["all"] else "ask-changes" if match["changes"] else "ask-irreversible"
        reader.take(match, "what it asks about before it does it", approvals=preset)


def _rest(reader: _Reader, verbs: frozenset[str], covers: Callable[[str], bool]) -> None:
    """What is left over: the goals, or no more than a description."""
    left = reader.left
    if not left:
        return
    lead, rest, inflected = introduced(left)
    if not rest:
        return
    if not lead and not covers(rest):
        inflected = base_of(rest.partition(" ")[0]) in verbs and rest.partition(" ")[0] not in verbs
        sure = _sounds_like_a_goal(imperative(rest, verbs) if inflected else rest, verbs)
        if sure is None:
            readings = (f"a goal: write goal: {rest}", f"what it is: write an agent, {rest}")
            reader.questions.append(Question(rest, readings))
        if not sure:
            return
    rule = f"what follows “{lead}”" if lead else "it begins as something to do"
    for text in _split_goals(rest):
        reader.parts.append(Part("goal", imperative(text, verbs) if inflected else text, text, rule))


_AFTER_VERB = re.compile(
    r"(?:the|an?|all|every|each|my|our|this|that|these|its?|to|in|into|from|for|on|with|up|as|and|how|why|what|me|us|"
    r"new|\d+)\b|[\x22'`“‘\w]*[./_\x22'`“‘]",
    re.I,
)


def _sounds_like_a_goal(text: str, verbs: frozenset[str]) -> bool | None:
    """Whether a text asks for something to be done; None where it may as well name what the agent is."""
    first, _, rest = text.partition(" ")
    if first.casefold().strip(",:") not in verbs:
        return False
    return True if not rest or _AFTER_VERB.match(rest) else None


def _split_goals(text: str) -> Sequence[str]:
    """Goals stand between semicolons; those inside quotes part nothing."""
    cuts = [word.start for word in words_of(text) if word.text == ";" and not word.quoted]
    places = zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(text)], strict=True)
    found = [re.sub(r"^(?:and|then)\s+", "", text[start:end].strip(" ,.")) for start, end in places]
    return [one for one in found if one]


def with_parts(understood: Understood, parts: Sequence[Part]) -> Understood:
    """What was understood with more parts, where the sentence said nothing of their names."""
    said = {part.name for part in understood.parts}
    return replace(understood, parts=(*understood.parts, *(one for one in parts if one.name not in said)))


def _shown(name: str, value: Any) -> str:
    head, _, kind = name.partition(".")
    if head == "budget" and not check_limits({kind: value}):
        return amount_text(BudgetKind(kind), value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
