"""The rules by which words of a sentence become settings: budget, parent, style, network, tools."""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.domain.budgets import BudgetKind
from engine.mastermind.reading import Question, Reader, shown

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


def _amounts(reader: Reader) -> None:
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
            said = ", ".join(shown(name.replace("__", "."), value) for name, value in amounts.items())
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


def _parents(reader: Reader) -> None:
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


def _styles(reader: Reader) -> None:
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


def _thinkers(reader: Reader) -> None:
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


def _networks(reader: Reader) -> None:
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


def _tools(reader: Reader) -> None:
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


def _approvals(reader: Reader) -> None:
    for match in reader.found(_ASKS):
        preset = "ask" if match["all"] else "ask-changes" if match["changes"] else "ask-irreversible"
        reader.take(match, "what it asks about before it does it", approvals=preset)


RULES: tuple[Callable[[Reader], None], ...] = (
    _amounts,
    _parents,
    _styles,
    _thinkers,
    _networks,
    _approvals,
    _tools,
)
"""In the order in which they take words; what one has taken the next does not see."""
