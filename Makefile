# Every target sets up what it needs and does nothing twice: a stamp file in the environment says what is done.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

HOST ?= 127.0.0.1
PORT ?= 8000
# More arguments for the command that a target runs: make test ARGS="-k search", make lock ARGS=--upgrade
ARGS ?=
# Not empty: a check of `make deploy-check` whose program is missing fails.
STRICT ?=
# Processes that run the tests; those that share an expensive fixture stay in one.
JOBS ?= 2
PARALLEL = -n $(JOBS) --dist loadgroup --ignore=tests/docker
# A test that hangs for so many seconds fails, with what every thread was at, and not the whole run without a word.
HANGS = --timeout-method=thread --timeout
# The interpreter that makes the environments; found if not given.
PYTHON ?=
# Arguments of the pip call that installs torch alone, for instance an index with the build for your machine.
TORCH_PIP_ARGS ?=

VENV := .venv
SERVE_VENV := .venv-serve
LOCK_VENV := .venv-lock
READY := $(VENV)/.stamp-package $(VENV)/.stamp-torch

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# Many a test starts a process: without bytecode each of them would compile all packages again.
unexport PYTHONDONTWRITEBYTECODE

# Prints the first interpreter that is new enough and can make environments, or says what is missing.
# Each is run, not only looked up: a version manager's stand-in is on the path without working.
define find_python
	old=; bare=; \
	for python in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
		"$$python" -c '' 2>/dev/null || continue; \
		if ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
			old="$$("$$python" --version 2>&1)"; \
		elif ! "$$python" -c 'import venv, ensurepip' 2>/dev/null; then \
			bare="$$python"; \
		else \
			echo "$$python"; exit 0; \
		fi; \
	done; \
	if [ -n "$$bare" ]; then \
		echo "$$bare cannot make virtual environments: its venv module is missing." \
			"Install it (Debian, Ubuntu: apt install python3-venv) and run make again." >&2; \
	elif [ -n "$$old" ]; then \
		echo "Tandem needs Python 3.11 or newer and found only $$old." \
			"Install a newer one, or name it: make PYTHON=/path/to/python3" >&2; \
	else \
		echo "Tandem needs Python 3.11 or newer and found none$(if $(PYTHON), at $(PYTHON))." \
			"Install one (Debian, Ubuntu: apt install python3-venv), or name it: make PYTHON=/path/to/python3" >&2; \
	fi; \
	exit 1
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: serve
serve: $(SERVE_VENV)/.stamp-package ## serve the shipped bundles (HOST=127.0.0.1 PORT=8000); needs no torch
	@host='$(HOST)'; case "$$host" in 0.0.0.0|::) host=localhost;; *:*) host="[$$host]";; esac; \
	echo; \
	echo "Serving on http://$$host:$(PORT) (Ctrl-C stops it). Once it is up, try in another shell:"; \
	echo "  curl -s $$host:$(PORT)/translate -H 'content-type: application/json'" \
		"-d '{\"q\":\"Wo ist der Bahnhof?\",\"source\":\"de\",\"target\":\"en\"}'"; \
	echo
	@exec $(SERVE_VENV)/bin/tandem serve --host '$(HOST)' --port '$(PORT)' $(ARGS)

.PHONY: install
.PHONY: native
native: $(READY) ## build the operators that decode faster on the CPU; needs g++ and ONNX Runtime's C++ header
	$(VENV)/bin/python -m tandem native $(ARGS)

install: $(READY) ## set up everything, torch included, into .venv
	@echo "Everything is in $(VENV); the command is $(VENV)/bin/tandem."

.PHONY: test
test: git $(READY) ## run the tests that are neither slow nor in need of a GPU or Docker
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -m "not slow and not gpu and not docker" $(PARALLEL) \
		$(HANGS)=300 $(ARGS)

.PHONY: test-slow
test-slow: git $(READY) ## run the slow tests, and those of properties with many more examples
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -m "(slow or hypothesis) and not gpu and not docker" \
		--hypothesis-profile=slow $(PARALLEL) $(HANGS)=3000 $(ARGS)

.PHONY: test-gpu
test-gpu: git $(READY) ## run the tests that need a GPU
	@status=0; $(VENV)/bin/python -m pytest -m gpu $(ARGS) || status=$$?; \
	if [ $$status -eq 5 ]; then echo "No test is marked gpu."; else exit $$status; fi

