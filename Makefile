# make run   opens the cockpit (or runs its first mission headless where there is no terminal)
# make test  runs lint and the whole suite; needs nothing but Python 3.11 or newer
# make test-fast  runs the part that needs no terminal and no cockpit, in about a minute
# make endurance  repeats at full length what the suite repeats a few times
# make soak  lets a cockpit work for MINUTES (a day), and says what grows in it by the hour
# make security  tries the hundred cases of the jail's catalogue and prints each result
PYTHON ?= python3
# Tests start many programs; each would compile this one anew where no bytecode is kept.
export PYTHONDONTWRITEBYTECODE :=
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup setup-test setup-bench run test test-fast endurance soak security bench lint screenshots clean

setup: $(VENV)/.installed
setup-test: $(VENV)/.installed-test
setup-bench: $(VENV)/.installed-bench

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Pilothouse needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing Pilothouse into $(VENV) …" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	@echo "installing Pilothouse with its test tools into $(VENV) …" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: $(VENV)/.installed-test
	@echo "installing what the benchmarks compare with into $(VENV) …" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint,bench]'
	@touch $@

run: setup
	@mkdir -p workspace
	@$(BIN)/pilothouse --workspace ./workspace --mission first-flight

lint: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder

# The part of the suite that needs no terminal and no cockpit.
test-fast: setup-test
	$(BIN)/python -m pytest -n 4 -m fast

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

screenshots: setup-test
	$(BIN)/python -m tests.screenshots

clean:
	rm -rf $(VENV) dist build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
