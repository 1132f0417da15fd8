# make run   opens the cockpit (or runs its first mission headless where there is no terminal)
# make test  runs lint and the whole suite; needs nothing but Python 3.11 or newer
# make test-fast  runs the part that needs no terminal and no cockpit, in about a minute
# make test-extras  installs asyncpg and Ray and runs what is kept in PostgreSQL, and a small fleet of engines, on
#                   servers that the tests start; make endurance-fleet has 600 agents and kills each thing 20 times
# make endurance  repeats at full length what the suite repeats a few times
# make soak  lets a cockpit work for MINUTES (a day), and says what grows in it by the hour
# make bench-evolve  plants bugs and slownesses in PROJECTS (60) of public packages, drawn by SEED (1), and lets
#                    campaigns find them; it fetches the packages
# make security  tries the hundred cases of the jail's catalogue and prints each result
# make requirements  pins anew what installs, with its hashes; make audit asks for known vulnerabilities of it
# make sbom  builds what a release has into dist/, with the list of what it needs
PYTHON ?= python3
# Tests start many programs; each would compile this one anew where no bytecode is kept.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup setup-test setup-bench setup-extras run test test-fast test-extras endurance endurance-fleet soak security bench bench-evolve lint screenshots recordings requirements audit dist sbom clean

setup: $(VENV)/.installed
setup-test: $(VENV)/.installed-test
setup-bench: $(VENV)/.installed-bench
setup-extras: $(VENV)/.installed-extras

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Pilothouse needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }

# $(call install,FILES,EXTRAS): what is in requirements/ by its hashes and as wheels, so that no code of theirs
# runs while they install; then the project alone, built with what is there.
PIP := -m pip install --quiet --disable-pip-version-check
HASHED := --require-hashes --only-binary :all:
COMMA := ,
REFUSED = { cat requirements/refused.txt >&2; exit 1; }
ifdef UNHASHED
install = echo "UNHASHED is set: what the index serves is taken as it is" >&2; $(BIN)/python $(PIP) -e '.$(2)'
else
install = $(BIN)/python requirements/progress.py $(PIP:--quiet=) $(HASHED) $(1:%=-r requirements/%.txt) || $(REFUSED); \
  $(BIN)/python $(PIP) --no-index --no-deps --no-build-isolation -e .
endif

$(VENV)/.installed: pyproject.toml requirements/run.txt requirements/build.txt | $(VENV)/bin/python
	@echo "installing Pilothouse into $(VENV): once, and it may take some minutes …" >&2
	@$(call install,run build)
	@touch $@

$(VENV)/.installed-test: pyproject.toml requirements/test.txt | $(VENV)/bin/python
	@echo "installing Pilothouse with its test tools into $(VENV): once, and it may take some minutes …" >&2
	@$(call install,test,[test$(COMMA)lint$(COMMA)embed])
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: requirements/bench.txt $(VENV)/.installed-test
	@echo "installing what the benchmarks compare with into $(VENV): once, and it may take some minutes …" >&2
	@$(call install,bench,[test$(COMMA)lint$(COMMA)embed$(COMMA)bench])
	@touch $@

$(VENV)/.installed-extras: requirements/fleet.txt $(VENV)/.installed-test
	@echo "installing what optional parts need into $(VENV): once …" >&2
	@$(call install,fleet,[test$(COMMA)lint$(COMMA)embed$(COMMA)fleet])
	@touch $@

run: setup
	@mkdir -p workspace
	@$(BIN)/pilothouse --workspace ./workspace --mission first-flight

lint: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

