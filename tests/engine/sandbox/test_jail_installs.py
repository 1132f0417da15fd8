"""Python's own tools in the jail: venvs, wheels, hostile packages, pytest; sandbox spec §6 cases 31, 66."""

from __future__ import annotations

import functools
import http.server
import io
import json
import os
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.sandbox.policy import Tier
from tests.engine.sandbox.jail_runs import Room, environment, ids, python_of, takes_seconds
from tests.rounds import FULL

HOSTILE = """
import json, os
found = []
for name in ("outside/secret", "operator/.ssh/id_ed25519", "state/private", "../../../etc/shadow"):
    path = BASE + "/" + name
    try: found.append(open(path).read())
    except OSError: pass
for path in (BASE + "/operator/.bashrc", BASE + "/outside/new", "/usr/lib/planted"):
    try: open(path, "a").write("x"); found.append(path)
    except OSError: pass
found += [name for name, value in os.environ.items() if "the secret" in value]
with open(os.path.join(BASE, "root", "told"), "a") as file: file.write(json.dumps(found) + "\\n")
"""
"""What a package does while it is built; everything that it gets is told."""
BACKEND = """
import os, zipfile
def build_wheel(directory, settings=None, metadata=None):
    name = "hostile-1.0-py3-none-any.whl"
    made = open(os.path.join(BASE, "root", "hostile.whl"), "rb")
    with made, open(directory + "/" + name, "wb") as file:
        file.write(made.read())
    return name
"""
SETUP = "from setuptools import setup\nsetup(name='old', version='1.0', py_modules=[])\n"


def wheel(name: str) -> bytes:
    """A wheel with one module that says hello."""
    about = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": f"def hello(): return 'hello from {name}'",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD"))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return buffer.getvalue()


@contextmanager
def package_index(directory: Path) -> Iterator[int]:
    """An index on this machine that knows one package, `farewell`; yields its port."""
    (directory / "simple/farewell").mkdir(parents=True)
    name = "farewell-1.0-py3-none-any.whl"
    (directory / "simple/farewell" / name).write_bytes(wheel("farewell"))
    (directory / "simple/farewell/index.html").write_text(f'<a href="{name}">{name}</a>')

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None: ...

    handler = functools.partial(Quiet, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def plant(place: Room) -> None:
    """A good wheel, a package with a hostile build backend of its own, and one with a hostile setup.py."""
    base = f"BASE = {str(place.base)!r}\n"
    settings = '[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n'
    for name, content in (
        ("greeting-1.0-py3-none-any.whl", wheel("greeting")),
        ("hostile.whl", wheel("hostile")),
        ("hostile/evil.py", (base + HOSTILE + BACKEND).encode()),
        ("hostile/pyproject.toml", settings.encode()),
        ("old/setup.py", (base + HOSTILE + SETUP).encode()),
    ):
        (place.root / name).parent.mkdir(exist_ok=True)
        (place.root / name).write_bytes(content)
        for made in (place.root / name, (place.root / name).parent):
            os.chown(made, place.root.stat().st_uid, place.root.stat().st_gid)


pytestmark = takes_seconds(full=FULL)


def test_packages_are_installed_and_hostile_ones_learn_nothing(
    place: Room, tier: Tier, tmp_path: Path
) -> None:
    made = place.run("python", "-m", "venv", "v", tier=tier)
    assert made["return_code"] == 0, made
    plant(place)
    install = (str(place.root / "v/bin/pip"), "install", "--no-build-isolation", "--no-deps")
    done = place.run(*install, "./greeting-1.0-py3-none-any.whl", "./hostile", tier=tier)
    assert (done["return_code"], done["untouched"]) == (0, True), done
    told = (place.root / "told").read_text().splitlines()
    # What comes of the older way depends on the tools in the venv; that its setup.py ran does not.
    old = place.run(*install, "./old", tier=tier)
    told += (place.root / "told").read_text().splitlines()[len(told) :]
    assert {tuple(json.loads(line)) for line in told} == {()}
    assert len(told) > 1
    assert old["untouched"]
    with package_index(tmp_path) as port:
        index = ("--index-url", f"http://127.0.0.1:{port}/simple")
        done = place.run(*install, *index, "farewell", tier=tier, network="ports", ports=[port])
        assert done["return_code"] == 0, done
    script = "import farewell, greeting; print(greeting.hello(), farewell.hello())"
    said = place.run(str(place.root / "v/bin/python"), "-c", script, tier=tier)
    assert said["stdout"] == "hello from greeting hello from farewell"


def test_pytest_runs_from_packages_that_the_operator_grants(place: Room, tier: Tier) -> None:
    packages = Path(pytest.__file__).parent.parent
    front = f"import sys; sys.path.append({str(packages)!r}); import pytest"
    usable = subprocess.run(
        [python_of(place.user), "-c", front], env=environment(), **ids(place.user), check=False
    )
    if usable.returncode != 0:
        pytest.skip(f"{packages} is of no use to this user's Python")
    (place.root / "test_it.py").write_text(
        "import subprocess, sys\n"
        "def test_it(tmp_path):\n"
        "    assert subprocess.run([sys.executable, '-c', '']).returncode == 0\n"
        "    (tmp_path / 'f').write_text('x')\n"
        "def test_that(capsys):\n    print('said'); assert capsys.readouterr().out == 'said\\n'\n"
    )
    script = f"{front}; sys.exit(pytest.main(['-q', '-p', 'no:xdist']))"
    done = place.python(script, tier=tier, read_only=[str(packages)])
    assert (done["return_code"], "2 passed" in done["stdout"]) == (0, True), done
    assert (place.root / ".pytest_cache").is_dir()
