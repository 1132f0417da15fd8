"""How much of what answers a question memory finds, beside plain bm25, an embedder alone and other libraries.

All methods see the same texts in one run, and those that embed get the same vectors. Weights and thresholds
are chosen on the training half of the questions only; every figure is of the test half. Recall is of what ten
(or five) places can hold at most; intervals are 95 % by resampling the questions. Run it with
`pilothouse bench memory --sets FOLDER`. Other libraries run where `FOLDER/peers` is a virtual environment
with them, and vectors are kept in `FOLDER/vectors.db` from one run to the next. `--choose` says instead which
weights do best on the training half, each fifth of it by what the others chose. `--model` asks the model of
the environment (ANTHROPIC_BASE_URL, PILOTHOUSE_MODEL) to rewrite and to order, and says what that gains
and costs.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sqlite3
import subprocess
import tempfile
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from engine.core.memory import MemoryType
from engine.core.ports import SystemClock
from engine.core.store.sqlite import SqliteJournal
from engine.memory.embedder_choice import MINILM, EmbedderChoice
from engine.memory.embedding import Embedder, Kind, Vector
from engine.memory.memories import HybridSearch, StoreMemory
from engine.memory.memory import Memory
from engine.memory.rewriting import ORDER_S, REWRITE_S, RewriteError, search_rewritten
from engine.memory.workflows import CreateWorkflow
from engine.models.choice import NO_MODEL, ModelChoice
from engine.planning.thinkers.query_rewriter import ModelRewriter
from tests.benchmarks.retrieval_sets import Haystack, Question, RetrievalSet, read_sets

T = TypeVar("T")
Found = list[tuple[str, float]]
"""Names of texts and their scores, best first."""
Method = Callable[[Haystack], list[Found]]
"""What is found for each question of a haystack."""

VECTORS = "vectors.db"
PLACES = 10
RESAMPLES = 400
TOGETHER = 200


class Figures(NamedTuple):
    """Of one method on the test half of one set."""

    recall_5: float
    recall_10: float
    mrr: float
    abstention: float


# ------------------------------------------------------------------ methods


def bm25(stack: Haystack) -> list[Found]:
    """One FTS5 table with Porter's stemmer, all words of the question, and nothing else."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create virtual table words using fts5(text, tokenize = 'porter unicode61')")
        connection.executemany("insert into words values(?)", [(text,) for text in stack.texts.values()])
        names = list(stack.texts)
        sql = f"select rowid, -rank from words where words match ? order by rank limit {PLACES}"
        out = []
        for question in stack.questions:
            asked = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question.text))
            out.append([(names[row - 1], score) for row, score in connection.execute(sql, (asked,))])
        return out


def ours(stack: Haystack, embedder: EmbedderChoice | None = None, **arguments: Any) -> list[Found]:
    """The whole way: stored through the journal, asked as an agent asks."""
    return ours_each(stack, [arguments], embedder)[0]


def ours_each(
    stack: Haystack, arguments: Sequence[dict[str, Any]], embedder: EmbedderChoice | None
) -> list[list[Found]]:
    """The same for several sets of arguments, stored once."""

    async def asked(memory: Memory, names: dict[str, str]) -> list[list[Found]]:
        out: list[list[Found]] = []
        for more in arguments:
            out.append([])
            for question in stack.questions:
                found = await memory.do(HybridSearch(query=question.text, limit=PLACES, nearest=True, **more))
                # What counts for abstention is what it says itself.
                out[-1].append([(names[match.memory.id], float(found.relevant)) for match in found])
        return out

    return asyncio.run(_stored(stack, embedder, asked))


async def _stored(
    stack: Haystack, embedder: EmbedderChoice | None, then: Callable[[Memory, dict[str, str]], Awaitable[T]]
) -> T:
    """Store the texts, and do something with the memory and their names by its ids."""
    with tempfile.TemporaryDirectory() as directory:
        return await _stored_in(Path(directory), stack, embedder, then)