# In a new clone each of the five would compile all tests and what they import; so one does it for them first.
test: lint
	@ls tests/__pycache__/*.pyc >/dev/null 2>&1 || $(BIN)/python -m pytest --collect-only -q >/dev/null || true
	$(BIN)/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder

# The part of the suite that needs no terminal and no cockpit.
test-fast: setup-test
	$(BIN)/python -m pytest -n 4 -m fast

# The server is Debian's `postgresql` or another on the path; where there is none, the tests skip and say so.
test-extras: setup-extras
	PILOTHOUSE_TEST_POSTGRES=1 $(BIN)/python -m pytest -rs -n 2 --dist loadfile -m postgres
	$(BIN)/python -m tests.benchmarks.postgres

endurance-fleet: setup-extras
	PILOTHOUSE_FULL_ROUNDS=1 PILOTHOUSE_TEST_POSTGRES=1 $(BIN)/python -m pytest -rs -s tests/app/test_fleet_of_shards.py tests/app/test_fleet_on_ray.py
	$(BIN)/python -m tests.benchmarks.shards

# The files that import tests/rounds.py: a hundred kills, two hundred goals, two thousand loops.
endurance: setup-test
	PILOTHOUSE_FULL_ROUNDS=1 $(BIN)/python -m pytest -s $$(grep -rl 'from tests.rounds import' tests)

MINUTES ?= 1440
soak: setup-test
	@$(BIN)/python -m tests.soak --minutes $(MINUTES)

security: setup-test
	@$(BIN)/python -m tests.security

bench: setup-bench
	$(BIN)/pilothouse bench

PROJECTS ?= 60
SEED ?= 1
bench-evolve: setup-test
	@$(BIN)/python -m tests.benchmarks.evolve --projects $(PROJECTS) --seed $(SEED)

screenshots: setup-test
	$(BIN)/python -m tests.screenshots

recordings: setup-test
	$(BIN)/python -m tests.recordings

# Tools about the dependencies, apart from what they look at.
SUPPLY := $(VENV)/supply
$(SUPPLY)/.installed: requirements/supply.txt | $(VENV)/bin/python
	@$(VENV)/bin/python -m venv $(SUPPLY)
	@$(SUPPLY)/bin/python $(PIP) $(if $(UNHASHED),,$(HASHED)) -r $< || $(REFUSED)
	@touch $@

# One file for every Python and machine. Releases younger than AGE are left out: a bad one is often found by then.
AGE ?= 7 days
COMPILE = $(SUPPLY)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
  --exclude-newer "$(AGE)" --python $(SUPPLY)/bin/python --no-python-downloads
requirements: $(SUPPLY)/.installed
	$(COMPILE) --upgrade pyproject.toml --extra test --extra lint --extra embed --group build -o requirements/test.txt
	$(COMPILE) pyproject.toml -c requirements/test.txt -o requirements/run.txt
	$(COMPILE) pyproject.toml --extra embed -c requirements/test.txt -o requirements/embed.txt
	$(COMPILE) --group pyproject.toml:build -c requirements/test.txt -o requirements/build.txt
	$(BIN)/python -c 'import tomllib; from pathlib import Path; \
	  print(*tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["bench"])' | \
	  $(COMPILE) - -c requirements/test.txt -o requirements/bench.txt
	$(BIN)/python -c 'import tomllib; from pathlib import Path; \
	  print(*tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["postgres"])' | \
	  $(COMPILE) - -o requirements/postgres.txt
	$(BIN)/python -c 'import tomllib; from pathlib import Path; \
	  print(*tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]["fleet"], sep="\n")' | \
	  $(COMPILE) - -c requirements/test.txt -o requirements/fleet.txt
	$(COMPILE) --upgrade --group pyproject.toml:supply -o requirements/supply.txt

audit: $(SUPPLY)/.installed
	@$(SUPPLY)/bin/python requirements/audit.py

dist: setup-test
	@rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' engine/__init__.py)
# Of an environment that has what a release needs to run, and nothing else.
sbom: dist $(SUPPLY)/.installed
	@rm -rf $(VENV)/sbom
	@$(VENV)/bin/python -m venv --without-pip $(VENV)/sbom
	@$(SUPPLY)/bin/python -m pip --python $(VENV)/sbom/bin/python install --quiet $(HASHED) -r requirements/run.txt || $(REFUSED)
	@$(SUPPLY)/bin/python -m pip --python $(VENV)/sbom/bin/python install --quiet --no-index --no-deps dist/*.whl
	@sed 's/^dynamic = .*/version = "$(VERSION)"/' pyproject.toml > $(VENV)/sbom/pyproject.toml
	$(SUPPLY)/bin/cyclonedx-py environment --pyproject $(VENV)/sbom/pyproject.toml --output-reproducible \
	  -o dist/pilothouse-$(VERSION).cdx.json $(VENV)/sbom

clean:
	rm -rf $(VENV) dist build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
