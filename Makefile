# One way to run everything; CI calls the same targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# What `make run` measures: a study, a set or a file. Empty is the set `quick`.
STUDY  ?=

ENGINE_SOURCES := $(shell find engine .cargo installed -path engine/target -prune -o -type f -print 2>/dev/null)

# What the tests and the bench meet for real, as program:package of Debian's. What is not a program is there if its path
# is.
SERVERS  := nginx:nginx-light apache2:apache2-bin jq:jq openssl:openssl cc:gcc c++:g++ strace:strace valgrind:valgrind curl:curl \
	pg_ctlcluster:postgresql psql:postgresql-client pgbouncer:pgbouncer mariadbd:mariadb-server mariadb:mariadb-client \
	krb5kdc:krb5-kdc kadmin.local:krb5-admin-server kinit:krb5-user slapd:slapd ldapsearch:ldap-utils \
	samba:samba-ad-dc winbindd:samba-ad-dc /usr/share/samba/setup/ad-schema:samba-ad-provision \
	/usr/lib/apache2/modules/mod_auth_gssapi.so:libapache2-mod-auth-gssapi gssproxy:gssproxy \
	/etc/gss/mech.d/mech.ntlmssp.conf:gss-ntlmssp \
	/usr/lib/*/apr-util-1/apr_dbd_pgsql.so:libaprutil1-dbd-pgsql /usr/lib/*/libnss_wrapper.so:libnss-wrapper \
	/usr/include/openssl/ssl.h:libssl-dev /usr/include/gssapi/gssapi.h:libkrb5-dev
RUNTIMES := mcs:mono-mcs node:nodejs javac:default-jdk-headless mvn:maven go:golang-go
RIVALS   := wrk:wrk h2load:nghttp2-client ab:apache2-utils

.PHONY: help setup develop wheel run test coverage quick fuzz mutants engine-mutants sanitize sbom schemas deny reproducible lint bench results format lock browser servers runtimes packages rivals clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.engine ## Virtual environment, locked dependencies, optimised engine

develop: setup $(VENV)/.development ## The same, and what tests, lint and bench need

run: setup ## Measure the set `quick` (or STUDY=name), and report
	$(BIN)/tollbar run $(STUDY)

# Four at once on two cores: many of them wait for servers and processes. Up to three that fail get one attempt alone.
test: develop browser servers runtimes ## Tests, of combinations and moments a share (TOLLBAR_WHOLE=1: all)
	$(BIN)/pytest -n 4 --dist loadgroup -m "not coverage" || { test $$? = 1 && $(BIN)/python tests/again.py; }
	cd engine && cargo test --workspace --release --locked --quiet -- --test-threads 4

# Of each simulated machine 400 runs of 4, 6 and 12 blocks, for what METHOD.md says of intervals: after a change of how runs
# are measured or judged. Some hours.
coverage: develop ## Long simulations: how often intervals cover, on machines of fourteen kinds
	TOLLBAR_WHOLE=1 $(BIN)/pytest -n 2 -m coverage

quick: develop ## Tests that start nothing and simulate little, for while you write
	$(BIN)/pytest -n 2 --dist loadgroup -m "not servers and not long"

# Of all targets together; an hour on demand: make fuzz FOR=1h
FOR ?= 1min

fuzz: develop ## What parses bytes of others, fuzzed for FOR
	$(BIN)/python -m bench.fuzz --for $(FOR) --keep

# Of mutmut only what it changes is used, so that it comes without what it shows its own runs with.
mutants: develop ## The share of changes to what measures and judges that its tests find
	$(BIN)/pip install -q --disable-pip-version-check --no-deps mutmut==3.8.1 libcst==1.9.0
	$(BIN)/python -m bench mutants

# Those of the engine are cargo-mutants', in a tree of their own, since each is made in the source: what is changed, and
# the tests that try it. SHARE=7/20 has each twentieth, from the seventh.
SHARE ?= 7/20
MUTATED_accounting := contract/src/clock.rs contract/src/pacing.rs contract/src/chunks.rs contract/src/calls.rs \
	guard/src/account.rs guard/src/accounting/**/*.rs
