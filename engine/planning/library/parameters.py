"""Parameters: what a `{name:type}` of a pattern accepts, and the value it gives.

Templates: strings of a recipe in which parameters are replaced by their values.

`{name}` stands for the value of parameter `name`, `{name|filter}` for the filtered value; filters
may follow one another. Only a lower-case name between single braces counts: `{}`, `{"a": 1}`,
`{x!r}`, `{ x }` and `{HOME}` are plain text, so most program text can be written as it is. A
literal `{name}` is written `{{name}}`. Values are put in once and never looked into again.
"""

from __future__ import annotations

import keyword
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from engine.planning.library.words import Word
from engine.value import dataclass

Value = str | tuple[str, ...]
"""A parameter's value: text, or the items of a list."""


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PROGRAMS = _set(
    "python python3 pip pip3 pytest git ls cat grep find head tail wc mkdir touch cp mv echo diff sort uniq "
    "tree ruff mypy black flake8 coverage tox make which node npm"
)
"""Programs that `run` may start; the first word of an unquoted command is one of them."""

_COUNTED = "one two three four five six seven eight nine ten eleven twelve"
NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED.split(), 1)}
NUMBERS |= {"twenty": "20", "fifty": "50", "hundred": "100"}
"""Numbers that may be written as words."""

_STOP = _set(
    "a an the it its this that these those there and or then to into in of on at from for with by as my our "
    "your me us is are be all every each some any please named called"
)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_VENV = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,99})(?:\[[A-Za-z0-9._,-]{0,100}\])?"
    r"(?:(?:===|==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!_-]{1,40}"
    r"(?:,(?:===|==|>=|<=|~=|!=|<|>)[A-Za-z0-9.*+!_-]{1,40}){0,4})?"
)
_URL = re.compile(r"https?://[^\s'\"<>`]{1,2000}", re.IGNORECASE)
_BARE_PATH = re.compile(r"[^\s'\"`|<>;&*?$]+")
_OPERATOR = re.compile(r"[|<>&;()]+|\$\(.*|`.*")

_NOUNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("file", "script", "module", "program"), ("file",)),
    **dict.fromkeys(("project", "package"), ("project",)),
    **dict.fromkeys(("directory", "folder"), ("directory", "project")),
    "environment": ("venv",),
}
POINTERS = frozenset({"the", "that", "this"})
PRONOUNS = frozenset({"it", "that", "this"})


