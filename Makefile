# Thin targets over meson; `make run` and `make check` are the two commands. See CONTRIBUTING.md.
# RUN_ARGS: options for `freshet serve`. PREFIX, DESTDIR: as usual. FUZZ_SECONDS: of each target.

PREFIX ?=
DESTDIR ?=
RUN_ARGS ?=
CHECK_ARGS ?=
FUZZ_SECONDS ?= 10

# Debian keeps bpftool there, and not in an ordinary user's PATH.
export PATH := $(PATH):/usr/sbin:/sbin

all: build/build.ninja
	ninja -C build

# meson takes lib64 on a Debian without dpkg-dev, where neither linker nor pkg-config look.
build/build.ninja:
	meson setup build $(addprefix -Dlibdir=lib/,$(shell cc -print-multiarch))

run:
	tools/install-deps run
	$(MAKE) --no-print-directory all
	build/freshet serve $(RUN_ARGS)

check:
	tools/install-deps check
	tools/check $(CHECK_ARGS)

install: all
	$(if $(PREFIX),meson configure build -Dprefix=$(PREFIX))
	meson install -C build $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	$(if $(DESTDIR),,-ldconfig)

fuzz:
	tools/fuzz $(FUZZ_SECONDS)

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build build-gcc build-clang build-asan build-arm64 build-i686 build-fuzz

.PHONY: all run check install fuzz format clean