IN_accounting := -p tollbar-contract -p tollbar-guard
TRY_accounting := accounting:: account:: clock:: chunks:: pacing:: calls:: runner::
MUTATED_families := primitives/src/families/*.rs
IN_families := -p tollbar-primitives
TRY_families := families::
MUTATED_schemes := web/src/sign_in/**/*.rs
IN_schemes := -p tollbar-web
TRY_schemes := sign_in:: --skip a_server_remembers_just_the_share
MUTATED_proofs := web/src/load/verify.rs web/src/load/refusals.rs web/src/load/tallies.rs web/src/load/probe.rs
IN_proofs := -p tollbar-web
TRY_proofs := load:: $(TRY_schemes)

engine-mutants: develop $(addprefix engine-mutants-,accounting families schemes proofs) ## The same of the engine

engine-mutants-%:
	@command -v cargo-mutants >/dev/null || { echo 'error: there is no cargo-mutants' >&2; \
		echo 'hint: cargo install --locked cargo-mutants' >&2; exit 2; }
	rm -rf engine/target/mutated && git worktree prune && git worktree add -q --detach engine/target/mutated HEAD
	cd engine/target/mutated/engine && export CARGO_TARGET_DIR=$(CURDIR)/engine/target && \
		cargo test --profile mutants --locked --quiet $(IN_$*) --lib -- $(TRY_$*) && cargo mutants --profile mutants --in-place \
		--baseline=skip --timeout 90 --sharding round-robin --shard $(SHARE) -o $(CURDIR)/engine/target/mutants-$* \
		-e '**/tests.rs' -e '**/tests/**' $(foreach one,$(MUTATED_$*),-f '$(one)') $(IN_$*) -- --lib -- $(TRY_$*); \
		case $$? in 0|2|3) ;; *) exit 1 ;; esac # 2 and 3: some were missed, or took too long

# Stable toolchains have the sanitizer's runtime, and no switch for it without RUSTC_BOOTSTRAP. Undefined behaviour is
# looked for in what is C, and traps; the engine's Rust has overflow checks instead. LSan cannot trace what is traced.
# Tests ask for absurd amounts of memory, which libraries have to be refused as by any other allocator.
# TOLLBAR_LIBCRYPTO names another libcrypto for the tests of TLS, families and bindings; one that is sanitized itself finds
# the sanitizer in the program, which exports it.
SANITIZED := x86_64-unknown-linux-gnu

sanitize: servers ## The engine's unit tests under AddressSanitizer and UndefinedBehaviourSanitizer
	cd engine && RUSTC_BOOTSTRAP=1 ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 CARGO_TARGET_DIR=target/sanitized \
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS='-Zsanitizer=address -Cdebug-assertions=on -Clink-arg=-rdynamic' \
		CFLAGS_x86_64_unknown_linux_gnu='-fsanitize=address,undefined -fsanitize-undefined-trap-on-error -g1' \
		cargo test --workspace --release --locked --target $(SANITIZED) --config 'profile.release.strip="none"' --lib

WHEELS ?= dist

# By the same compilers and profile as the engine of `make setup`. Its name has the oldest glibc that it runs with.
wheel: setup ## A wheel for this architecture, in dist/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --quiet --release --locked --out $(WHEELS)

schemas: setup ## The JSON Schema of each document, in schemas/
	$(BIN)/python -m tollbar.decide.schema schemas

sbom: develop ## A CycloneDX bill of materials of Tollbar itself, tollbar.cdx.json, held against its schema
	$(BIN)/pip install -q --disable-pip-version-check 'cyclonedx-python-lib[json-validation]>=11'
	$(BIN)/python -m bench.supply sbom > tollbar.cdx.json

# Advisories come over the network, or with ADVISORIES=--disable-fetch from the clone that is there.
deny: develop ## Licences, sources and advisories of crates, licences of packages
	@command -v cargo-deny >/dev/null || { echo 'error: there is no cargo-deny' >&2; \
		echo 'hint: cargo install --locked cargo-deny' >&2; exit 2; }
	cargo deny --manifest-path engine/Cargo.toml check --config $(CURDIR)/deny.toml $(ADVISORIES)
	$(BIN)/python -m bench.supply licences