async def _stored_in(
    directory: Path,
    stack: Haystack,
    embedder: EmbedderChoice | None,
    then: Callable[[Memory, dict[str, str]], Awaitable[T]],
) -> T:
    store = await SqliteJournal.open(directory, clock=SystemClock())
    memory = Memory(directory, store, clock=SystemClock(), embedder=embedder)
    try:
        workflow = (await memory.do(CreateWorkflow(title="bench"))).id
        names: dict[str, str] = {}
        every = list(stack.texts.items())
        for at in range(0, len(every), TOGETHER):
            asked = [
                memory.do(StoreMemory(workflow_id=workflow, content=text, memory_type=MemoryType.FACT))
                for _, text in every[at : at + TOGETHER]
            ]
            stored = await asyncio.gather(*asked)
            names |= {one.id: name for one, (name, _) in zip(stored, every[at:], strict=False)}
        if embedder is not None:
            await _embedded(memory, len(set(stack.texts.values())))
        return await then(memory, names)
    finally:
        await memory.close()
        await store.close()


async def _embedded(memory: Memory, texts: int) -> None:
    """Wait until all texts have a vector."""
    async with asyncio.timeout(3_600):
        while memory.status.vectors < texts:
            await memory.do(HybridSearch(query="vectors", limit=1))
            await asyncio.sleep(0.05)


class Cached:
    """An embedder whose vectors are kept in a file; see `Embedder`."""

    def __init__(self, path: Path, embedder: Embedder) -> None:
        self._embedder = embedder
        self.id, self.dim = embedder.id, embedder.dim
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute(
            "create table if not exists vectors("
            "embedder text, text text, vector blob, primary key(embedder, text))"
        )

    async def embed(self, texts: Sequence[str], kind: Kind) -> list[Vector]:
        """Those that are not known are asked for."""
        missing = [text for text in dict.fromkeys(texts) if self._known(text) is None]
        if missing:
            made = await self._embedder.embed(missing, kind)
            rows = [(self.id, text, vector.tobytes()) for text, vector in zip(missing, made, strict=True)]
            self._connection.executemany("insert into vectors values(?, ?, ?)", rows)
        return [array("f", self._known(text) or b"") for text in texts]

    def _known(self, text: str) -> bytes | None:
        asked = (self.id, text)
        sql = "select vector from vectors where embedder = ? and text = ?"
        row = self._connection.execute(sql, asked).fetchone()
        return None if row is None else bytes(row[0])

    async def close(self) -> None:
        """End the embedder, and let go of the file."""
        await self._embedder.close()
        self._connection.close()


class CachedChoice(EmbedderChoice):
    """The small model of this machine, its vectors kept from one run to the next."""

    folder: ClassVar[Path]

    def open(self) -> Embedder:
        """See `EmbedderChoice`."""
        return Cached(self.folder / VECTORS, super().open())


def alone(stack: Haystack) -> list[Found]:
    """By the cosine of the embedder's vectors and nothing else."""
    import numpy as np  # late: it is there with an embedder only

    async def vectors(texts: list[str], kind: Kind) -> Any:
        embedder = CachedChoice(MINILM).open()
        try:
            return np.array([vector.tolist() for vector in await embedder.embed(texts, kind)])
        finally:
            await embedder.close()

    matrix = asyncio.run(vectors(list(stack.texts.values()), "passage"))
    asked = asyncio.run(vectors([question.text for question in stack.questions], "query"))
    names = list(stack.texts)
    out = []
    for cosines in asked @ matrix.T:
        best = np.argsort(-cosines)[:PLACES]
        out.append([(names[place], float(cosines[place])) for place in best])
    return out


