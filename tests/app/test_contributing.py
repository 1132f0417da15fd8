"""The examples of CONTRIBUTING.md are the code that is there, and what documents name exists."""

from __future__ import annotations

import importlib
import re
from functools import cache, reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "widgets", "engine", "themes")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FLOWS = ARCHITECTURE.split("## Four flows")[1].split("\n## ")[0]
EXAMPLES = re.findall(
    r"^```(?:python|toml)\n# (\S+\.(?:py|toml))\n(.*?)^```$", CONTRIBUTING, re.MULTILINE | re.DOTALL
)
DOCUMENTS = (
    *(
        ROOT / name
        for name in (
            "README.md",
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "requirements/README.md",
        )
    ),
    *sorted((ROOT / "engine").glob("*/README.md")),
)
ADDED = {
    "A command": {"app/commands/notes.py"},
    "An event": {"engine/core/notes.py", "engine/agent/decisions/goals.py"},
    "A tool": {"engine/tools/belief_tool.py", "engine/tools/registry.py"},
    "A pane": {"widgets/panes/world.py", "app/projection/agent_views.py"},
    "A model provider": {"engine/models/completion.py", "engine/models/choice.py"},
}


@cache
def modules() -> tuple[str, ...]:
    """The names of all modules of the project."""
    return tuple(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    )


def exists(name: str) -> bool:
    """Whether a dotted name, perhaps without its first packages, is a module or something in one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        end = ".".join(parts[:count])
        for module in modules():
            if module == end or module.endswith(f".{end}"):
                try:
                    reduce(getattr, parts[count:], importlib.import_module(module))
                except AttributeError:
                    continue
                return True
    return False


def quoted(text: str) -> set[str]:
    """What stands in back-ticks outside of blocks of code."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


@pytest.mark.parametrize("kind", ADDED)
def test_each_kind_of_addition_has_its_example(kind: str) -> None:
    section = CONTRIBUTING.split(f"### {kind}\n")[1].split("\n## ")[0].split("\n### ")[0]
    assert set(re.findall(r"^# (\S+\.py)$", section, re.MULTILINE)) == ADDED[kind]


@pytest.mark.parametrize(("path", "code"), EXAMPLES, ids=lambda value: value[:30])
def test_an_example_is_the_code_that_is_there_and_short(path: str, code: str) -> None:
    assert len(code.splitlines()) < 40
    assert code.strip() in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_and_names_in_a_document_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    paths = {
        name for name in quoted(text) if re.fullmatch(rf"({'|'.join(PACKAGES)}|tests)(/[\w.]+)+/?", name)
    }
    dotted = {name for name in quoted(text) if re.fullmatch(rf"({'|'.join(PACKAGES)})(\.\w+)+", name)}
    assert not {path for path in paths if not (ROOT / path).exists()}
    assert not {name for name in dotted if not exists(name)}


def test_the_flows_of_the_architecture_name_code_that_is_there() -> None:
    names = {name for name in quoted(FLOWS) if re.fullmatch(r"\w+(\.\w+)+", name)}
    assert len(names) > 20
    assert not {name for name in names if not exists(name)}
