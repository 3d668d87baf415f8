# `make demo` and `make test` are the two commands of the README; each builds what it needs.
# Debian's own Python where it will do: it is the one that boxes run, and it was built to be quick.
PYTHON ?= $(firstword $(shell for python in /usr/bin/python3 python3; do \
	"$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null && echo "$$python"; done) python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
CATALOGUES := common/language/locales/fr/LC_MESSAGES/mcfd.mo
RUN_STAMP := $(VENV)/.run-ready
# A caller's own pip settings (an index, a certificate) are honoured; nothing here names one.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

.PHONY: web docs core pictures layout demo demo-hq demo-anywhere deb-hq test test-all check format bench siege simulate syncs torture flaky deb lock clean venv texts repository release image

$(RUN_STAMP): packaging/requirements/run.txt pyproject.toml
	@echo "mcfd: building $(VENV) (once; about half a minute) …"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "mcfd needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@echo "mcfd: installing the locked dependencies …"
	@$(PIP) install --require-hashes --only-binary :all: -r packaging/requirements/run.txt
	@$(PIP) install --no-deps --no-build-isolation --no-index -e .
	@touch $@

$(STAMP): $(RUN_STAMP) packaging/requirements/dev.txt
	@echo "mcfd: installing what the tests need …"
	@$(PIP) install --require-hashes --only-binary :all: -r packaging/requirements/run.txt -r packaging/requirements/dev.txt
	@touch $@

%.mo: %.po packaging/catalogue.py
	@$(PYTHON) packaging/catalogue.py

venv: $(STAMP) $(CATALOGUES)

demo: $(RUN_STAMP) $(CATALOGUES)
	@$(BIN)/python -m daemon.demo $(if $(ONCE),--once)

demo-hq demo-anywhere: $(STAMP)
	@$(BIN)/python -m headquarters.demo $(if $(ONCE),--once)

# Three workers more than there are cores: while boxes boot and timers run, others have something to do.
# A worker that dies is not replaced: xdist with --dist loadfile would wait for it for ever.
# `make test` in four minutes on two cores; `make test-all` with the tests that are marked `long`, which CI runs.
test: SELECTED := -m "not long"
test test-all: $(STAMP) $(CATALOGUES)
	@$(BIN)/python -m pytest $(SELECTED) -n $(or $(WORKERS),$(shell expr $$(nproc) + 3)) --max-worker-restart 0 --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(STAMP) $(CATALOGUES)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports > /dev/null || $(BIN)/lint-imports
	@$(BIN)/python packaging/texts.py check
	@$(BIN)/python tests/architecture/names.py
	@$(BIN)/python -m daemon.core.certified_core check

# The digest of the certified core is written anew: on purpose, with its version (daemon/core/certified_core.py).
core: $(STAMP)
	@$(BIN)/python -m daemon.core.certified_core write

# New texts of the code come into the catalogue, those that are gone go (CONTRIBUTING.md).
texts: $(STAMP)
	@$(BIN)/python packaging/texts.py update

format: $(STAMP)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) $(CATALOGUES)
	@$(BIN)/python -m bench $(ARGS)

siege: $(STAMP) $(CATALOGUES)
	@$(BIN)/python -m bench.siege $(ARGS)

# dev.txt and hq.txt are what stands in them beside run.txt.
lock: LOCKS := packaging/requirements
lock: COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml $(LOCKS)/run.in
lock: $(STAMP)
	@$(COMPILE) -o $(LOCKS)/run.txt
	@known="-c $(LOCKS)/run.txt"; for extra in hq dev; do \
		$(COMPILE) --extra $$extra $$known -o $(LOCKS)/$$extra.txt && \
		awk 'NR == FNR { run[$$0]; next } /^[^ ]/ { more = !($$0 in run) } more' $(LOCKS)/run.txt $(LOCKS)/$$extra.txt > $(LOCKS)/$$extra.new && \
		mv $(LOCKS)/$$extra.new $(LOCKS)/$$extra.txt || exit 1; \
		known="$$known -c $(LOCKS)/$$extra.txt"; \
	done

# A real daemon, killed at random moments, round after round (docs/reliability.md): MINUTES=…, SEED=…
torture: $(STAMP) $(CATALOGUES)
	@MCFD_TORTURE=$(or $(MINUTES),10) MCFD_SEED=$(SEED) $(BIN)/python -m pytest -q -s tests/acceptance/crash/test_crash_random.py

# Everything in one process on a virtual clock, drawn from a seed (docs/reliability.md): SEEDS=2000, MINUTES=…, SEED=n KEEP=…, MISTAKES=1.
# Afterwards every history of the decisions, one event longer than within the suite; EVERY=1 does only that, MORE=2 two events.
simulate: $(STAMP) $(CATALOGUES)
	@$(if $(EVERY),:,PYTHONPATH=tests $(BIN)/python -m simulation) --seeds $(or $(SEEDS),2000) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep $(KEEP)) $(if $(MISTAKES),--mistakes) $(if $(JOBS),--jobs $(JOBS)) $(if $(FIRST),--first $(FIRST))
	@$(if $(SEED)$(MISTAKES),,PYTHONPATH=tests $(BIN)/python -m exhaustive --more $(or $(MORE),1) $(if $(JOBS),--jobs $(JOBS)))

