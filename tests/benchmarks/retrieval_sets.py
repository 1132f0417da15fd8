"""Questions and the texts that answer them: public sets from a folder, and the repository's own pairs.

No public set is part of the repository. Each is read from `FOLDER/NAME`; where it is not there, an error says
how to get it. A question belongs to the training half or to the test half by the hash of its text, so whoever
tunes on the one half has not seen the other; the repository's own test half is what was written last.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

PAIRS = Path(__file__).parents[1] / "engine" / "memory" / "retrieval_pairs.toml"


class MissingSetError(Exception):
    """A set that is not in the folder; the text says how to get it."""


class Question(NamedTuple):
    """A question and the names of the texts that answer it; none where nothing does."""

    text: str
    answers: frozenset[str]
    training: bool
    """Whether weights may be chosen on it."""

    @classmethod
    def of(cls, text: str, answers: Iterable[str] = ()) -> Question:
        """In the half that the hash of its text says."""
        return cls(text, frozenset(answers), hashlib.sha256(text.encode()).digest()[0] % 2 == 0)


class Haystack(NamedTuple):
    """Texts that are searched together, and what is asked of them."""

    name: str
    texts: dict[str, str]
    questions: tuple[Question, ...]

    def asked(self, foreign: Sequence[Question]) -> Haystack:
        """With as many questions that nothing here answers."""
        nothing = [Question.of(one.text) for one in foreign[: len(self.questions)]]
        return self._replace(questions=(*self.questions, *nothing))


class RetrievalSet(NamedTuple):
    """A set of one haystack or more."""

    name: str
    haystacks: tuple[Haystack, ...]


def locomo(folder: Path) -> RetrievalSet:
    """Ten long conversations; the texts are turns, and a question is answered by its evidence."""
    paths = sorted(folder.glob("**/[0-9]*.json"))
    whole = sorted(folder.glob("**/locomo10.json"))
    if not paths and not whole:
        raise MissingSetError(
            "the repository snap-research/locomo, data/locomo10.zip unpacked or data/locomo10.json "
            "(CC BY-NC 4.0, for evaluation only)"
        )
    found = [json.loads(path.read_text(encoding="utf-8")) for path in whole or paths]
    samples = (
        [(one["conversation"], one["qa"]) for one in found[0]]
        if whole
        else [(one, one["qa"]) for one in found]
    )
    stacks = [_conversation(str(at), talk, asked) for at, (talk, asked) in enumerate(samples)]
    # A question about one pair of speakers has no answer in the talk of another.
    return RetrievalSet("LoCoMo", tuple(one.asked(stacks[at - 1].questions) for at, one in enumerate(stacks)))


_UNANSWERABLE = 5
"""Category of LoCoMo's questions that are about the wrong speaker."""


def _conversation(name: str, talk: dict[str, object], asked: list[dict[str, Any]]) -> Haystack:
    texts = {}
    for key, turns in talk.items():
        if re.fullmatch(r"session_\d+", key) and isinstance(turns, list):
            for turn in turns:
                shown = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                texts[turn["dia_id"]] = f"{turn['speaker']}: {turn['text']}{shown}"
    questions = []
    for one in asked:
        named = re.findall(r"D\d+:\d+", " ".join(map(str, one.get("evidence") or ())))
        answers = frozenset(named) & texts.keys()
        if answers and one["category"] != _UNANSWERABLE:
            questions.append(Question.of(str(one["question"]), answers))
    return Haystack(name, texts, tuple(questions))


def cranfield(folder: Path) -> RetrievalSet:
    """1,400 abstracts on aerodynamics, 225 questions."""
    paths = [folder / name for name in ("cran.all.1400", "cran.qry", "cranqrel")]
    if not all(path.exists() for path in paths):
        raise MissingSetError(
            "cran.all.1400, cran.qry and cranqrel of the Cranfield collection (free for research)"
        )
    texts = {ident: _joined(parts, "W") for ident, parts in _smart(paths[0])}
    # Judgements name a question by its place in the file, and not by the number that stands there.
    asked = {str(at): _joined(parts, "W") for at, (_, parts) in enumerate(_smart(paths[1]), 1)}
    judged = [line.split() for line in paths[2].read_text().splitlines() if line.strip()]
    judgements = [(row[0], row[1]) for row in judged if 1 <= int(row[2]) <= 4]
    return RetrievalSet("Cranfield", (_judged("cranfield", texts, asked, judgements),))