class Shape(StrEnum):
    """How many words a parameter takes."""

    ONE = "one"
    WORDS = "words"
    """As few words as let the rest of the pattern match."""
    LIST = "list"
    """Items separated by blanks, commas and `and`."""
    REST = "rest"
    """Everything to the end of the clause; only at the end of a pattern."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A value that points back at something named before: `it`, `the file`."""

    text: str
    kinds: tuple[str, ...]
    """Kinds of things it may mean: file, directory, project, venv."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """What a parameter of this type accepts."""

    name: str
    shape: Shape
    accepts: Callable[[Word], bool]
    """Whether a word can be (the first, or an item) of the value."""
    rule: str
    """The rule in words, for messages."""
    kinds: tuple[str, ...] = ()
    """What it may point back at; empty when it cannot."""


def _harmless(text: str) -> bool:
    return not any(ord(char) < 32 or ord(char) == 127 for char in text)


def _path(word: Word) -> bool:
    value = word.value
    if not value.strip() or value.startswith("-") or len(value) > 400 or not _harmless(value):
        return False
    if _URL.match(value):
        return False
    if word.quoted:
        return True
    # A bare `file` or `project` is what `the file` means, never a name; in quotes it is one.
    return not (word.mark or word.key in _STOP or word.key in _NOUNS) and bool(_BARE_PATH.fullmatch(value))


def _filename(word: Word) -> bool:
    leaf = word.value.rsplit("/", 1)[-1]
    return _path(word) and "." in leaf.strip(".")


def _script(word: Word) -> bool:
    # What begins with a program, as in `run 'python x.py'`, is a command and no name of a file.
    program, blank, _ = word.value.partition(" ")
    return _path(word) and word.value.endswith(".py") and not (blank and program in PROGRAMS)


def _full(pattern: re.Pattern[str]) -> Callable[[Word], bool]:
    def accepts(word: Word) -> bool:
        return pattern.fullmatch(word.value) is not None and (word.quoted or word.key not in _STOP)

    return accepts


def _venv(word: Word) -> bool:
    return _full(_VENV)(word) and not word.value.startswith("-") and bool(word.value.strip("."))


def _identifier(word: Word) -> bool:
    value = word.value
    usable = value.isascii() and value.isidentifier() and len(value) <= 100 and not keyword.iskeyword(value)
    return usable and (word.quoted or word.key not in _STOP)


def _number(word: Word) -> bool:
    return word.key in NUMBERS or (word.value.isascii() and word.value.isdigit() and len(word.value) <= 6)


def _package(word: Word) -> bool:
    parts = [word.value] if _REQUIREMENT.fullmatch(word.value) else word.value.split(",")
    return all(_REQUIREMENT.fullmatch(part) for part in parts) and (word.quoted or word.key not in _STOP)


def _command(word: Word) -> bool:
    return bool(word.value.strip()) if word.quoted else word.value in PROGRAMS


def _text(word: Word) -> bool:
    return word.quoted or not word.mark


_PATH_RULE = "a path that does not start with '-'; put it in quotes if it has blanks or is an everyday word"
TYPES: dict[str, ParameterType] = {
    kind.name: kind
    for kind in (
        ParameterType("name", Shape.ONE, _full(_NAME), "letters, digits, '_', '.' and '-' only"),
        ParameterType("identifier", Shape.ONE, _identifier, "a Python name: letters, digits and '_'"),
        ParameterType("path", Shape.ONE, _path, _PATH_RULE, ("file", "directory", "project")),
        ParameterType("file", Shape.ONE, _path, _PATH_RULE, ("file",)),
        ParameterType("filename", Shape.ONE, _filename, "a file name with an extension", ("file",)),
        ParameterType("script", Shape.ONE, _script, "a file name that ends in .py", ("file",)),
        ParameterType("directory", Shape.ONE, _path, _PATH_RULE, ("directory", "project")),
        ParameterType("venv", Shape.ONE, _venv, "letters, digits, '_', '.' and '-' only", ("venv",)),
        ParameterType("quoted", Shape.ONE, lambda word: word.quoted, "text in quotes"),
        ParameterType("number", Shape.ONE, _number, "a whole number"),
        ParameterType("url", Shape.ONE, _full(_URL), "an address that starts with http:// or https://"),
        ParameterType("packages", Shape.LIST, _package, "package names, such as httpx or 'rich>=13'"),
        ParameterType("paths", Shape.LIST, _path, _PATH_RULE, ("file", "directory", "project")),
        ParameterType("filenames", Shape.LIST, _filename, "file names with an extension", ("file",)),
        ParameterType("text", Shape.WORDS, _text, "text, best in quotes"),
        ParameterType("rest", Shape.REST, _text, "text, best in quotes"),
        ParameterType("command", Shape.REST, _command, "a command that starts with an allowed program"),
        ParameterType("program", Shape.WORDS, _command, "a command that starts with an allowed program"),
    )
}
"""Parameter types by the name patterns use."""


COMMANDS = frozenset({"command", "program"})
"""Types whose value is a whole command; after a `program` the pattern may continue."""


def value_of(kind: ParameterType, words: Sequence[Word], source: str) -> Value | Reference:
    """The value of a parameter that took these words of the source."""
    if kind.kinds and (reference := _reference(kind, words)) is not None:
        return reference
    if kind.shape is Shape.LIST:
        items = [word.value for word in words if not (word.mark or word.key in ("and", "&"))]
        if kind.name == "packages":
            items = [part for item in items for part in _requirements(item)]
        return tuple(items)
    if kind.name == "number":
        return NUMBERS.get(words[0].key, words[0].value)
    return words[0].value if len(words) == 1 else source[words[0].start : words[-1].end]


def fault(kind: ParameterType, value: Value) -> str | None:
    """Why the whole value cannot stand although its words can, or None."""
    if kind.name not in COMMANDS or not isinstance(value, str):
        return None
    if not _harmless(value):
        return "the command holds a line break or a control character: give one command on one line"
    lexer = shlex.shlex(value, posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        parts = list(lexer)
        shlex.split(value)
    except ValueError:
        return "a quote in the command is not closed"
    operator = next((part for part in parts if _OPERATOR.fullmatch(part)), None)
    if operator is None:
        return None
    what = f"the command needs a shell ('{operator[:20]}') and there is none"
    return f"{what}: give one plain command per clause"


def _requirements(item: str) -> list[str]:
    return [item] if _REQUIREMENT.fullmatch(item) else item.split(",")


def _reference(kind: ParameterType, words: Sequence[Word]) -> Reference | None:
    keys = [word.key for word in words]
    text = " ".join(word.text for word in words)
    if len(keys) == 1 and keys[0] in PRONOUNS:
        return Reference(text, kind.kinds)
    if len(keys) >= 2 and keys[0] in POINTERS and keys[-1] in _NOUNS:
        return Reference(text, tuple(k for k in _NOUNS[keys[-1]] if k in kind.kinds))
    return None


def points_at(kind: ParameterType, word: Word) -> bool:
    """True when `the WORD` can be a value of this type."""
    return any(k in kind.kinds for k in _NOUNS.get(word.key, ()))


_SLOT = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}|\{([a-z][a-z0-9_]*)((?:\|[a-z]+)*)\}")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_")[:60] or "note"


def _snake(text: str) -> str:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return re.sub(r"\W+", "_", apart).strip("_").lower() or "module"


def _camel(text: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[\W_]+", text) if part) or "Thing"


def _title(text: str) -> str:
    return " ".join(part[:1].upper() + part[1:] for part in re.split(r"[\s_-]+", text) if part)


FILTERS: dict[str, Callable[[str], str]] = {
    "shell": shlex.quote,
    "py": repr,
    "slug": _slug,
    "snake": _snake,
    "camel": _camel,
    "title": _title,
    "stem": lambda text: posixpath.splitext(posixpath.basename(text))[0],
}
"""What may follow a parameter: `shell` quotes one argument of a command, `py` gives a Python literal."""


class TemplateError(ValueError):
    """A template that cannot be read; the message says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a template where a value goes."""

    parameter: str
    filters: tuple[str, ...]


def slots_of(template: str) -> Iterator[Slot]:
    """The slots of a template in order.

    Raises:
        TemplateError: a filter is unknown.
    """
    for match in _SLOT.finditer(template):
        if match.group(1) is None:
            filters = tuple(match.group(3).split("|")[1:])
            for name in filters:
                if name not in FILTERS:
                    raise TemplateError(f"'{match.group(0)}' has an unknown filter: use {', '.join(FILTERS)}")
            yield Slot(match.group(2), filters)


def fill(template: str, values: Mapping[str, Value]) -> str:
    """The template with its slots filled.

    A list is joined by blanks when it is filtered by `shell` (each item quoted by itself), else by commas.

    Raises:
        KeyError: a slot has no value; loading a recipe makes sure that this cannot happen.
    """

    def put(match: re.Match[str]) -> str:
        if match.group(1) is not None:
            return "{" + match.group(1) + "}"
        value, filters = values[match.group(2)], match.group(3).split("|")[1:]
        if isinstance(value, str):
            return _filtered(value, filters)
        return (" " if "shell" in filters else ", ").join(_filtered(item, filters) for item in value)

    return _SLOT.sub(put, template)


def _filtered(text: str, filters: list[str]) -> str:
    for name in filters:
        text = FILTERS[name](text)
    return text