class Peers:
    """Other libraries, each run in a process of its own by the Python of their environment."""

    NAMES = ("chromadb", "mem0", "lancedb")

    def __init__(self, folder: Path) -> None:
        self._python = folder / "peers" / "bin" / "python"
        self._vectors = folder / VECTORS

    def there(self) -> list[str]:
        """Those that are installed."""
        if not self._python.exists():
            return []
        asked = f"import importlib.util as u; print(*(n for n in {self.NAMES!r} if u.find_spec(n)))"
        run = subprocess.run([self._python, "-c", asked], capture_output=True, text=True, check=True)
        return run.stdout.split()

    def ask(self, peer: str, stack: Haystack) -> list[Found]:
        """What a peer finds."""
        told = {"texts": stack.texts, "questions": [question.text for question in stack.questions]}
        run = subprocess.run(
            [self._python, Path(__file__).with_name("retrieval_peers.py"), peer, self._vectors],
            input=json.dumps(told),
            capture_output=True,
            text=True,
            check=True,
        )
        return [[(name, score) for name, score in found] for found in json.loads(run.stdout.splitlines()[-1])]


# ------------------------------------------------------------------ figures


def _of_one(question: Question, found: Found) -> tuple[float, float, float]:
    hits = [name in question.answers for name, _ in found[:PLACES]]
    first = next((1 / rank for rank, hit in enumerate(hits, 1) if hit), 0.0)
    return (
        sum(hits[:5]) / min(5, len(question.answers)),
        sum(hits) / min(PLACES, len(question.answers)),
        first,
    )


def _abstention(asked: Sequence[tuple[bool, float]], threshold: float) -> float:
    """F1 of saying that there is nothing, where there is nothing."""
    said = [(not answered, score < threshold) for answered, score in asked]
    right = sum(nothing and quiet for nothing, quiet in said)
    wrong = sum(nothing != quiet for nothing, quiet in said)
    return 2 * right / (2 * right + wrong) if right else 0.0


def _score(found: Found) -> float:
    return found[0][1] if found else -1.0


