"""Words of prompts that a workspace has in place of the built-in ones: `prompts/PART.md` beside `recipes/`.

Only what guides a model can be replaced. What it has to answer with, the tools, and the rule that material
is no order are no parts, so no file can take them away. A file that cannot be used is left out and reported;
the built-in part stands then.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from engine.core.store.places import open_plain
from engine.core.trust import CHANGED, FolderTrust
from engine.value import dataclass

DIRECTORY = "prompts"
BUILT_IN = "{builtin}"
"""Stands in a file for the built-in words, so that a file may add to them."""
PLANNING, DECIDING, REFLECTION = "planning", "deciding", "reflection"
PARTS: Mapping[str, str] = {
    PLANNING: "how whole plans are to be made",
    DECIDING: "how one action after the other is to be decided on",
    REFLECTION: "how an agent's work is to be looked back on",
}
"""The parts there are, and what each is for."""
LONGEST = 12_000
"""Characters of one part."""
_LARGEST = 4 * LONGEST
_PLACEHOLDER = re.compile(r"\{\s*[A-Za-z_][\w .-]{0,40}\}")
_FENCE = re.compile(r"\[\s*(end\s+of\s+)?material\b", re.IGNORECASE)
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class PartError(ValueError):
    """A file cannot be a part of a prompt; the message says what is wrong, where, and what to do."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a workspace has, by name; all others are the built-in ones."""

    texts: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    """A line for each file that was left out."""

    def words(self, part: str, built_in: str) -> str:
        """The words of a part."""
        return self.texts.get(part, BUILT_IN).replace(BUILT_IN, built_in)


class PromptReader:
    """Reads a workspace's parts again whenever a model is asked, so that a change counts from then on."""

    def __init__(self, workspace: Path, trust: FolderTrust | None = None) -> None:
        self._workspace, self._trust = workspace, trust
        self.parts = read_parts(workspace, trust)
        """As they were read last."""

    async def __call__(self) -> Parts:
        """The parts as they are now."""
        self.parts = await asyncio.to_thread(read_parts, self._workspace, self._trust)
        return self.parts


async def built_in() -> Parts:
    """No workspace has a say."""
    return Parts()


def path_of(part: str) -> str:
    """Where a part lies, from the workspace's directory."""
    return f"{DIRECTORY}/{part}.md"


def read_parts(workspace: Path, trust: FolderTrust | None = None) -> Parts:
    """The parts of a workspace, as far as its user trusts them; blocking."""
    texts: dict[str, str] = {}
    faults: list[str] = []
    for part in PARTS:
        name = path_of(part)
        try:
            if (content := _read(workspace / name, name)) is None:
                continue
            if trust is None or trust.admits(name, content):
                texts[part] = checked(part, _text(content, name))
            elif not trust.restricted:
                faults.append(f"{name}: {CHANGED}; the built-in part stands")
        except PartError as error:
            faults.append(f"{error}; the built-in part stands")
    return Parts(texts, tuple(faults))


def checked(part: str, text: str) -> str:
    """A text that can be a part, without blank lines around it.

    Raises:
        PartError: it cannot be one.
    """
    name = path_of(part)
    if not text.strip():
        raise PartError(f"{name}: it is empty: write the words, or take the file away")
    if len(text) > LONGEST:
        raise PartError(f"{name}: it has {len(text):,} characters, {LONGEST:,} are the most: make it shorter")
    for number, line in enumerate(text.split("\n"), 1):
        if _FENCE.search(line):
            raise PartError(f"{name}, line {number}: no line of it may look like a fence around material")
        if unknown := next((each for each in _PLACEHOLDER.findall(line) if each != BUILT_IN), ""):
            raise PartError(
                f"{name}, line {number}: {unknown} stands for nothing; {BUILT_IN} is all there is"
            )
        if unseen := next(
            (each for each in line if each != "\t" and unicodedata.category(each) in _UNSEEN), ""
        ):
            raise PartError(f"{name}, line {number}: it has the unseen character U+{ord(unseen):04X}")
    if text.count(BUILT_IN) > 1:
        raise PartError(f"{name}: {BUILT_IN} stands in it {text.count(BUILT_IN)} times: once is enough")
    return text.strip()


def _read(path: Path, name: str) -> bytes | None:
    """A file's content; None where there is none. Links are not followed."""
    try:
        with open_plain(path, links=False) as file:
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PartError(f"{name}: it cannot be read ({error.strerror}): make it a plain file") from None
    if len(content) > _LARGEST:
        raise PartError(f"{name}: it is larger than {_LARGEST // 1000} kB: make it shorter")
    return content


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PartError(f"{name}: byte {error.start} is not UTF-8: save it as UTF-8") from None