reproducible: develop ## The wheel of what is committed, built twice in different places and compared
	$(BIN)/python -m bench.supply reproducible

lint: develop ## Formatting, types, layers, lock files, prose of documents
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m bench.prose --check
	cd engine && cargo fmt --all --check && cargo clippy --workspace --release --locked --all-targets --quiet -- -D warnings
	cd engine && cargo clippy --release --locked --package tollbar-fuzzing --features fuzz --quiet -- -D warnings
	@! grep -nE 'https?://' requirements*.lock || { echo 'error: a lock file names a host'; exit 1; }

bench: develop servers rivals ## Each figure beside its goal
	$(BIN)/python -m bench

# About an hour by the plan. A stopped run is continued by the same command.
results: develop servers runtimes ## Measure the sets `quick` and `sources`, and write their pages into results/
	$(BIN)/python -m bench.results

format: develop ## Format everything
	$(BIN)/ruff format . && $(BIN)/ruff check --fix . && cd engine && cargo fmt --all

# The second lock has all of the first and what tests, lint and bench add, in the same versions.
COMPILE := pip compile pyproject.toml --generate-hashes --no-emit-index-url --no-header --no-annotate --universal \
	--python-version 3.11 -q

lock: $(VENV)/.dependencies ## Resolve the dependencies again, into both lock files
	$(BIN)/pip install -q uv
	$(BIN)/uv $(COMPILE) --group dev --extra parquet --extra ray -o requirements-dev.lock
	$(BIN)/uv $(COMPILE) --group build -c requirements-dev.lock -o requirements.lock

# Installs what is missing of a list of program:package, if that can be done here; if not, says how.
# $(1): the list, $(2): what for.
define debian
	@missing=; for one in $(1); do [ -e $${one%:*} ] || command -v $${one%:*} >/dev/null \
		|| PATH=$$PATH:/usr/sbin command -v $${one%:*} >/dev/null || missing="$$missing $${one#*:}"; done; \
	[ -z "$$missing" ] || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		policy=/usr/sbin/policy-rc.d; \
		if [ ! -e $$policy ]; then printf '#!/bin/sh\nexit 101\n' >$$policy; chmod +x $$policy; trap "rm -f $$policy" EXIT; fi; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "hint: $(2): apt-get install$$missing" >&2; fi
endef

# All that tests meet, one after the other, because Debian's installer runs alone. It does not wait for the engine, whose
# build takes minutes: `make --jobs=2 setup packages` does both at once.
packages:
	@for one in servers browser runtimes; do $(MAKE) --no-print-directory --silent $$one || exit; done

# The report is looked at in a real browser. Where one can be installed it is; where not, the tests say how.
browser:
	$(call debian,chromium:chromium chromedriver:chromium-driver,the tests need a browser)

# Real servers, each test starting its own. The policy file keeps Debian from starting one as a service.
servers:
	$(call debian,$(SERVERS),the tests need servers)

# The platforms whose runners are built and tried. .NET needs a compiler alone: pip brings its runtime.
runtimes:
	$(call debian,$(RUNTIMES),the tests try the runners of other platforms)

rivals:
	$(call debian,$(RIVALS),the bench compares itself with other load clients)

clean: ## Remove what was built
	rm -rf $(VENV) engine/target

$(VENV)/.dependencies: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'error: Python 3.11 or later is needed' >&2; \
		echo 'hint: make PYTHON=python3.12' >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

# What tests, lint and bench need, some 600 MB that `make run` does not wait for.
# After the engine: two of pip at once in one environment can spoil it.
$(VENV)/.development: requirements-dev.lock | $(VENV)/.engine
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.engine: $(VENV)/.dependencies pyproject.toml $(ENGINE_SOURCES)
	@command -v cargo >/dev/null || { echo 'error: the engine needs a Rust toolchain, and there is no cargo' >&2; \
		echo 'hint: install Rust 1.89 or later, with rustup or from your distribution' >&2; exit 2; }
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@
