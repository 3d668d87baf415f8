# `make demo` and `make test` are the two commands of the README; each builds what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
RUN_STAMP := $(VENV)/.run-ready
# A caller's own pip settings (an index, a certificate) are honoured; nothing here names one.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.PHONY: demo test check format bench bench-large torture soak deb lock clean venv

$(RUN_STAMP): requirements/run.txt pyproject.toml
	@echo "mcfd: building $(VENV) (once; about half a minute) …"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "mcfd needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@echo "mcfd: installing the locked dependencies …"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --no-index -e .
	@touch $@

$(STAMP): $(RUN_STAMP) requirements/dev.txt
	@echo "mcfd: installing what the tests need …"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/dev.txt
	@touch $@

venv: $(STAMP)

demo: $(RUN_STAMP)
	@$(BIN)/python -m daemon.demo $(if $(ONCE),--once)

test: $(STAMP)
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(STAMP)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(STAMP)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP)
	@$(BIN)/python -m bench $(ARGS)

bench-large: $(STAMP)
	@$(BIN)/python -m bench.large $(ARGS)

lock: $(STAMP)
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header -o requirements/run.txt pyproject.toml requirements/run.in
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --extra dev -c requirements/run.txt -o requirements/dev.txt pyproject.toml requirements/run.in

torture: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m torture --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS))

soak: $(STAMP)
	@PYTHONPATH=tests $(BIN)/python -m soak --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED))

deb: $(RUN_STAMP)
	@$(BIN)/python packaging/build_deb.py

clean:
	@rm -rf $(VENV) .demo build dist bench/results *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
