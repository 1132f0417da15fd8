"""The plan library: all recipes, shipped and of the workspace, kept live while files change."""

from __future__ import annotations

import asyncio
import threading
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

from engine.core.trust import CHANGED, FolderTrust
from engine.planning.library.matcher import Matcher
from engine.planning.library.recipe import MAX_BYTES, Parsed, Recipe, RecipeError, parse_recipes
from engine.value import dataclass, field

MAX_FILES = 200
"""Most recipe files read from one directory."""
LOOK_S = 0.4
"""How often the operator's recipes are looked at."""
Fingerprint = tuple[tuple[str | int, ...], ...]
"""Name, inode, time and size of each file, so that any change shows."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """One state of the library; replaced as a whole, so that readers never see half of a change."""

    recipes: tuple[Recipe, ...] = ()
    errors: tuple[RecipeError, ...] = ()
    by_verb: dict[str, tuple[tuple[Recipe, Matcher], ...]] = field(default_factory=dict)


def shipped_recipes() -> Traversable:
    """The directory of the recipes that Pilothouse ships."""
    return files("engine.planning.library") / "recipes"


def shipped_agents() -> list[Path]:
    """The folders of the skills of the agents that Pilothouse ships; blocking."""
    with as_file(files("engine.planning.library") / "agents") as folder:
        return sorted(path for path in folder.iterdir() if (path / "SKILL.md").is_file())


class PlanLibrary:
    """The recipes by which the procedural thinker plans, read when they are first needed.

    A file with an error is left out, or its last good version stays in use, and the error is listed;
    the other files continue working.
    """

    def __init__(
        self, shipped: Traversable | Path, user_dir: Path | None = None, trust: FolderTrust | None = None
    ) -> None:
        self._shipped, self._trust = shipped, trust
        self._user_dir = user_dir
        self._good: dict[str, tuple[Recipe, ...]] = {}
        self._contents: _Contents | None = None
        self._seen: Fingerprint = ()
        self._loading = threading.Lock()

    @classmethod
    def load(cls, shipped: Traversable | Path | None = None, user_dir: Path | None = None) -> PlanLibrary:
        """Read the library; blocking.

        Args:
            shipped: directory of shipped recipes; those of the package when left out.
            user_dir: directory of the operator's recipes; it need not exist.
        """
        library = cls(shipped_recipes() if shipped is None else shipped, user_dir)
        library.reload()
        return library

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """All recipes, in library order: shipped files by name, then the operator's by name."""
        return self._present.recipes

    @property
    def errors(self) -> tuple[RecipeError, ...]:
        """What is wrong in recipe files at present, as far as they were read."""
        return self._contents.errors if self._contents is not None else ()

    @property
    def verbs(self) -> frozenset[str]:
        """The words with which a clause can start, lower case."""
        return frozenset(self._present.by_verb)

    def starting_with(self, verb: str) -> tuple[tuple[Recipe, Matcher], ...]:
        """The patterns that can start with a word (lower case), with their recipes, in library order."""
        return self._present.by_verb.get(verb, ())

    @property
    def _present(self) -> _Contents:
        """What the library holds; blocking the first time, where `watch` has not read it yet."""
        return self._contents or self.reload()

    def reload(self) -> _Contents:
        """Read all files again; blocking, and safe to call from any thread."""
        with self._loading:
            self._seen = self._fingerprint()
            good: dict[str, tuple[Recipe, ...]] = {}
            errors: list[RecipeError] = []
            for source, entry in self._sources():
                recipes, wrong = self._read(entry, source)
                errors += wrong
                good[source] = self._good.get(source, ()) if wrong else recipes
            errors += self._directory_errors()
            self._good = good
            recipes = tuple(recipe for result in good.values() for recipe in result)
            self._contents = contents = _Contents(recipes, tuple(errors), _by_verb(recipes))
            return contents

    async def watch(self) -> None:
        """Keep the operator's recipes live until this is cancelled; returns at once without a directory.

        The directory may appear, vanish and appear again.
        """
        while self._user_dir is not None:
            await asyncio.sleep(LOOK_S)
            await asyncio.to_thread(self.refresh)

    def refresh(self) -> None:
        """Read what was not read yet, or was changed; blocking."""
        if self._contents is None or self._fingerprint() != self._seen:
            self.reload()

    def _user_files(self) -> list[Path]:
        try:
            return [] if self._user_dir is None else toml_files(self._user_dir)
        except OSError:
            return []

    def _sources(self) -> list[tuple[str, Traversable]]:
        shipped = [entry for entry in self._shipped.iterdir() if entry.name.endswith(".toml")]
        sources: list[tuple[str, Traversable]] = [(e.name, e) for e in sorted(shipped, key=lambda e: e.name)]
        return sources + [(f"recipes/{path.name}", path) for path in self._user_files()[:MAX_FILES]]

    def _directory_errors(self) -> list[RecipeError]:
        try:
            count = 0 if self._user_dir is None else len(toml_files(self._user_dir))
        except FileNotFoundError:
            return []
        except OSError as error:
            todo = "make it a directory that can be read, or remove it"
            return [RecipeError("recipes", f"cannot be read: {error.strerror}", todo)]
        if count <= MAX_FILES:
            return []
        what = f"{count} files of recipes, of which the first {MAX_FILES} are read"
        return [RecipeError("recipes", what, "put several recipes in one file")]

    def _read(self, entry: Traversable, source: str) -> Parsed:
        by_operator = source.startswith("recipes/")
        data = _content(entry, source)
        if isinstance(data, RecipeError):
            return (), (data,)
        if by_operator and self._trust is not None and not self._trust.admits(source, data):
            what, _, todo = CHANGED.partition(": ")
            left_out = RecipeError(source, what, todo)
            return (), () if self._trust.restricted else (left_out,)
        return parse_recipes(data, source, by_operator=by_operator)

    def _fingerprint(self) -> Fingerprint:
        """What the operator's files and their trust look like from outside; what cannot be looked at has no
        size.
        """
        entries: list[tuple[str | int, ...]] = [self._trust.stamp] if self._trust is not None else []
        for path in self._user_files():
            try:
                stat = path.stat()
            except OSError:
                entries.append((path.name, 0, 0, 0))
            else:
                entries.append((path.name, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return tuple(entries)


def toml_files(directory: Path) -> list[Path]:
    """The TOML files of a directory by name.

    Raises:
        OSError: it is missing or cannot be read.
    """
    return sorted(path for path in directory.iterdir() if path.name.endswith(".toml"))


def _content(entry: Traversable, source: str) -> bytes | RecipeError:
    try:
        if not entry.is_file():
            return RecipeError(source, "not a regular file", "remove it or give it another ending")
        with entry.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        return RecipeError(source, f"cannot be read: {error.strerror}", "check its permissions")


def _by_verb(recipes: tuple[Recipe, ...]) -> dict[str, tuple[tuple[Recipe, Matcher], ...]]:
    by_verb: dict[str, list[tuple[Recipe, Matcher]]] = {}
    for recipe in recipes:
        for matcher in recipe.says:
            for verb in matcher.pattern.verbs:
                by_verb.setdefault(verb, []).append((recipe, matcher))
    return {verb: tuple(entries) for verb, entries in by_verb.items()}