# A sync that fails, at each sync of a certification, of a Z and of a start (docs/reliability.md); within the suite the first ones.
syncs: $(STAMP) $(CATALOGUES)
	@MCFD_SYNCS=1000 $(BIN)/python -m pytest -q tests/acceptance/crash/test_crash_failed_sync.py

# The suite in random order, again and again, until it fails (docs/testing.md): SEED=…, COUNT=…
flaky: $(STAMP) $(CATALOGUES)
	@for seed in $$(seq $(or $(SEED),1) $$(($(or $(SEED),1) + $(or $(COUNT),10) - 1))); do \
		echo "seed $$seed"; \
		$(BIN)/python -m pytest -q -n $(or $(WORKERS),$(shell expr $$(nproc) + 3)) --max-worker-restart 0 --dist loadfile --no-loadscope-reorder \
			-p randomly -p no:cacheprovider --randomly-seed=$$seed $(ARGS) || exit 1; \
	done

# dist/mcfd_*.deb, or headquarters' mcfd-hq_*.deb, for both processors; ARCH=arm64 for one. A build profile leaves the other package out.
deb: PROFILE := pkg.mcfd.nohq
deb-hq: PROFILE := pkg.mcfd.nobox
deb: $(RUN_STAMP)
deb-hq: $(STAMP)
deb deb-hq:
	@mkdir -p dist
	@for arch in $(or $(ARCH),amd64 arm64); do \
		MAKEFLAGS= DEB_BUILD_PROFILES=$(PROFILE) BUILD_PYTHON=$(abspath $(BIN)/python) dpkg-buildpackage --build=any --no-sign --no-check-builddeps \
			--host-arch $$arch --buildinfo-option=-udist --buildinfo-file=dist/$@_$$arch.buildinfo --changes-option=-udist \
			--changes-file=dist/$@_$$arch.changes > dist/$@_$$arch.log 2>&1 || { tail -n 40 dist/$@_$$arch.log; exit 1; }; \
	done
	@ls -l dist/*.deb

# docs/architecture.md begins with the packages as their imports have them.
layout: $(STAMP)
	@$(BIN)/python tests/architecture/layout.py

# The documentation site, into build/site: a dead link or a page that no reader is led to stops it.
docs: $(STAMP)
	@$(BIN)/sphinx-build -q -W --keep-going -b html docs build/site
	@echo "build/site/index.html"

# make repository DIR=/media/stick KEY=release-key.asc [URL=…]: dist/*.deb, signed, for apt
repository:
	@packaging/repository "$(DIR)" "$(KEY)" "$(URL)"

# A container image of mcfd on a simulated machine, for developers of tills; as root, with mmdebstrap and buildah.
image: deb
	@packaging/image/build

# make release KEY=release-key.asc [URL=…]: every step in order, as root, on a machine with .ci/packages, qemu-user-static, arch-test, iproute2
release: $(STAMP) $(CATALOGUES)
	@KEY="$(KEY)" URL="$(URL)" ONLY="$(ONLY)" packaging/release

# The screens that documents show into docs/pictures; ALL=1: every screen at every width, light and dark, into build/pictures.
pictures: $(STAMP) $(CATALOGUES)
	@PYTHONPATH=tests $(BIN)/python -m pictures $(if $(ALL),--all)

clean:
	@rm -rf $(VENV) .demo build dist bench/results *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Tabler's stylesheet and icons from the npm registry (packaging/web), with what the templates use of them; after a change of a template's classes.
web:
	@cd packaging/web && npm ci --silent --ignore-scripts && node vendor.mjs