def threshold_for(training: Sequence[Sequence[tuple[bool, float]]]) -> float:
    """The score below which it is best to say that there is nothing: one for all sets, which count alike."""
    scores = sorted(score for asked in training for _, score in asked)
    tried = scores[:: max(1, len(scores) // 200)]
    return max(tried, key=lambda one: sum(_abstention(asked, one) for asked in training), default=0.0)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    dice = random.Random(5)
    means = sorted(_mean(dice.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-RESAMPLES // 40 - 1]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


class Measured(NamedTuple):
    """A method's answers to every question of every set."""

    method: str
    answers: dict[str, list[tuple[Question, Found]]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One for each set."""
        halves = {
            training: {
                name: [
                    (bool(question.answers), _score(found))
                    for question, found in asked
                    if question.training == training
                ]
                for name, asked in self.answers.items()
            }
            for training in (True, False)
        }
        threshold = threshold_for(list(halves[True].values()))
        for name, asked in self.answers.items():
            tested = [
                _of_one(question, found)
                for question, found in asked
                if question.answers and not question.training
            ]
            columns = list(zip(*tested, strict=True))
            row: dict[str, Any] = {"set": name, "method": self.method, "n": len(tested)}
            for title, column in zip(("recall@5", "recall@10", "MRR"), columns, strict=True):
                row[title] = round(_mean(column), 3)
                row[f"{title} interval"] = [round(end, 3) for end in _interval(column)]
            row["abstention F1"] = round(_abstention(halves[False][name], threshold), 3)
            yield row


def measure(title: str, method: Method, sets: Sequence[RetrievalSet]) -> Measured:
    """Ask a method everything."""
    answers = {}
    for one in sets:
        answers[one.name] = [
            pair for stack in one.haystacks for pair in zip(stack.questions, method(stack), strict=True)
        ]
    return Measured(title, answers)


def line(row: dict[str, Any]) -> str:
    """A row as a line of the table."""
    parts = [f"{row['set']:<10} {row['method']:<24}"]
    for title in ("recall@5", "recall@10", "MRR"):
        low, high = row[f"{title} interval"]
        parts.append(f"{row[title]:.3f} ({low:.2f}–{high:.2f})")
    return "  ".join([*parts, f"{row['abstention F1']:.2f}", f"n={row['n']}"])


def rows(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line of the table, and the row that it shows."""
    sets, missing = read_sets(folder)
    for sentence in missing:
        yield sentence, {"missing": sentence}
    yield (
        f"{'set':<10} {'method':<24}  {'recall@5':<17}  {'recall@10':<17}  {'MRR':<17}  abstention F1",
        {"header": True},
    )
    for title, method in _methods(folder):
        try:
            measured = measure(title, method, sets)
        except subprocess.CalledProcessError as error:
            told = (error.stderr.strip().splitlines() or ["it says nothing"])[-1]
            yield f"{title} could not be asked: {told}", {"method": title, "fault": told}
            continue
        for row in measured.rows():
            yield line(row), row


WEIGHTS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""What words count for, as a multiple of likeness."""
FOLDS = 5


def choose(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """How each weight does on the training half, and the one that is chosen for all sets together."""
    sets, _ = read_sets(folder)
    CachedChoice.folder = folder
    arguments = [
        {"semantic_weight": round(1 / (1 + weight), 4), "keyword_weight": round(weight / (1 + weight), 4)}
        for weight in WEIGHTS
    ]
    scores: dict[str, list[list[float]]] = {}
    for one in sets:
        for stack in one.haystacks:
            asked = tuple(each for each in stack.questions if each.training and each.answers)
            found = ours_each(stack._replace(questions=asked), arguments, CachedChoice(MINILM))
            each = [
                [sum(_of_one(question, by[place])[:2]) / 2 for by in found]
                for place, question in enumerate(asked)
            ]
            scores.setdefault(one.name, []).extend(each)
    means = {name: [_mean(column) for column in zip(*each, strict=True)] for name, each in scores.items()}
    yield "mean of recall@5 and @10, training half", {"weights": list(WEIGHTS)}
    for name, row in means.items():
        figures = "  ".join(f"{weight:g}: {mean:.3f}" for weight, mean in zip(WEIGHTS, row, strict=True))
        yield f"{name:<10} {figures}", {"set": name, "means": row}
    chosen = [_best_weight(scores, fold) for fold in range(FOLDS)]
    held = [_fold_mean(scores, fold, weight) for fold, weight in enumerate(chosen)]
    best = _best_weight(scores, None)
    text = f"chosen: {WEIGHTS[best]:g}; by fold: {', '.join(f'{WEIGHTS[one]:g}' for one in chosen)}"
    yield f"{text}; held-out folds {_mean(held):.3f}", {"chosen": WEIGHTS[best]}


def _best_weight(scores: dict[str, list[list[float]]], without: int | None) -> int:
    """The place of the weight that does best on all folds but one; each set counts alike."""
    folds = [fold for fold in range(FOLDS) if fold != without]
    return max(range(len(WEIGHTS)), key=lambda place: sum(_fold_mean(scores, fold, place) for fold in folds))


def _fold_mean(scores: dict[str, list[list[float]]], fold: int, place: int) -> float:
    return _mean([_mean([row[place] for row in each[fold::FOLDS]]) for each in scores.values()])


# ------------------------------------------------------------------ with a model

PATIENCE_S = 600.0
"""How long an answer is waited for here; what came too late for a search is counted."""


class Step:
    """What one of a model's two tasks took, and what was found after it."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.found: list[Found] = []
        self.calls = self.tokens = self.failed = self.late = self.plain = 0
        self.seconds = 0.0

    async def timed(self, asked: Awaitable[tuple[tuple[str, ...], int]]) -> tuple[tuple[str, ...], int]:
        """An answer, with what it took counted."""
        begin = time.perf_counter()
        self.calls += 1
        try:
            answer = await asked
        except RewriteError:
            self.failed += 1
            raise
        else:
            self.tokens += answer[1]
            return answer
        finally:
            took = time.perf_counter() - begin
            self.seconds += took
            self.late += took > self.limit_s


class Watched:
    """A model's help, watched; see `Rewriter`."""

    def __init__(self, rewriter: ModelRewriter) -> None:
        self._rewriter, self.name = rewriter, rewriter.name
        self.steps = {"rewritten": Step(REWRITE_S), "reranked": Step(ORDER_S)}
        self.joined: list[str] | None = None
        """What was found before the model ordered it."""

    async def others(self, query: str) -> tuple[tuple[str, ...], int]:
        """See `Rewriter`."""
        self.joined = None
        return await self.steps["rewritten"].timed(self._rewriter.others(query))

    async def order(self, query: str, texts: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
        """See `Rewriter`."""
        self.joined = list(texts)
        return await self.steps["reranked"].timed(self._rewriter.order(query, texts))


def with_model(folder: Path, questions: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a model's help gains and costs, on so many questions of the test half of each set."""
    choice = ModelChoice.from_environment(os.environ)
    if choice is None:
        yield NO_MODEL, {"missing": NO_MODEL}
        return
    sets, _ = read_sets(folder)
    CachedChoice.folder = folder
    embedders = [None, *([] if CachedChoice(MINILM).missing else [CachedChoice(MINILM)])]
    for one in sets:
        stack = one.haystacks[0]
        asked = [each for each in stack.questions if each.answers and not each.training]
        asked = asked[:: -(-len(asked) // questions)]  # of every kind, as these stand one behind the other
        stack = stack._replace(questions=tuple(asked))
        for embedder in embedders:
            base = "ours, with embedder" if embedder is not None else "ours, words"
            plain, steps = asyncio.run(_helped(stack, embedder, choice))
            for title, found, step in [(base, plain, None), *((n, s.found, s) for n, s in steps.items())]:
                row = _plain_row(one.name, title if step is None else f"{base}, {title}", asked, found)
                text = f"{row['set']:<10} {row['method']:<32}" + "".join(
                    f"{row[name]:7.3f}" for name in MEANS
                )
                if step is not None:
                    row |= {
                        name: value for name, value in vars(step).items() if name not in ("found", "limit_s")
                    }
                    each = step.seconds / max(1, step.calls)
                    text += f"  {step.calls} calls, {step.tokens:,} tokens, {each:.1f} s each; "
                    text += (
                        f"{step.failed} failed, {step.late} after {step.limit_s:g} s, {step.plain} left plain"
                    )
                yield f"{text}  n={len(asked)}", row


async def _helped(
    stack: Haystack, embedder: EmbedderChoice | None, choice: ModelChoice
) -> tuple[list[Found], dict[str, Step]]:
    client = choice.client()
    watched = Watched(ModelRewriter(client, choice.name))

    async def asked(memory: Memory, names: dict[str, str]) -> list[Found]:
        out = []
        for question in stack.questions:
            request = HybridSearch(query=question.text, limit=PLACES, nearest=True)
            out.append([(names[match.memory.id], 1.0) for match in await memory.do(request)])
            found = await search_rewritten(memory.do, request, watched, (PATIENCE_S, PATIENCE_S))
            watched.steps["reranked"].plain += not found.note.startswith("asked")
            ordered = [(names[match.memory.id], 1.0) for match in found]
            joined = [(names[ident], 1.0) for ident in watched.joined or ()][:PLACES]
            watched.steps["rewritten"].found.append(joined or ordered)
            watched.steps["reranked"].found.append(ordered)
        return out

    try:
        return await _stored(stack, embedder, asked), watched.steps
    finally:
        await client.close()


MEANS = ("recall@5", "recall@10", "MRR")


def _plain_row(name: str, method: str, asked: Sequence[Question], found: Sequence[Found]) -> dict[str, Any]:
    columns = zip(*(_of_one(one, by) for one, by in zip(asked, found, strict=True)), strict=True)
    means = {title: round(_mean(column), 3) for title, column in zip(MEANS, columns, strict=True)}
    return {"set": name, "method": method, **means, "n": len(asked)}


def _methods(folder: Path) -> Iterator[tuple[str, Method]]:
    yield "plain bm25", bm25
    yield "ours, words", ours
    CachedChoice.folder = folder
    choice = CachedChoice(MINILM)
    if choice.missing:
        return
    yield "ours, with embedder", partial(ours, embedder=choice)
    yield "embedder alone", alone
    peers = Peers(folder)
    for peer in peers.there():
        yield peer, partial(peers.ask, peer)
