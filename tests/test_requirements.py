"""What installs is pinned by hashes that match pyproject.toml, and nothing else gets in."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TOP = Path(__file__).parent.parent
FILES = TOP / "requirements"
PYPROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS, GROUPS = PYPROJECT["project"]["optional-dependencies"], PYPROJECT["dependency-groups"]
NEEDED = {
    "run": PYPROJECT["project"]["dependencies"],
    "build": [*PYPROJECT["build-system"]["requires"], *GROUPS["build"]],
    "test": [
        *PYPROJECT["project"]["dependencies"],
        *EXTRAS["test"],
        *EXTRAS["lint"],
        *EXTRAS["embed"],
        *GROUPS["build"],
    ],
    "embed": [*PYPROJECT["project"]["dependencies"], *EXTRAS["embed"]],
    "bench": EXTRAS["bench"],
    "postgres": EXTRAS["postgres"],
    "fleet": EXTRAS["fleet"],
    "supply": GROUPS["supply"],
}
PINNED = re.compile(r"([\w.-]+)==([\w.!+-]+)((?: ; [^\\]+)?)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n")


def pins(name: str) -> dict[str, tuple[str, str]]:
    """Version and marker of each package of a file."""
    text = (FILES / f"{name}.txt").read_text(encoding="utf-8")
    return {found[1]: (found[2], found[3]) for found in PINNED.finditer(text)}


@pytest.mark.fast
@pytest.mark.parametrize("name", NEEDED)
def test_each_line_is_a_version_with_hashes_and_no_address(name: str) -> None:
    text = (FILES / f"{name}.txt").read_text(encoding="utf-8")
    left = re.sub(r"^ *#.*\n", "", PINNED.sub("", text), flags=re.MULTILINE)
    assert not left
    assert "://" not in text
    assert str(TOP) not in text


@pytest.mark.fast
@pytest.mark.parametrize("name", NEEDED)
def test_each_dependency_is_pinned_to_a_version_that_pyproject_allows(name: str) -> None:
    known = pins(name)
    for dependency in map(Requirement, NEEDED[name]):
        assert canonicalize_name(dependency.name) in known, f"{dependency}: run make requirements"
        version, marker = known[canonicalize_name(dependency.name)]
        assert dependency.specifier.contains(version, prereleases=True), (
            f"{dependency}: run make requirements"
        )
        assert not marker


@pytest.mark.fast
@pytest.mark.parametrize("name", ["run", "embed", "build", "bench"])
def test_what_is_used_is_what_was_tested(name: str) -> None:
    tested = {package: version for package, (version, _) in pins("test").items()}
    others = {package: version for package, (version, _) in pins(name).items()}
    assert {package: tested.get(package, version) for package, version in others.items()} == others
    assert name == "bench" or others.keys() <= tested.keys()


@pytest.mark.fast
def test_every_install_takes_hashes_or_no_index(tmp_path: Path) -> None:
    goals = ["setup", "setup-test", "setup-bench", "requirements", "sbom"]
    command = ["make", "-n", f"VENV={tmp_path}", *goals]
    done = subprocess.run(command, cwd=TOP, env=plain(), capture_output=True, text=True, check=True)
    installs = re.findall(r"-m pip .*?install (?:[^\\\n|;]|\\\n)+", done.stdout)
    assert len(installs) == 9
    for install in installs:
        assert {"--require-hashes", "--only-binary"} <= {*install.split()} or {"--no-index", "--no-deps"} <= {
            *install.split()
        }, install


@pytest.mark.fast
def test_an_install_without_hashes_is_asked_for_by_name(tmp_path: Path) -> None:
    command = ["make", "-n", f"VENV={tmp_path}", "UNHASHED=1", "setup-bench"]
    done = subprocess.run(command, cwd=TOP, env=plain(), capture_output=True, text=True, check=True)
    assert "-e '.[test,lint,embed]'" in done.stdout
    assert "-e '.[test,lint,embed,bench]'" in done.stdout
    assert "UNHASHED is set" in done.stdout


def plain(**more: str) -> dict[str, str]:
    """The environment without what tells pip or make how to work."""
    told = re.compile(r"PIP_\w+|UNHASHED|MAKE\w*|MFLAGS")
    return {**{name: value for name, value in os.environ.items() if not told.fullmatch(name)}, **more}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make setup` needs, with an environment that has only pip."""
    place = tmp_path_factory.mktemp("checkout")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(TOP / name, place)
    shutil.copytree(FILES, place / "requirements")
    subprocess.run([sys.executable, "-m", "venv", str(place / ".venv")], check=True)
    return place


@pytest.mark.parametrize(
    ("served", "why"),
    [(False, "No matching distribution found"), (True, "DO NOT MATCH THE HASHES")],
    ids=["nothing", "another file"],
)
def test_what_the_index_lacks_or_serves_in_its_place_is_not_installed(
    checkout: Path, tmp_path: Path, served: bool, why: str
) -> None:
    name, (version, _) = next(iter(pins("run").items()))
    first = name.replace("-", "_")
    if served:
        name = first.replace("-", "_")
        wheel = tmp_path / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as file:
            about = f"{name}-{version}.dist-info"
            file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {first}\nVersion: {version}\n")
            file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{about}/RECORD", "")
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(
        ["make", "setup"], cwd=checkout, env=plain(**index), capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert why in done.stderr
    assert (FILES / "refused.txt").read_text(encoding="utf-8").strip() in done.stderr
    assert not (checkout / ".venv" / ".installed").exists()
    installed = {
        path.name.partition("-")[0] for path in checkout.glob(".venv/lib/*/site-packages/*.dist-info")
    }
    assert installed <= {"pip", "setuptools"}


@pytest.mark.parametrize(
    ("packages", "code"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0),
        ([{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}], 1),
        ([{"name": "a", "skip_reason": "not found"}, {"name": "b", "version": "1", "vulns": []}], 69),
        ([{"name": "a", "skip_reason": "not found"}], 69),
        ([], 69),
    ],
    ids=["none", "one", "one was not looked up", "none was looked up", "nothing"],
)
def test_an_audit_is_good_only_where_each_package_was_looked_up(
    packages: list[dict[str, Any]], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runpy.run_path(str(FILES / "audit.py"))["outcome"](packages) == code
    printed = capsys.readouterr()
    assert ("not audited" in printed.err) == (code == 69)
    assert ("CVE-1" in printed.out) == (code == 1)


def test_an_audit_without_its_database_says_so() -> None:
    # Port 1 of this machine answers nobody; pip-audit need not even be installed here.
    command = [sys.executable, str(FILES / "audit.py"), "-s", "osv", "--osv-url", "http://127.0.0.1:1/"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 69
    assert "not audited" in done.stderr
    assert "could not be reached" in done.stderr


@pytest.mark.fast
def test_an_install_says_how_far_it_is_and_ends_as_pip_does() -> None:
    pip = "import sys; print('Collecting textual', flush=True); sys.stdin.read(); sys.exit(3)"
    ours, its = os.openpty()
    command = [sys.executable, str(FILES / "progress.py"), "-c", pip, str(FILES / "run.txt")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=its) as shown:
        assert shown.stdin is not None
        said = b""
        while f"fetched 1 of {len(pins('run'))} packages".encode() not in said:
            said += os.read(ours, 4096)
        shown.stdin.close()
        assert shown.wait() == 3
    os.close(ours)
    os.close(its)
