# SPDX-License-Identifier: Apache-2.0
#
# The front door. Meson and ninja do the work; the targets here only pick options and order.

PREFIX ?= /usr/local
FUZZ_TIME ?= 60
SOAK_TIME ?= 600

SETUP_RELEASE = meson setup build
SETUP_DEBUG = meson setup build-debug -Dbuildtype=debug -Db_lto=false \
	-Db_sanitize=address,undefined
SETUP_TSAN = meson setup build-tsan -Dbuildtype=debug -Db_lto=false -Db_sanitize=thread
SETUP_FUZZ = CC=clang-14 meson setup build-fuzz -Dfuzz=true -Db_lto=false -Db_lundef=false \
	-Db_sanitize=address,undefined
SETUP_LINT = CC=clang-14 meson setup build-lint -Dbuildtype=debug -Db_lto=false

# The rooms that threads visit.
TSAN_TESTS = $(patsubst src/%.c,%,$(wildcard $(addsuffix /*_test.c,src/net src/store src/apiserver)))

C_FILES = $(shell find src tests -name '*.[ch]')

.DEFAULT_GOAL := release
.PHONY: release debug tsan deps deps-examples demo check check-kube check-clients bench bench-kube fuzz soak lint \
	format install image deb chart clean help

release: build/build.ninja ## build/hekla, optimised and hardened (the default)
	@ninja -C build

debug: build-debug/build.ninja ## build-debug/hekla with address and undefined sanitizers
	@ninja -C build-debug

tsan: build-tsan/build.ninja ## build-tsan/tests with the thread sanitizer, where there are threads
	@ninja -C build-tsan $(addprefix tests/,$(subst /,_,$(TSAN_TESTS)))

deps: ## install the Debian packages that are missing
	@scripts/deps

deps-examples: ## install what examples/frameworks run (Open MPI, PyTorch: 180 MB)
	@scripts/deps examples

demo: deps ## build the program alone, then show the scheduler and the API server at work
	@$(MAKE) --no-print-directory build/build.ninja
	@ninja -C build hekla
	@scripts/demo

check: deps ## build every kind and run every test
	@scripts/kubectls >/dev/null
	@scripts/helm >/dev/null || true
	@$(MAKE) --no-print-directory release debug tsan
	@scripts/check

check-kube: deps ## run the end-to-end tests on a real Kubernetes control plane, built once
	@$(MAKE) --no-print-directory release
	@scripts/kube-peers >/dev/null || true
	@scripts/check --kube

check-clients: deps deps-examples release ## run programs of others against `hekla up`; docs/clients.md has the results
	@scripts/deps clients
	@scripts/check --clients

bench: release ## measure the scheduler, the API server, the controllers and all of them together
	@build/hekla-bench
	@build/hekla-bench-server
	@build/hekla-bench-controllers
	@build/hekla-bench-up

bench-kube: release ## measure the programs on a real control plane, which Go builds once
	@tests/kube/bench.py --json build/bench-kube.json

fuzz: build-fuzz/build.ninja ## run every fuzz target for FUZZ_TIME seconds
	@ninja -C build-fuzz
	@scripts/fuzz $(FUZZ_TIME)

soak: release debug ## kill -9 under load, simulation, tests under sanitizers, for SOAK_TIME seconds
	@scripts/check --soak $(SOAK_TIME)

lint: build-lint/build.ninja ## clang warnings, clang-tidy and white space
	@ninja -C build-lint
	@clang-format-14 --dry-run --Werror $(C_FILES)
	@find src -name '*.c' ! -name '*_test.c' -print0 | \
		xargs -0 -n 4 -P $$(nproc) clang-tidy-14 -p build-lint --quiet

format: ## let clang-format rewrite the sources
	@clang-format-14 -i $(C_FILES)

install: release ## install under PREFIX (DESTDIR is honoured)
	@meson configure build -Dprefix=$(abspath $(PREFIX))
	@meson install -C build --strip

image: release ## build/hekla-image.tar, a container image made without a container engine
	@scripts/image build/hekla build/hekla-image.tar

deb: deps ## the Debian package, in the directory above; debug symbols in a package of their own
	@scripts/deps deb
	@dpkg-buildpackage --build=binary --no-sign

chart: release ## build/hekla-VERSION.tgz, the Helm chart
	@scripts/chart build/hekla build/hekla-$$(build/hekla version | cut -d ' ' -f 2).tgz

clean: ## remove every build directory
	@rm -rf build build-debug build-tsan build-fuzz build-lint

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build/build.ninja:
	@$(SETUP_RELEASE)

build-debug/build.ninja:
	@$(SETUP_DEBUG)

build-tsan/build.ninja:
	@$(SETUP_TSAN)

build-fuzz/build.ninja:
	@$(SETUP_FUZZ)

build-lint/build.ninja:
	@$(SETUP_LINT)