def cisi(folder: Path) -> RetrievalSet:
    """1,460 abstracts on information science, 76 questions with judgements."""
    paths = [folder / name for name in ("CISI.ALL", "CISI.QRY", "CISI.REL")]
    if not all(path.exists() for path in paths):
        raise MissingSetError("CISI.ALL, CISI.QRY and CISI.REL of the CISI collection (free for research)")
    texts = {ident: _joined(parts, "TW") for ident, parts in _smart(paths[0])}
    asked = {ident: _joined(parts, "W") for ident, parts in _smart(paths[1])}
    judged = [line.split() for line in paths[2].read_text().splitlines() if line.strip()]
    return RetrievalSet("CISI", (_judged("cisi", texts, asked, [(row[0], row[1]) for row in judged]),))


def _smart(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The records of a file in the format of SMART: `.I` begins one, a dot and a letter one of its parts."""
    for record in re.split(r"^\.I +", path.read_text(encoding="utf-8", errors="replace"), flags=re.M)[1:]:
        head, *rest = re.split(r"^\.([A-Z])\s*$", record, flags=re.M)
        yield head.strip(), dict(zip(rest[::2], rest[1::2], strict=True))


def _joined(parts: dict[str, str], names: str) -> str:
    return " ".join(" ".join(parts.get(name, "").split()) for name in names).strip()


def _judged(
    name: str, texts: dict[str, str], asked: dict[str, str], judgements: list[tuple[str, str]]
) -> Haystack:
    texts = {ident: text for ident, text in texts.items() if text}
    answers = {
        query: frozenset(ident for _, ident in rows) & texts.keys()
        for query, rows in groupby(sorted(judgements), key=lambda row: row[0])
    }
    return Haystack(
        name, texts, tuple(Question.of(asked[query], found) for query, found in answers.items() if found)
    )


def own_pairs(_: Path) -> RetrievalSet:
    """The repository's own: office, code, machines; half of the questions share no word with their answer."""
    table = tomllib.loads(PAIRS.read_text(encoding="utf-8"))
    kinds = ("paraphrase", "mixed", "keyword")
    halves = {
        training: [pair for kind in kinds for pair in rows[kind]]
        for training, rows in ((True, table), (False, table["held_out"]))
    }
    texts = {answer: answer for pairs in halves.values() for _, answer in pairs}
    texts |= {text: text for text in table["distractors"]}
    questions = [
        Question(query, frozenset([answer]), half)
        for half, pairs in halves.items()
        for query, answer in pairs
    ]
    nothing = [Question(text, frozenset(), at % 2 == 0) for at, text in enumerate(table["nothing"])]
    return RetrievalSet("own pairs", (Haystack("own", texts, (*questions, *nothing)),))


READERS: dict[str, Callable[[Path], RetrievalSet]] = {
    "own": own_pairs,
    "locomo": locomo,
    "cranfield": cranfield,
    "cisi": cisi,
}


def read_sets(folder: Path) -> tuple[list[RetrievalSet], list[str]]:
    """All sets that are there, and a sentence for each that is not."""
    there, missing = [], []
    for name, read in READERS.items():
        try:
            there.append(read(folder / name))
        except MissingSetError as error:
            missing.append(f"{name}: put into {folder / name}: {error}")
    return _with_foreign(there), missing


def _with_foreign(sets: list[RetrievalSet]) -> list[RetrievalSet]:
    """A set whose questions all have an answer gets those of the next: nothing in it answers them."""
    out = []
    for at, one in enumerate(sets):
        stacks = one.haystacks
        if all(question.answers for stack in stacks for question in stack.questions):
            others = [stack for other in (*sets[at + 1 :], *sets[:at]) for stack in other.haystacks]
            foreign = [question for stack in others for question in stack.questions if question.answers]
            stacks = tuple(stack.asked(foreign) for stack in stacks)
        out.append(one._replace(haystacks=stacks))
    return out