.PHONY: loadtest
loadtest: $(READY) ## load a server that it starts for about a minute: latency over load, and its highest rate
	OMP_NUM_THREADS=1 $(VENV)/bin/tandem loadtest --bundle bundles/de-fr-en --duration 3 \
		--out build/loadtest/run.json --plot build/loadtest $(ARGS)

.PHONY: deploy-check
deploy-check: $(READY) ## check Dockerfile, compose files, nginx, Prometheus, Grafana, Kubernetes (STRICT=1: skip nothing)
	STRICT='$(STRICT)' deploy/check.sh
	STRICT='$(STRICT)' $(VENV)/bin/python -m pytest -q tests/deploy/test_compose.py tests/deploy/test_kubernetes.py \
		tests/deploy/test_observability.py $(ARGS)

.PHONY: deploy-test
deploy-test: $(READY) ## build the image and run the compose files; needs a Docker engine
	$(VENV)/bin/python -m pytest -m docker tests/docker $(ARGS)

.PHONY: check
check: $(READY) ## check format, lint, types and layers
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

.PHONY: lock
lock: $(LOCK_VENV)/.stamp-uv ## pin the dependencies anew from pyproject.toml (ARGS=--upgrade takes newer versions)
	$(compile) --output-file requirements/dev.txt --extra serve --extra build --extra train --extra dev \
		pyproject.toml requirements/dev.in
	$(compile) --output-file requirements/serve.txt --extra serve --extra build \
		--constraints requirements/dev.txt pyproject.toml
	$(compile) --output-file requirements/image-cpu.txt --extra serve-cpu --extra mcp --extra redis --extra telemetry \
		--extra build --constraints requirements/dev.txt pyproject.toml
	$(pin) --python-platform x86_64-manylinux_2_28 --output-file requirements/image-gpu.txt --extra serve --extra mcp \
		--extra redis --extra telemetry --extra build --constraints requirements/dev.txt pyproject.toml requirements/image-gpu.in
	$(compile) --output-file requirements/loadtest.txt --constraints requirements/dev.txt requirements/loadtest.in
	$(MAKE) lock-check

.PHONY: lock-check
lock-check: $(LOCK_VENV)/.stamp-uv ## ask the package index for wheels of the images' locks, for x86-64 and arm64
	@for image in image-cpu:x86_64 image-cpu:aarch64 loadtest:x86_64 loadtest:aarch64 image-gpu:x86_64; do \
		echo "$$image"; \
		UV_NO_CONFIG=1 $(LOCK_VENV)/bin/uv pip install --quiet --dry-run --target build/lock-check --no-deps \
			--require-hashes --only-binary :all: --no-binary srt --python-version 3.11 \
			--python-platform "$${image#*:}-manylinux_2_28" -r "requirements/$${image%:*}.txt" || exit 1; \
	done

pin = UV_NO_CONFIG=1 $(LOCK_VENV)/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(ARGS)
# One lock serves every platform and Python version (--universal) with one version of each package (--fork-strategy);
# torch stays out, see docs/adr/0004-*.md. The GPU image alone, for one platform, has it in its lock, with CUDA.
compile = $(pin) --universal --fork-strategy fewest --excludes requirements/torch.txt

.PHONY: clean
clean: ## remove the environments, caches and build results
	rm -rf $(VENV) $(SERVE_VENV) $(LOCK_VENV) build dist
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: git
git:
	@command -v git >/dev/null || { echo "The tests need git: they ask it which files belong to the repository." >&2; exit 1; }

# The environments. Packages come from hashed locks; torch, whose build differs from machine to machine, from a call of
# its own; this project last, from this folder, with the build back end that the locks brought.

%/.stamp-venv:
	@python="$$($(find_python))" && echo "$$python -m venv $*" && "$$python" -m venv $*
	@touch $@

$(VENV)/.stamp-locked: requirements/dev.txt
$(SERVE_VENV)/.stamp-locked: requirements/serve.txt
%/.stamp-locked: %/.stamp-venv
	$*/bin/python -m pip install --quiet --require-hashes -r $(filter requirements/%,$^)
	@touch $@

$(VENV)/.stamp-torch: requirements/torch.txt $(VENV)/.stamp-locked
	$(VENV)/bin/python -m pip install --quiet $(TORCH_PIP_ARGS) -r $<
	@touch $@

%/.stamp-package: pyproject.toml %/.stamp-locked
	$*/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(LOCK_VENV)/.stamp-uv: Makefile $(LOCK_VENV)/.stamp-venv
	$(LOCK_VENV)/bin/python -m pip install --quiet uv==0.13.8
	@touch $@

# A stamp is a result, not a throw-away step on the way to another.
.SECONDARY:
