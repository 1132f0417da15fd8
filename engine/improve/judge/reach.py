"""What code newly reaches for beyond its arguments and results, read from its text; nothing is run.

Most of it is harmless in most programs and none of it is a cheat by itself. Asking questions cannot show what
such code does elsewhere, at another time or for another user, so a person decides on it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from engine.improve.judge.changes import Change

_REACH: dict[str, str] = {
    "reads what surrounds it": "os.environ os.environb os.getenv os.getcwd os.getpid os.getppid os.uname "
    "sys.argv sys.orig_argv sys.flags sys.executable sys.path platform getpass pwd __file__ __name__",
    "starts programs": "subprocess os.system os.popen os.exec* os.spawn* os.fork* os.posix_spawn* os.kill "
    "pty multiprocessing signal",
    "uses the network": "socket ssl urllib.request http ftplib smtplib xmlrpc requests httpx aiohttp urllib3",
    "draws by chance": "random secrets uuid os.urandom",
    "asks the clock or waits": "time datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow "
    "datetime.date.today sched",
    "works beside its caller": "threading _thread concurrent atexit weakref.finalize",
    "turns switches of the interpreter": "gc sys.set* sys.addaudithook sys.monitoring resource faulthandler",
    "looks at the program that it is in": "inspect traceback sys._getframe sys._current_frames sys.modules "
    "sys.meta_path id globals locals __builtins__ builtins importlib __import__ ctypes",
    "runs text as code": "exec eval compile pickle marshal runpy code",
    "touches files": "open io.open pathlib shutil tempfile glob sqlite3 shelve dbm os.path.exists "
    "os.path.isfile os.path.expanduser os.listdir os.scandir os.walk os.remove os.unlink os.rename os.mkdir "
    "os.open",
}
_WORDS = {word: what for what, words in _REACH.items() for word in words.split()}
_PARTS = {
    **dict.fromkeys(("read_text", "write_text", "read_bytes", "write_bytes", "unlink"), "touches files"),
    **dict.fromkeys(
        ("__globals__", "__code__", "__subclasses__", "__builtins__", "__defaults__", "f_back", "f_globals"),
        "looks at the program that it is in",
    ),
}
_PATCHES = "changes what others use"


def added_reach(changes: Sequence[Change]) -> tuple[str, ...]:
    """What changed files reach for more often than before, a sentence without its subject each."""
    before: Counter[tuple[str, str]] = Counter()
    after: Counter[tuple[str, str]] = Counter()
    for change in changes:
        if change.path.endswith(".py"):
            before.update(_reached(change.before))
            after.update(_reached(change.after))
    words: dict[str, list[str]] = {}
    for what, word in sorted(after - before):
        words.setdefault(what, []).append(word)
    return tuple(f"{what} ({', '.join(names[:5])})" for what, names in words.items())


def _reached(data: bytes | None) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(data or b"")
    except (SyntaxError, ValueError, RecursionError):
        return
    imported = dict(_imports(tree))
    tops = {word.partition(".")[0] for word in imported.values()}
    for word in imported.values():
        yield from _known(word)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(name.name == "*" for name in node.names):
            yield "takes all names of a module", node.module or "."
        elif isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load) and _name(node.value, imported).partition(".")[0] in tops:
                yield _PATCHES, ast.unparse(node)
            if node.attr in _PARTS:
                yield _PARTS[node.attr], node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in ("setattr", "delattr"):
                yield _PATCHES, ast.unparse(node.args[0])
            elif node.func.id in ("getattr", "vars") and _name(node.args[0], imported) in imported.values():
                yield "looks at the program that it is in", ast.unparse(node)[:60]
        if isinstance(node, (ast.Attribute, ast.Name)):
            yield from _known(_name(node, imported))


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that imports bind, with what they stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                top = name.name.partition(".")[0]
                yield name.asname or top, name.name if name.asname else top
                yield f"import {name.name}", name.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"


def _name(node: ast.AST, imported: dict[str, str]) -> str:
    """A dotted name with what its first part was imported as; empty where it is none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([imported.get(node.id, node.id), *parts]) if isinstance(node, ast.Name) else ""


def _known(name: str) -> Iterator[tuple[str, str]]:
    for word, what in _WORDS.items():
        if name == word or name.startswith(word.removesuffix("*") + ("" if word.endswith("*") else ".")):
            yield what, name
