# `make help` lists the targets. Everything runs from the root of the clone,
# with relative paths, so a space in its own path does no harm.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# Where a toolchain that `make setup` or the user installed may lie.
export PATH := $(HOME)/.cargo/bin:$(PATH)

TARGET := $(or $(CARGO_TARGET_DIR),target)
# Not $$(abspath): make splits at spaces.
ABSOLUTE := $(if $(filter /%,$(TARGET)),$(TARGET),$(CURDIR)/$(TARGET))
TRIPLE := x86_64-unknown-linux-gnu
ORCH   := $(TARGET)/$(TRIPLE)/release/orch
DEMO   := $(TARGET)/demo
# Namespaces, mounts and cgroups of the strict tier need root; nothing else here does.
ROOT   := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: ## check every tool, install what is missing (Debian, Ubuntu)
	@tests/setup build test

.PHONY: setup-build
setup-build: ## the same for building and the demo alone
	@tests/setup build

.PHONY: build
build: setup-build ## build the orch binary
	@cargo build --release --locked -p orch

.PHONY: demo
demo: build ## run a script on a real file in the strict sandbox, show result and receipt
	@rm -rf "$(DEMO)"
	@mkdir -p "$(DEMO)/out"
	@echo '--- the task: examples/lockfile_report.py reads Cargo.lock, profile strict'
	@$(ROOT) "$(ORCH)" run --profile strict \
		--mount Cargo.lock:/workspace/Cargo.lock \
		--mount examples/lockfile_report.py:/workspace/lockfile_report.py \
		--out "$(DEMO)/out" --receipt "$(DEMO)/receipt.json" \
		-- python3 /workspace/lockfile_report.py /workspace/Cargo.lock
	@echo; echo '--- copied out of /tmp/out: $(DEMO)/out'
	@ls -l "$(DEMO)/out"
	@echo; cat "$(DEMO)/out/report.md"
	@echo; echo '--- the receipt: $(DEMO)/receipt.json'
	@cat "$(DEMO)/receipt.json"; echo

.PHONY: test
test: setup test-unit test-privileged ## run every test

.PHONY: test-unit
test-unit: ## run the tests that need no privileges
	@cargo test --workspace --exclude orch-suite --locked --no-fail-fast

.PHONY: test-privileged
test-privileged: build ## run the tests that make real sandboxes (root, or sudo)
	@cargo build --locked -p orch-suite -p orch-probe
	@$(ROOT) env ORCH_BIN="$(ABSOLUTE)/$(TRIPLE)/release/orch" \
		ORCH_PROBE="$(ABSOLUTE)/$(TRIPLE)/debug/orch-probe" \
		ORCH_LAUNCHER="$(ABSOLUTE)/sealed/orch-launcher" \
		ORCH_GUEST="$(ABSOLUTE)/sealed/orch-guest" \
		ORCH_MUST_RUN="$${ORCH_MUST_RUN:-}" \
		"$(TARGET)/$(TRIPLE)/debug/orch-suite"

.PHONY: setup-vm
setup-vm: ## the same for building and the emulated machines alone
	@tests/setup build vm

.PHONY: test-vm
test-vm: setup-vm ## the suite on emulated machines with cgroup v2 alone (VM=limits:: GUESTS=plain)
	@cargo build --release --locked -p orch
	@cargo build --locked -p orch-suite -p orch-probe
	@ORCH_BIN="$(ABSOLUTE)/$(TRIPLE)/release/orch" \
		ORCH_SUITE="$(ABSOLUTE)/$(TRIPLE)/debug/orch-suite" \
		ORCH_PROBE="$(ABSOLUTE)/$(TRIPLE)/debug/orch-probe" \
		ORCH_LAUNCHER="$(ABSOLUTE)/sealed/orch-launcher" \
		ORCH_GUEST="$(ABSOLUTE)/sealed/orch-guest" \
		VM_DIR="$(ABSOLUTE)/vm"; export "$${!ORCH_@}" VM_DIR; status=0; \
	for guest in $(or $(GUESTS),plain systemd user); do \
		case $$guest in \
			user) tests/vm/run user /usr/lib/vm/rootless;; \
			*) tests/vm/run $$guest $(VM);; \
		esac || status=1; \
	done; \
	exit $$status

.PHONY: platforms
platforms: setup-vm ## record what doctor says of the hosts that can be had here (docs/platforms.md)
	@cargo build --release --locked -p orch
	@cargo build --locked -p orch-suite -p orch-probe
	@ORCH_BIN="$(ABSOLUTE)/$(TRIPLE)/release/orch" \
		ORCH_SUITE="$(ABSOLUTE)/$(TRIPLE)/debug/orch-suite" \
		ORCH_PROBE="$(ABSOLUTE)/$(TRIPLE)/debug/orch-probe" \
		ORCH_LAUNCHER="$(ABSOLUTE)/sealed/orch-launcher" \
		ORCH_GUEST="$(ABSOLUTE)/sealed/orch-guest" \
		VM_DIR="$(ABSOLUTE)/vm" tests/platforms
	@UPDATE_GOLDEN=1 cargo test --locked -p orch platforms

.PHONY: fuzz
fuzz: ## fuzz what reads hostile bytes, 60 s for each target (FUZZ=wire, FUZZ_SECONDS=600)
	@tests/setup build fuzz
	@tests/fuzz run $(FUZZ)

.PHONY: lint
lint: ## formatting, clippy, dependencies, docs, file sizes, shell scripts
	@tests/lint

.PHONY: bench
bench: build ## measure against runc, crun, youki, bwrap and docker (BENCH='--filter runc')
	@cargo build --release --locked -p orch-bench
	@$(ROOT) "$(TARGET)/$(TRIPLE)/release/orch-bench" $(BENCH)

.PHONY: bench-smoke
bench-smoke: BENCH := --smoke
bench-smoke: bench ## prove in a few runs that the harness works

.PHONY: clean
clean: ## remove everything that was built
	@cargo clean
