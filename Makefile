# `make` alone prints what there is. Every target sets up what it needs; a second call is quick.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
WEIR := $(BIN)/weir
BASE := $(VENV)/.base-installed
TOOLS := $(VENV)/.tools-installed
NATIVE := $(VENV)/.native-built
TESTED := $(VENV)/.native-tested
REAL_TIME := realtime and not (guest or slow)
PAGE := web/dist/index.html
PACKAGES := web/node_modules/.package-lock.json
# The crates of crates.io.
PUBLISHED := units cc net transport
# The verb that builds the guest kernel.
GUEST := stack kernel
# All crates as the tests compile them. With the features of the native module what both need is compiled once.
WORKSPACE := --workspace --features weir-lab/foreign --profile sim --locked
# Only a build that asked for them has stacks of other projects.
FOREIGN = $(if $(wildcard $(VENV)/.foreign),--features foreign)
SOURCES := $(shell find crates adapters/noq adapters/quinn -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml
PAGE_SOURCES := $(shell find web/src -type f) $(wildcard python/weir/library/*.toml) web/index.html web/vite.config.ts web/core.sh

VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml)

# What is built says from which commit. Without git it does not.
COMMIT = WEIR_COMMIT=$$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)
# One interpreter for every build step: a changing one would make cargo rebuild pyo3.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Python keeps what it compiled, even where the caller's environment forbids it: every `weir` would compile 800 files.
unexport PYTHONDONTWRITEBYTECODE
ifdef CI
# Who builds once is done sooner without incremental compilation, and so is what was built.
export CARGO_INCREMENTAL := 0
endif

.PHONY: help setup build foreign wheel wheel-aarch64 crates release demo test checks lint lint-rust lint-python lint-stubs test-rust test-python test-lab kernel test-kernel test-slow lab lab-test adapters fmt bench bench-instructions bench-udp bench-link bench-limits bench-dask bench-flood bench-kills bench-trees bench-search bench-ui bench-report studies seeds docs site pictures lock clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(TOOLS) ## Create .venv with the pinned Python packages

build: $(NATIVE) ## Compile the Rust core (release) and install weir into .venv

foreign: $(TOOLS) ## As build, with stacks of other projects (quinn, noq) in the simulator; later builds keep them
	@touch $(VENV)/.foreign
	@rm -f $(NATIVE)
	$(MAKE) build

PROCESSOR = $(shell uname -m)
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
TRAINED := target/training/weir.profdata
# Compiled once to count which way each branch goes in what users run, then for those ways. `PROFILE_USE=` leaves it out.
PROFILE_USE = $(if $(CROSS),,-Cprofile-use=$(CURDIR)/$(TRAINED))
$(TRAINED): $(SOURCES) bench/training.py | $(TOOLS)
	-rustup component add llvm-tools
	rm -rf target/training/counts target/training/python
# Symbols get the names that they have in a build by zig, which cannot link what counts. That takes these settings of cargo.
	__CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS=nightly CARGO_UNSTABLE_TARGET_APPLIES_TO_HOST=true CARGO_TARGET_APPLIES_TO_HOST=false \
	RUSTFLAGS=-Cprofile-generate=$(CURDIR)/target/training/counts cargo build --release --locked -p weir-py --target $(HOST) --target-dir target/training
	cp -r python target/training/python
	cp target/training/$(HOST)/release/lib_native.so target/training/python/weir/_native.abi3.so
	PYTHONPATH=$(CURDIR)/target/training/python $(BIN)/python -m bench.training
	tool=$$(rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata; [ -x "$$tool" ] || tool=llvm-profdata; \
	"$$tool" merge -o $@ target/training/counts

# zig has the symbols of old C libraries, and links for other processors.
wheel: $(TOOLS) $(PAGE) $(if $(PROFILE_USE),$(TRAINED)) ## An abi3 wheel with the laboratory in dist/, for any Linux since 2014 on this processor
	$(BIN)/python -m pip install --quiet ziglang
	rm -rf dist/weir_lab-*$(PROCESSOR).whl python/weir/laboratory/built
	cp -r web/dist python/weir/laboratory/built
	$(COMMIT) PATH="$(CURDIR)/$(BIN):$$PATH" RUSTFLAGS="$(PROFILE_USE)" \
	$(BIN)/maturin build --release --locked --zig --compatibility manylinux2014 --out dist $(CROSS)
	@rm -rf python/weir/laboratory/built
	@ls dist/weir_lab-*.whl

ARM := aarch64-unknown-linux-gnu
wheel-aarch64: $(TOOLS) $(PAGE) ## The same for 64-bit ARM (needs its Rust target; Debian: rustc-web cargo-web rust-web-src)
	@if rustup target list --installed 2>/dev/null | grep -qx $(ARM); then $(MAKE) wheel PROCESSOR=aarch64 CROSS='--target $(ARM)'; \
	elif ls -d /usr/src/rustc-*/library >/dev/null 2>&1; then \
	RUSTC=/usr/bin/rustc CARGO=/usr/bin/cargo RUSTC_BOOTSTRAP=1 \
	$(MAKE) wheel PROCESSOR=aarch64 CROSS='--target $(ARM) -Z build-std=std,panic_unwind --target-dir target/arm'; \
	else echo 'please install: rustup target add $(ARM), or on Debian rustc-web cargo-web rust-web-src' >&2; exit 1; fi

crates: ## What `cargo publish` would upload, checked and left here
	cargo publish --dry-run --no-verify --allow-dirty --locked $(PUBLISHED:%=--package weir-%)

# A person sets the tag `vVERSION` and uploads what is in dist/.
release: lint wheel wheel-aarch64 ## Build and check everything that a release has, in dist/; uploads nothing
	$(BIN)/python -m pip install --quiet auditwheel twine
	$(BIN)/maturin sdist --out dist
	$(BIN)/twine check --strict dist/*
	for wheel in dist/*.whl; do $(BIN)/auditwheel show $$wheel || exit 1; done
# Cargo keeps what it unpacked and compiled of an earlier run of the same version, and would check against that.
	rm -rf target/published $${CARGO_HOME:-$$HOME/.cargo}/registry/src/-*/weir-*
	cargo publish --dry-run --locked --target-dir target/published $(PUBLISHED:%=--package weir-%)
	@ls -l dist

# A module that was built for use or for tests serves too; else one is compiled quickly.
demo: PROFILE = demo $(FOREIGN)
demo: $(TESTED) ## The two main commands, small: ends within a minute, prints where the reports are
	$(WEIR) compare reno cubic bbr --rate 10mbit --rtt 40ms --queue 1bdp --duration 30s --repeat 5 --seed 1
	$(WEIR) study lab-udp
	@printf '%s\n' '' 'Next, after `source $(VENV)/bin/activate`:' \
	'  weir compare cubic bbr --rate 100mbit --rtt 80ms --loss 0.1% --open   a path of yours; opens the report' \
	'  weir run lab-router --world udp                                       the same over real sockets' \
	'  weir --help                                                           all commands, by purpose'

# CI makes the checks while the tests wait.
CHECKS = checks
test: $(CHECKS) test-rust test-python test-lab ## What every change must pass: lint, the Rust reference, Rust tests, Python tests, the page's tests

# pip, mypy and stubtest use one core each, beside a compiler.
checks:
	@$(MAKE) --no-print-directory --jobs=2 lint docs

lint: lint-rust lint-python lint-stubs ## rustfmt, clippy with warnings denied, import cycles, ruff, mypy strict, stubs against the module

lint-rust: | $(BIN)/python
	cargo fmt --all --check
	cargo clippy $(WORKSPACE) --all-targets -- -D warnings

lint-python: $(TOOLS)
	$(BIN)/python tests/python/structure.py
	$(BIN)/python tests/python/layers.py
	PYTHONPATH=python $(BIN)/lint-imports --no-logo
	$(BIN)/ruff check python bench tests
	$(BIN)/ruff format --check python bench tests
	$(BIN)/mypy

lint-stubs: $(TOOLS) $(TESTED)
	$(BIN)/stubtest weir._native --mypy-config-file pyproject.toml

# Examples are not linked: clippy compiles them. Each call names the same crates and targets: others would have other
# features, and be compiled again.
test-rust: $(TOOLS) ## Rust tests, optimised but with assertions and overflow checks on
	cargo test $(WORKSPACE) --tests
	cargo test $(WORKSPACE) --doc
	@if [ -e /dev/net/tun ] && { unshare --net true || unshare --user --map-root-user --net true; } 2>/dev/null; \
	then cargo test --quiet $(WORKSPACE) --tests emulator::tests -- --ignored; \
	else echo 'skipped: the tests of emulated links, which need network namespaces and /dev/net/tun'; fi

# s2n-quic needs a newer Rust than the other crates, so that its adapter is a workspace with its own lock file.
adapters: ## Test our controllers behind the trait of s2n-quic
	@need=$$(sed -n 's/^rust-version = "\(.*\)"/\1/p' adapters/s2n/Cargo.toml); have=$$(rustc --version | cut -d ' ' -f 2); \
	if [ "$$(printf '%s\n' "$$need" "$$have" | sort -V | head -n 1)" = "$$need" ]; \
	then cargo test --manifest-path adapters/s2n/Cargo.toml --locked; \
	else echo "skipped: the tests of weir-s2n, which needs Rust $$need; this is $$have"; fi

# What depends on the clock runs after all others, three files at a time: it waits more than it computes. A test that
# fails in company has to pass alone.
test-python: $(TOOLS) $(TESTED) ## Python tests, but those of test-kernel and test-slow
	$(BIN)/pytest -m 'not (guest or slow or realtime)' --numprocesses logical --dist loadfile
	$(BIN)/pytest -m '$(REAL_TIME)' --numprocesses 3 --dist loadfile || $(BIN)/pytest -m '$(REAL_TIME)' --last-failed

kernel: $(TESTED) ## The guest kernel, kept in the user's cache (needs linux-source-6.1 gcc make bc bison flex)
	$(WEIR) $(GUEST)

test-kernel: $(TOOLS) kernel ## Tests of Linux's TCP in a guest
	$(BIN)/pytest -m guest --numprocesses logical --dist loadfile

test-slow: $(TOOLS) $(TESTED) ## Statistical claims that take more than 20 s each
	$(BIN)/pytest -m slow --numprocesses logical --dist loadfile

# A page that is older than its sources proves nothing, and building it takes minutes: `make lab-test` does.
test-lab: ## Tests of the page that `make lab` built; skipped where there is none that is up to date
	@reason=$$(./web/core.sh --check 2>&1) || { printf 'skipped: the tests of the laboratory. %s\n' "$$reason"; exit 0; }; \
	if $(MAKE) --question $(PAGE) 2>/dev/null; then $(MAKE) --no-print-directory lab-test; \
	else echo 'skipped: the tests of the laboratory, whose page is missing or older than its sources; make lab builds it'; fi

lab: $(PAGE) ## The laboratory in the browser, as static files in web/dist (needs the target wasm32-unknown-unknown)

lab-test: $(PAGE) ## Tests of the laboratory in Chromium and Node.js, next to the same runs in this machine's code
	cargo run --quiet --profile sim --locked --package weir-web --example trace_hashes > web/core/trace_hashes.json
	cd web && npm run --silent check && npm test --silent

fmt: $(TOOLS) ## Format the sources
	cargo fmt --all
	$(BIN)/ruff check --fix-only python bench tests
	$(BIN)/ruff format python bench tests

bench: $(NATIVE) ## Speed of the simulator, next to ns-3 where that is installed
	$(BIN)/python -m bench

bench-instructions: ## Instructions per packet of a release in five cases, next to those of before (needs valgrind)
	cargo test --release --locked -p weir-sim --test all instructions -- --nocapture

bench-udp: $(NATIVE) ## Speed of file transfers, next to the kernel's TCP (PEERS=--peers: and QUIC, SRT)
	$(BIN)/python -m bench.udp $(PEERS)

bench-link: $(NATIVE) ## Emulated links: use by the kernel's TCP, delay, lateness, ceiling (needs root; PARTS=ping,100: these only)
	$(BIN)/python -m bench.link $(if $(PARTS),--only $(PARTS))

bench-limits: $(NATIVE) ## weir read next to tshark in twelve scenarios with a configured limit (needs root, iperf3, tshark)
	$(BIN)/python -m bench.limits

bench-dask: $(NATIVE) $(TOOLS) ## What a Dask cluster of two workers costs over two local processes, and that losing one costs no result
	$(BIN)/python -m bench.dask --kill
	$(BIN)/python -m bench.dask --scenario fabric-loads --rounds 1 --kill

bench-flood: $(NATIVE) ## A receiver under a minute of thirteen kinds of attack at once, and each attack alone: what honest users notice
	$(BIN)/python -m bench.flood

bench-kills: $(NATIVE) ## 300 transfers through a bad path, in clear and sealed, with 300 kills of sender, receiver and relay
	$(BIN)/python -m bench.kills
	$(BIN)/python -m bench.kills --key

bench-trees: $(NATIVE) ## A folder of 20,000 files, with links and a 4 GB sparse file, and kills of sender and receiver
	$(BIN)/python -m bench.trees

bench-search: $(NATIVE) ## Five known weaknesses that weir search finds again, next to networks drawn at random
	$(BIN)/python -m bench.searches

bench-ui: $(NATIVE) $(TOOLS) $(PAGE) ## Frame rate of weir ui while it explores a run of five million packets
	$(BIN)/python -m bench.ui

bench-report: $(NATIVE) $(TOOLS) ## Time to write a report, and to open it in headless Chromium
	$(BIN)/python -m bench.report

studies: $(NATIVE) ## Every study at full size, on after a failure (docs/studies/README.md has the times)
	$(BIN)/python docs/.site/studies.py --size full

seeds: $(NATIVE) ## One page: every number and claim of the five sources next to ours, in eight minutes of CPU time
	$(WEIR) study --published
	$(BIN)/python docs/.site/counts.py --check results/published.json

docs: | $(BIN)/python ## The Rust reference, with warnings denied
	RUSTDOCFLAGS='-D warnings' cargo doc $(WORKSPACE) --no-deps

site: $(TOOLS) ## The documentation as a site, in site/VERSION/ next to earlier versions: opens without a server
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site/$(VERSION)
	$(BIN)/python docs/.site/versions.py site

pictures: $(NATIVE) $(TOOLS) ## Draw the pictures of the documentation again
	$(BIN)/python docs/.site/pictures.py

lock: ## Pin the newest Python packages that pyproject.toml allows into requirements.txt
	./.ci/lock

clean: ## Remove everything that was built (results stay)
	rm -rf $(VENV) dist target web/core web/dist web/node_modules python/weir/laboratory/built .mypy_cache .ruff_cache .pytest_cache python/weir/_native*.so

$(PAGE): $(SOURCES) $(PAGE_SOURCES) $(PACKAGES)
	./web/core.sh
	cd web && npm run --silent build
	@du -sk web/dist

$(PACKAGES): web/package.json web/package-lock.json
	./web/core.sh --check
	cd web && npm ci --silent
	@touch $@

$(BIN)/python:
	./.ci/prepare $(VENV)

$(TOOLS): requirements.txt | $(BASE)
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements.txt
	@touch $@ $(BASE)

# Without what only developers need. Python compiles what is imported, pip would compile everything.
$(BASE): requirements.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --constraint requirements.txt maturin \
	$$($(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"])')
	@touch $@

$(NATIVE): $(SOURCES) | $(BASE)
# The stamp bears the time at which the build began: what changes meanwhile is built next time.
	@touch $@.begun
	$(COMMIT) VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --locked $(FOREIGN)
	@$(BIN)/python -m compileall -q $(CURDIR)/python/weir
	@mv $@.begun $@
	@touch -r $@ $(TESTED)

# Tests take any module that is up to date. Where there is none they build one with assertions, in the profile
# of the Rust tests, whose dependencies it shares; `make build` still builds the one for use.
PROFILE = sim --features foreign
$(TESTED): $(SOURCES) | $(BASE)
	@touch $@.begun
	@rm -f $(NATIVE)
	$(COMMIT) VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile $(PROFILE) --locked
	@mv $@.begun $@
