"""The wheel holds all that is used: recipes, missions, themes, styles, the guide, types, the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.guide_programs import check_said, ran
from tests.patience import PATIENCE_S

TOP = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from here."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), str(TOP)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    return next(place.glob("pilothouse-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The bin directory of an otherwise empty environment with the wheel in it."""
    home = wheel.parent / "env"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, text=True)
    # The dependencies come from this environment, so that the test needs no network; a path named in a
    # .pth file has its own .pth files left alone, so the checkout's editable install stays out.
    (site,) = home.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def run(installed: Path, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(installed / "pilothouse"), *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_the_installed_command_lists_the_missions(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "missions", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = [mission["name"] for mission in json.loads(done.stdout.splitlines()[-1])["missions"]]
    assert names[:2] == ["first-flight", "api-client"]
    assert "demo-debate" in names


def test_the_installed_command_flies_the_first_mission(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "run", "--mission", "first-flight", "--json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["status"] == "GOAL_ACHIEVED"


def test_the_installed_command_has_the_examples(installed: Path, tmp_path: Path) -> None:
    done = run(installed, "examples", "copy", "sample", "ws", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ws/sandbox/sample/stats.py").is_file()


def test_the_code_that_runs_is_the_wheels(installed: Path, tmp_path: Path) -> None:
    code = (
        "import engine, app.cockpit; from themes.loading import load_themes; "
        "print(engine.__file__); print(len(load_themes(None)[0]))"
    )
    done = subprocess.run(
        [str(installed / "python"), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    where, count = done.stdout.split()
    assert Path(where).is_relative_to(installed.parent)
    assert int(count) >= 4


def test_the_installed_command_has_the_guide(installed: Path, tmp_path: Path) -> None:
    from app import guide

    for topic in guide.topics():
        done = run(installed, "help", topic, cwd=tmp_path)
        assert (done.returncode, done.stdout.rstrip("\n")) == (0, guide.page(topic).rstrip("\n")), done.stderr


def test_the_programs_of_the_guide_run_as_they_stand(installed: Path, tmp_path: Path) -> None:
    check_said(ran(tmp_path, installed / "python"))


def test_type_checkers_are_told_that_the_packages_are_typed(installed: Path) -> None:
    (site,) = installed.parent.glob("lib/python*/site-packages")
    assert all((site / package / "py.typed").is_file() for package in ("app", "widgets", "engine", "themes"))


@pytest.mark.parametrize("tool", ["uv", "pipx"])
def test_the_tools_that_the_readme_names_install_it(wheel: Path, tmp_path: Path, tool: str) -> None:
    program = shutil.which(tool, path=f"{TOP / '.venv' / 'supply' / 'bin'}:{os.environ['PATH']}")
    if program is None:
        pytest.skip(f"{tool} is not installed: it was NOT tried (make requirements brings uv)")
    homes = {
        **{
            name: str(tmp_path / name)
            for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PIPX_HOME", "PIPX_BIN_DIR")
        },
        "UV_HTTP_TIMEOUT": "10",
        "UV_HTTP_RETRIES": "0",
        "PIP_RETRIES": "0",
        "UV_PYTHON": sys.executable,
    }
    words = [program, *(["tool"] if tool == "uv" else []), "install", "--python", sys.executable, str(wheel)]
    done = subprocess.run(
        words, env={**os.environ, **homes}, capture_output=True, text=True, timeout=PATIENCE_S
    )
    if done.returncode and re.search("fetch|connect|registry|No matching distribution", done.stderr):
        pytest.skip(f"{tool} reaches no index with what Pilothouse needs: it was NOT tried")
    assert done.returncode == 0, done.stderr
    bin_ = tmp_path / ("UV_TOOL_BIN_DIR" if tool == "uv" else "PIPX_BIN_DIR")
    assert run(bin_, "--version", cwd=tmp_path).stdout.startswith("pilothouse ")
    assert "complete -" in run(bin_, "completion", "bash", cwd=tmp_path).stdout
