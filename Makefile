# Thin targets over meson; `make run` and `make check` are the two commands. See CONTRIBUTING.md.
# RUN_ARGS: options for `freshet serve`. BENCH_ARGS: for tools/bench-report. PREFIX, DESTDIR: as usual.
# FUZZ_SECONDS: of each target.

PREFIX ?=
DESTDIR ?=
RUN_ARGS ?=
CHECK_ARGS ?=
BENCH_ARGS ?=
FUZZ_SECONDS ?= 10

# Debian keeps bpftool there, and not in an ordinary user's PATH.
export PATH := $(PATH):/usr/sbin:/sbin

all: build/build.ninja
	ninja -C build

# meson takes lib64 on a Debian without dpkg-dev, where neither linker nor pkg-config look.
# Anew when packages came since: optional libraries, and another c++, are found by configuring alone.
build/build.ninja: $(wildcard build/packages-installed)
	meson setup $(if $(wildcard build/build.ninja),--wipe) build \
		$(addprefix -Dlibdir=lib/,$(shell cc -print-multiarch))

run:
	tools/install-deps run
	$(MAKE) --no-print-directory all
	build/freshet serve $(RUN_ARGS)

check:
	tools/install-deps check
	tools/check $(CHECK_ARGS)

# All benches, into docs/results (25 minutes; BENCH_ARGS=--quick: 4, into build/results). As root: some
# make cgroups.
bench:
	tools/install-deps bench
	$(MAKE) --no-print-directory all
	tools/bench-report $(BENCH_ARGS)

install: all
	meson configure build -Dprefix=$(or $(PREFIX),/usr/local)
	meson install -C build $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	$(if $(DESTDIR),,-ldconfig)

fuzz:
	tools/fuzz $(FUZZ_SECONDS)

# A hundred million checks of each promise on each path; minutes.
soak: all
	build/tests/conform/conform rseq --checks 100000000
	build/tests/conform/conform fallback --checks 100000000
	for test in forks interrupts mix processes; do for backend in rseq fallback; do \
		build/tests/stress/stress_$$test --backend $$backend --seconds 20 || exit; done; done

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build build-gcc build-clang build-asan build-tsan build-arm64 build-i686 build-fuzz

.PHONY: all run check bench install fuzz soak format clean
