# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
# `make help` lists the rest.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 6
TIME ?= 60
SEEDS ?= 10000-20000
WHAT ?= --apply
DSTACK := 0.22.5

# The first of these that runs and is new enough; a name alone may be a shim that runs nothing.
# That of the system comes first: distributions build it with optimisations that the builds of a
# version manager often lack, and the tests use a processor fully.
PYTHON ?= $(shell for p in /usr/bin/python3 python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: help demo test test-cloud test-machines crash test-aws unit check format generate sessions fuzz simulate compare bench lab lab-down cloud lock clean

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

$(VENV)/installed: requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "fleetform needs Python 3.11 or newer with the venv module." >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

## make demo      set up and run environments/local: plan, apply, and a second plan with no changes
demo: $(VENV)/installed
	@BIN=$(BIN) sh environments/local/demo.sh

## make test      set up and run every test, with the servers that they need
test: $(VENV)/installed
	@sh tests/services.sh
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal \
		--ignore=tests/machines --ignore=tests/integration/cloud --ignore=tests/integration/pulumi --ignore=tests/integration/aws_account

## make test-machines  run the tests of whole machines: systemd, control groups of version 2, reboots; needs root
test-machines: $(VENV)/installed
	@sh tests/services.sh machines
	$(BIN)/python -m pytest tests/machines

## make test-cloud  run the tests with the Pulumi CLI and a cloud of their own; builds the CLI once, with Go; hosts need root
test-cloud: $(VENV)/installed
	@sh tests/services.sh cloud
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/integration/cloud tests/integration/pulumi

## make crash     kill controllers, runners and the Pulumi CLI while fleets change, a hundred times each; at most an hour
crash: $(VENV)/installed
	@sh tests/services.sh cloud
	FLEETFORM_TEST_AWS_KILLS=$${FLEETFORM_TEST_AWS_KILLS:-100} FLEETFORM_TEST_PULUMI_KILLS=$${FLEETFORM_TEST_PULUMI_KILLS:-100} \
		FLEETFORM_TEST_DISK_KILLS=$${FLEETFORM_TEST_DISK_KILLS:-20} \
		$(BIN)/python -m pytest -n 2 -m crash tests/integration/cloud tests/integration/pulumi

## make test-aws  try a fleet in a real account of AWS, which costs some cents: see docs/testing.md
test-aws: $(VENV)/installed
	$(BIN)/python -m pytest tests/integration/aws_account

## make test-faults  try all faults of hosts over SSH, and 200 kills: needs root, at most 40 minutes
test-faults: $(VENV)/installed
	@sh tests/services.sh lab
	FLEETFORM_TEST_SSH_KILLS=$${FLEETFORM_TEST_SSH_KILLS:-210} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal \
		-m "fault or not fault" tests/integration/ssh/test_faults.py tests/integration/ssh/test_rare_faults.py \
		tests/integration/ssh/test_long_silence.py tests/integration/ssh/test_rebuild.py tests/integration/ssh/test_kill.py

## make unit      run the tests of the pure core and the house rules, in about five minutes
unit: $(VENV)/installed
	$(BIN)/python -m pytest -q tests/unit tests/house

## make check     format, lint, types, floors and generated files, without changing anything
check: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright --level error
	$(BIN)/lint-imports
	$(BIN)/python -m fleetform.spec.field_table_generator --check
	$(BIN)/python -m fleetform.store.schema_generator --check
	$(BIN)/fleetform schema --check
	$(BIN)/python docs/generate.py --check

## make format    rewrite the code in the house's format
format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## make generate  rewrite spec/field_table.py, schema.sql, schemas/ and docs/reference/ from the models
generate: $(VENV)/installed
	$(BIN)/python -m fleetform.spec.field_table_generator --write
	$(BIN)/python -m fleetform.store.schema_generator --write
	$(BIN)/fleetform schema --write
	$(BIN)/python docs/generate.py
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python docs/picture.py

## make sessions  record shell, attach and ssh on terminals, into docs/sessions; needs root
sessions: $(VENV)/installed
	@sh tests/services.sh lab
	$(BIN)/python docs/sessions.py

## make fuzz      fuzz the loader, TIME seconds each target; what it finds and learns stays in build/fuzz
fuzz: $(VENV)/installed
	@for target in documents tree quantities interpolation; do \
		echo "$$target:"; $(BIN)/python tests/fuzz/fuzz_$$target.py $(TIME) build/fuzz || exit 1; done

## make simulate  play SEEDS, a range such as 10000-20000, beyond those of the tests (WHAT=--hosts: hosts and runs)
simulate: $(VENV)/installed
	$(BIN)/python tests/simulation/replay.py $(WHAT) $(SEEDS)

## make compare   load every document in the source of dstack $(DSTACK), and compare with dstack's own reading
compare: $(VENV)/installed build/dstack/venv/installed
	FLEETFORM_TEST_DSTACK=$(CURDIR)/build/dstack $(BIN)/python -m pytest -q tests/conformance/test_dstack_itself.py

build/dstack/venv/installed:
	rm -rf build/dstack && mkdir -p build/dstack/source
	$(PYTHON) -m venv build/dstack/venv
	build/dstack/venv/bin/python -m pip install --quiet --disable-pip-version-check dstack==$(DSTACK)
	build/dstack/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
		--dest build/dstack dstack==$(DSTACK)
	tar -xzf build/dstack/dstack-$(DSTACK).tar.gz -C build/dstack/source --strip-components=1
	touch $@

## make bench     measure, and print the tables of docs/benchmarks.md
bench: $(VENV)/installed
	$(BIN)/python tests/bench/all.py

## make lab       start environments/lab: four SSH hosts in network namespaces, known to ssh by name; needs root
lab:
	@sh tests/services.sh lab
	@$(PYTHON) environments/lab/lab.py up --include

## make lab-down  end the hosts of environments/lab; their disks and keys are kept
lab-down:
	@$(PYTHON) environments/lab/lab.py down

## make cloud     open a shell in which AWS is played on this machine, to try fleets without an account; needs root
cloud: $(VENV)/installed
	@sh tests/services.sh lab
	@sh tests/services.sh cloud
	@$(BIN)/python tests/cloud/shell.py

## make lock      resolve dependencies anew into requirements.lock
lock:
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --extra server --extra lsp --extra postgresql --extra aws \
		--group dev --group fuzz --group demo --group build pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) build dist
