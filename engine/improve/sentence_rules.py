"""The rules by which words of a sentence become settings: budget, parent, style, network, programs.

`SentenceReader` is a sentence while it is being read: what has been taken of it, and what is left over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from engine.core.budgets import BudgetKind, amount_text, check_limits
from engine.core.text import clean_line
from engine.planning.library.words import words_of
from engine.value import dataclass, field


@dataclass(frozen=True, slots=True)
class SentencePart:
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
        setting = clean_line(setting_text(self.name, self.value), limit=300)
        return f"{self.name}: {setting}   ({words}{self.rule})"


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Words that can be read in two ways."""

    words: str
    readings: tuple[str, ...]
    """Each with how to write it."""

    @property
    def line(self) -> str:
        """The question on one line."""
        return f"“{clean_line(self.words, limit=80)}”: {'; or '.join(self.readings)}?"


@dataclass(slots=True)
class SentenceReader:
    """The sentence, and what has been taken of it so far."""

    text: str
    agents: frozenset[str]
    programs: frozenset[str]
    parts: list[SentencePart] = field(default_factory=list)
    questions: list[Ambiguity] = field(default_factory=list)
    masked: str = ""
    """The text with marks in the place of what is quoted or taken; as long as the text."""

    def __post_init__(self) -> None:
        self.text = self.masked = self.text.translate(_MARKS)
        for word in words_of(self.text):
            if word.quoted:
                self._cover(word.start, word.end, "\x01")

    def _cover(self, start: int, end: int, mark: str) -> None:
        self.masked = f"{self.masked[:start]}{mark * (end - start)}{self.masked[end:]}"

    def found(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Where a pattern fits what is not taken yet; each match sees what was taken before it."""
        at = 0
        while (match := pattern.search(self.masked, at)) is not None:
            yield match
            at = max(match.end(), at + 1)

    def words(self, match: re.Match[str]) -> str:
        """The words of a match, as they stand in the sentence."""
        return self.text[match.start() : match.end()].strip(" ,;")

    def take(self, match: re.Match[str], rule: str, **values: Any) -> None:
        """Take the words of a match for settings; `__` in a name stands for the dot."""
        self.take_to(match, match.end(), rule, **values)

    def take_to(self, match: re.Match[str], end: int, rule: str, **values: Any) -> None:
        """Take the words from where a match begins to a place."""
        words = self.text[match.start() : end].strip(" ,;")
        self.parts += [
            SentencePart(name.replace("__", "."), value, words, rule) for name, value in values.items()
        ]
        self._cover(match.start(), end, "\0")

    def ask(self, match: re.Match[str], *readings: str) -> None:
        """Ask how the words of a match are meant; they stay where they are."""
        self.questions.append(Ambiguity(self.words(match), readings))

    def settle_conflicts(self) -> None:
        """Ask where the same thing is said in two ways; saying it twice alike is no matter."""
        kept: dict[str, SentencePart] = {}
        for part in self.parts:
            other = kept.setdefault(part.name, part)
            if other.value != part.value:
                both = f"{other.words} … {part.words}"
                readings = [
                    f"{part.name} is {setting_text(part.name, reading.value)}" for reading in (other, part)
                ]
                self.questions.append(Ambiguity(both, (readings[0], f"{readings[1]}: say only one")))
        self.parts = list(kept.values())

    @property
    def left(self) -> str:
        """What was not taken, with quoted text as it was."""
        pieces = [
            self.text[match.start() : match.end()].strip(" ,;\t\n") for match in _LEFT.finditer(self.masked)
        ]
        return " ".join(filter(None, pieces)).strip(" ,;")


_LEFT = re.compile("[^\0]+")
_MARKS = {0: " ", 1: " "}
"""The marks themselves are no part of a sentence."""


def setting_text(name: str, value: Any) -> str:
    """A setting's value for a person."""
    head, _, kind = name.partition(".")
    if head == "budget" and not check_limits({kind: value}):
        return amount_text(BudgetKind(kind), value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


_NUMBER = r"\d(?:[\d,]{0,15}\d)?(?:\.\d{1,6})?"
_UNITS: dict[str, tuple[BudgetKind, float]] = {
    **dict.fromkeys(("dollar", "usd"), (BudgetKind.USD, 1)),
    "cent": (BudgetKind.USD, 0.01),
    "token": (BudgetKind.TOKENS, 1),
    "call": (BudgetKind.CALLS, 1),
    **dict.fromkeys(("action", "step"), (BudgetKind.ACTIONS, 1)),
    **dict.fromkeys(("second", "sec", "s"), (BudgetKind.SECONDS, 1)),
    **dict.fromkeys(("minute", "min"), (BudgetKind.SECONDS, 60)),
    **dict.fromkeys(("hour", "h"), (BudgetKind.SECONDS, 3600)),
}
_UNIT = rf"(?:model\s+)?(?P<unit>{'|'.join(_UNITS)})s?\b"
_AMOUNT = rf"(?:\$\s?(?P<usd>{_NUMBER})|(?P<number>{_NUMBER})\s?(?P<times>k|thousand|million)?\s?{_UNIT})"
_PLAIN = re.sub(r"\?P<\w+>", "?:", _AMOUNT)
_AMOUNT_RE = re.compile(_AMOUNT, re.I)
_AMOUNTS = rf"(?P<amounts>{_PLAIN}(?:\s*(?:,|,?\s*and)\s+{_PLAIN})*)"
_MOST = r"(?:at\s+most|up\s+to|no\s+more\s+than|not\s+more\s+than)\s+"
_BUDGET = re.compile(
    r"[,;]?\s*(?:\band\s+)?(?:\b(?:with|on|within|has|having|under)\s+)?(?:\b(?:an?|the|its\s+own)\s+)?"
    rf"\bbudget\s*(?:of|is|:|=)?\s*(?:at\s+most\s+|up\s+to\s+)?(?:{_AMOUNTS}|(?P<bare>{_NUMBER})(?![\w.]))",
    re.I,
)
_SPENDING = re.compile(
    r"[,;]?\s*(?:\band\s+)?\b(?:spend(?:s|ing)?|us(?:es|ing)|cost(?:s|ing)?|tak(?:es|ing))\s+"
    rf"{_MOST}{_AMOUNTS}",
    re.I,
)
_AT_MOST = re.compile(rf"[,;]?\s*(?:\b(?:for|with|within|in)\s+)?\b{_MOST}{_AMOUNTS}", re.I)


def _amounts(reader: SentenceReader) -> None:
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
            text = ", ".join(setting_text(name.replace("__", "."), value) for name, value in amounts.items())
            words = reader.words(match)
            reader.ask(
                match,
                f"its budget is {text}: write with a budget of …",
                f"it belongs to the goal: write '{words}'",
            )


def _read_amounts(text: str) -> dict[str, float | int]:
    amounts: dict[str, float | int] = {}
    for match in _AMOUNT_RE.finditer(text):
        kind, factor = _UNITS[(match["unit"] or "usd").lower()]
        times = {"k": 1_000, "thousand": 1_000, "million": 1_000_000}.get((match["times"] or "").lower(), 1)
        amount = round(float((match["usd"] or match["number"]).replace(",", "")) * times * factor, 6)
        whole = kind not in (BudgetKind.USD, BudgetKind.SECONDS)
        amounts[f"budget__{kind.value}"] = int(amount) if whole and amount == int(amount) else amount
    return amounts


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


def _parents(reader: SentenceReader) -> None:
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


_WITH_AND = r"[,;]?\s*(?:\band\s+)?"
_WHO = r"(?:\b(?:that|which|who)\s+)?"
_ASKS = _WITH_AND + _WHO + r"\bask(?:s|ing)\s+(?:me\s+|the\s+operator\s+)?(?:first\s+)?before\s+"
_NET = r"(?:network|internet)\b(?:\s+access)?"
_STYLE_RULE = "how it thinks: decide is one action after the other"
_ASKS_RULE = "what it asks about before it does it"
_FIXED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        _WITH_AND + _WHO + r"\b(?:decid(?:es|ing)|act(?:s|ing)|think(?:s|ing))\s+(?:on\s+)?"
        r"(?:one\s+(?:action|step)\s+(?:after\s+the\s+other|at\s+a\s+time)|step\s+by\s+step)",
        _STYLE_RULE,
        {"style": "decide"},
    ),
    (
        _WITH_AND + _WHO + r"\bplan(?:s|ning)\s+(?:ahead|first|beforehand|everything\s+first)",
        _STYLE_RULE,
        {"style": "plan"},
    ),
    (
        r"[,;]?\s*\b(?:(?:without|with\s+no|using\s+no)\s+(?:an?\s+|any\s+|the\s+)?model\b"
        r"|(?:by|with|from|using)\s+(?:the\s+)?recipes(?:\s+(?:only|alone))?\b)",
        "who plans for it",
        {"thinker": "procedural"},
    ),
    (
        r"[,;]?\s*\b(?:with|using|by)\s+(?:(?:an?\s+|the\s+)(?:language\s+)?model|claude)\b",
        "who plans for it",
        {"thinker": "claude"},
    ),
    (
        _WITH_AND + rf"(?:\b(?:without|with\s+no)\s+(?:any\s+|the\s+)?{_NET}|\boffline\b)",
        "its programs reach nothing",
        {"sandbox__network": "off"},
    ),
    (
        _ASKS + r"(?:(?:every|each|any)\s+action|everything|(?:it\s+does|doing)\s+anything)\b",
        _ASKS_RULE,
        {"approvals": "ask"},
    ),
    (
        _ASKS
        + r"(?:(?:it\s+)?chang(?:es|ing)\s+(?:anything|something)|(?:it\s+)?writ(?:es|ing)|any\s+change)\b",
        _ASKS_RULE,
        {"approvals": "ask-changes"},
    ),
    (
        _ASKS + r"(?:(?:anything|what)\s+(?:that\s+)?cannot\s+be\s+undone|anything\s+irreversible"
        r"|(?:it\s+)?runs?(?:ning)?\s+programs)\b",
        _ASKS_RULE,
        {"approvals": "ask-irreversible"},
    ),
)
"""Words that always mean the same, with the rule in words and the settings."""
_FIXED_RULES = [(re.compile(pattern, re.I), rule, settings) for pattern, rule, settings in _FIXED]
_STYLE = re.compile(
    _WITH_AND + _WHO + r"(?:\b(?:in|with)\s+the\s+style\s+|\bstyle\s*[:=]\s*)(?P<style>decide|plan)\b", re.I
)
_NETWORK = re.compile(
    _WITH_AND + rf"\b(?:with|using)\s+(?:the\s+)?{_NET}"
    r"(?:\s+(?:on\s+)?ports?\s+(?P<ports>\d{1,5}(?:\s*(?:,|and)\s*\d{1,5})*))?",
    re.I,
)


def _fixed(reader: SentenceReader) -> None:
    for pattern, rule, settings in _FIXED_RULES:
        for match in reader.found(pattern):
            reader.take(match, rule, **settings)
    for match in reader.found(_STYLE):
        reader.take(match, _STYLE_RULE, style=match["style"].lower())
    for match in reader.found(_NETWORK):
        if match["ports"]:
            ports = [int(port) for port in re.findall(r"\d+", match["ports"])]
            rule = "its programs reach these ports, where the workspace allows it"
            reader.take(match, rule, sandbox__network="ports", sandbox__ports=ports)
        else:
            rule = "its programs reach the network, where the workspace allows it"
            reader.take(match, rule, sandbox__network="on")


_ONLY = re.compile(r"[,;]?\s*\b(?:(?:with|using)\s+only|only\s+(?:with|using))\s+", re.I)
_NEXT_NAME = re.compile(r"(?P<joint>\s*(?:,\s*and|,|\band)\s+)?(?P<name>[\w+-]+(?:\.[\w+-]+)*)")


def _tools(reader: SentenceReader) -> None:
    for match in reader.found(_ONLY):
        names: list[str] = []
        end = match.end()
        while (following := _NEXT_NAME.match(reader.masked, end)) and bool(following["joint"]) == bool(names):
            if following["name"] not in reader.programs:
                rest = reader.masked[following.end() :].lstrip(" .")
                if names and (not rest or rest[0] in ",;\0"):
                    allowed = ", ".join(sorted(reader.programs))
                    what = f"{following['name']} is no program here: programs are {allowed}"
                    reader.questions.append(Ambiguity(reader.text[match.start() : following.end()], (what,)))
                break
            names.append(following["name"])
            end = following.end()
        if names:
            reader.take_to(match, end, "programs that it may run, and no others", sandbox__programs=names)


RULES: tuple[Callable[[SentenceReader], None], ...] = (_amounts, _parents, _fixed, _tools)
"""In the order in which they take words; what one has taken the next does not see."""
