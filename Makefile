# One non-recursive Makefile; everything it makes lands under build/ (the
# sanitizers' builds under build-*/).
#
#   make demo          set up, build, show the main job, leave the server up
#   make test          set up, build, run all tests that need no cluster
#   make help          the other targets
#
# Sources are found by folder, at any depth: a new model/topo/x.c, cli/x.c,
# tests/unit/ROOM/test_x.c, tests/fuzz/fuzz_x.c, tests/race/race_x.c,
# tests/e2e/x.sh, tests/kube/test_x.py, tests/cards/test_x.py,
# tests/node/test_x.py, bench/bench_x.c or bench/replay/x.c needs no line here.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := 0.2.0

# --- how to compile -------------------------------------------------------
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla \
            $(if $(findstring clang,$(CC)),,-Wno-format-truncation)
OPT      ?= -O2 -g
SAN      ?=
PACKAGES := libmicrohttpd libnghttp2 libcurl libcjson hwloc sqlite3 yaml-0.1
PKG_CFLAGS = $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS   = $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) \
             -lgnutls -lm -lpthread
# of these, a program is linked with what it uses
PKG_SOME   = -Wl,--push-state,--as-needed -lprotobuf-c -Wl,--pop-state
TEST_SOME  = -Wl,--push-state,--as-needed -lnghttp2 -Wl,--pop-state

# hardened COMPILER OPTIONS: what makes errors in memory harder to use, as far
# as the compiler has it for its target.  glibc checks sizes only in what is
# optimized, and sanitizers do it better.
takes     = $(shell $(1) -Werror $(2) -x c -c -o /dev/null /dev/null \
              2>/dev/null && echo $(2))
optimized = $(if $(findstring -fsanitize,$(1)),,$(filter-out -O0,$(filter -O%,$(1))))
hardened  = -fPIE $(call takes,$(1),-fstack-clash-protection) \
            $(or $(call takes,$(1),-fcf-protection),$(call \
              takes,$(1),-mbranch-protection=standard)) \
            $(if $(call optimized,$(2)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
# tried once, at the first use: the compiler may not be there before setup
HARDENED  = $(eval HARDENED := $(call hardened,$(CC),$(OPT) $(SAN)))$(HARDENED)
HARD_LINK = -Wl,-z,relro,-z,now,-z,noexecstack

CPPFLAGS += -D_GNU_SOURCE -I. -I$(BUILD) -DBIGA_VERSION='"$(VERSION)"'
# a program says nothing of the folder that it was built in
NO_FOLDER  = -ffile-prefix-map=$(CURDIR)=.
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARNINGS) $(WERROR) $(SAN) -fno-common \
             $(NO_FOLDER) -fstack-protector-strong $(HARDENED) \
             -include lib/base/banned.h $(PKG_CFLAGS) $(CFLAGS)
LINK = $(CC) $(OPT) $(SAN) -pie $(HARD_LINK) $(LDFLAGS)

# make V=1 prints whole commands; without -j all processors are used
Q   := $(if $(V),,@)
say  = $(if $(V)$(QUIET),,@printf '  %-5s %s\n' $(1) $(2))
QUIET := $(findstring s,$(firstword -$(MAKEFLAGS)))
ifeq ($(MAKELEVEL)$(filter -j% --jobserver%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

# --- what there is --------------------------------------------------------
# every .c file below FOLDERS…, but for programs' main.c
below     = $(filter-out %/main.c,$(sort $(shell find $(1) -name '*.c')))
SRC_LIB        := $(call below,$(wildcard lib))
SRC_MODEL      := $(call below,model)
SRC_ADVERTISER := $(call below,advertiser)
SRC_ROUTER     := $(call below,$(wildcard router))
SRC_EXTENDER   := $(call below,extender)
SRC_CLI        := $(call below,cli)
SRC_REPLAY     := $(call below,bench/replay)
SRC_TESTLIB    := $(call below,tests/lib)
SRC_CARD       := $(call below,card)
SRC_EXAMPLE    := $(call below,deploy/examples)
SRC_UNIT       := $(call below,tests/unit)
SRC_ALL        := $(sort $(shell find $(wildcard lib) model advertiser router \
                    extender cli card deploy/examples bench tests -name '*.c'))
UNIT  := $(patsubst %.c,$(BUILD)/tests/%,$(notdir $(SRC_UNIT)))
SRC_FUZZ := $(wildcard tests/fuzz/fuzz_*.c tests/fuzz/*/fuzz_*.c)
FUZZ  := $(patsubst %.c,$(BUILD)/fuzz/%,$(notdir $(SRC_FUZZ)))
RACE  := $(patsubst tests/race/%.c,$(BUILD)/race/%,$(wildcard tests/race/race_*.c))
BENCH := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c))
E2E   := $(wildcard tests/e2e/*.sh)
KUBE  := $(wildcard tests/kube/test_*.py)
CARDS := $(wildcard tests/cards/test_*.py)
CONSOLE := $(wildcard tests/console/test_*.py)
VERSIONS := tests/node/test_versions.py
# without Biga: what test_router does on the host, too
DIRECT := $(if $(NODE_FULL),,tests/node/test_direct.py)
NODE  := $(filter-out $(VERSIONS) $(DIRECT),$(wildcard tests/node/test_*.py))
NAMES := $(if $(wildcard advertiser/main.c),biga-advertiser) \
         $(if $(wildcard router/main.c),biga-cri) \
         $(if $(wildcard extender/main.c),biga-extender) \
         $(if $(wildcard cli/main.c),biga) \
         $(if $(wildcard bench/replay/main.c),biga-replay)
PROGRAMS := $(NAMES:%=$(BUILD)/%)
# kubectl takes it for `kubectl biga`
PLUGIN   := $(if $(wildcard cli/main.c),$(BUILD)/kubectl-biga)
CARD     := $(if $(wildcard card/main.c),$(BUILD)/biga-card)
MAN      := $(NAMES:%=$(BUILD)/man/%.1)

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIBS := $(BUILD)/libbiga-replay.a $(BUILD)/libbiga-cli.a $(BUILD)/libbiga-extender.a \
        $(BUILD)/libbiga-router.a $(BUILD)/libbiga-advertiser.a \
        $(BUILD)/libbiga-model.a $(BUILD)/libbiga-lib.a

FP := build-fp

.DEFAULT_GOAL := all
.PHONY: all programs card objects setup help demo test test-unit test-e2e lint \
        test-kube kube-up kube-down test-cards cards-up cards-down \
        test-console bench-console screenshots \
        example test-node test-versions node-binaries node-up node-down critest \
        bench-node bench-kube bench-doors bench-scale test-kueue storm-kube soak bench fuzz race asan \
        failpoints instrumented install uninstall docs man format \
        format-check clean
.SECONDARY:
.DELETE_ON_ERROR:

all: setup programs
programs: $(PROGRAMS) $(CARD) $(PLUGIN) $(BUILD)/allreduce
objects: $(call obj,$(SRC_ALL))

# setup is quick when nothing is missing; its stamp depends on the script
setup: $(BUILD)/.setup
$(BUILD)/.setup: scripts/setup
	@mkdir -p $(BUILD)
	@scripts/setup
	@touch $@

include $(wildcard scripts/*.mk)

# TEST_CFLAGS: what to compile tests with besides; -O1 takes half of -O2's time
TEST_CFLAGS ?= $(if $(filter -O2,$(OPT)),-O1)
$(BUILD)/obj/tests/unit/%.o $(BUILD)/obj/tests/lib/%.o: ALL_CFLAGS += $(TEST_CFLAGS)
$(BUILD)/obj/%.o: %.c | $(BUILD)/.setup
	@mkdir -p $(dir $@)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(CFLAGS_$(subst /,_,$*)) -MMD -MP -c -o $@ $<

$(BUILD)/libbiga-lib.a:        $(call obj,$(SRC_LIB))
$(BUILD)/libbiga-model.a:      $(call obj,$(SRC_MODEL))
$(BUILD)/libbiga-advertiser.a: $(call obj,$(SRC_ADVERTISER))
$(BUILD)/libbiga-router.a:     $(call obj,$(SRC_ROUTER))
$(BUILD)/libbiga-extender.a:   $(call obj,$(SRC_EXTENDER))
$(BUILD)/libbiga-cli.a:        $(call obj,$(SRC_CLI))
$(BUILD)/libbiga-replay.a:     $(call obj,$(SRC_REPLAY))
$(BUILD)/libbiga-card.a:       $(call obj,$(SRC_CARD))
$(BUILD)/libbiga-tests.a:      $(call obj,$(SRC_TESTLIB) $(SRC_EXAMPLE))
$(BUILD)/%.a:
	@mkdir -p $(dir $@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# link OBJECTS LIBRARIES: the libraries may need one another
link = $(LINK) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) \
       -Wl,--end-group $(PKG_SOME) $(PKG_LIBS)

$(BUILD)/biga-advertiser: $(BUILD)/obj/advertiser/main.o \
    $(BUILD)/libbiga-advertiser.a $(BUILD)/libbiga-model.a \
    $(BUILD)/libbiga-lib.a
# the kubelet's endpoint is small: it carries no library that it does not use
$(BUILD)/biga-cri: LINK += -Wl,--as-needed
$(BUILD)/biga-cri: $(BUILD)/obj/router/main.o $(BUILD)/libbiga-router.a \
    $(BUILD)/libbiga-advertiser.a $(BUILD)/libbiga-model.a \
    $(BUILD)/libbiga-lib.a
$(BUILD)/biga-extender: $(BUILD)/obj/extender/main.o \
    $(BUILD)/libbiga-extender.a $(BUILD)/libbiga-model.a \
    $(BUILD)/libbiga-lib.a
$(BUILD)/biga: $(BUILD)/obj/cli/main.o $(BUILD)/libbiga-cli.a \
    $(BUILD)/libbiga-model.a $(BUILD)/libbiga-lib.a
$(BUILD)/biga-replay: $(BUILD)/obj/bench/replay/main.o $(LIBS)
$(PROGRAMS):
	$(call say,LINK,$@)
	$(Q)$(link)

$(PLUGIN): | $(BUILD)/biga
	$(Q)ln -sf biga $@

# The helper on cards is of their architecture, and brings all it needs:
# make card CARD_CC=aarch64-linux-gnu-gcc BUILD=build-arm64
CARD_CC ?= $(CC)
CARD_STRIP ?= -s
card: $(CARD)
$(BUILD)/biga-card: $(wildcard card/*.[ch]) lib/base/error.c \
    lib/base/error.h lib/base/hash.h lib/base/hidden_text.c lib/base/hidden_text.h \
    lib/io/log_line.c lib/io/log_line.h lib/base/utf8.h lib/base/mem.c \
    lib/base/mem.h lib/io/lines.c \
    lib/io/lines.h lib/io/tree.c lib/io/tree.h lib/io/writers.c \
    lib/io/writers.h | $(BUILD)/.setup
	$(call say,LINK,$@)
	$(Q)$(CARD_CC) -static-pie $(CARD_STRIP) -Os -std=gnu11 $(WARNINGS) \
	    $(WERROR) -fstack-protector-strong $(call hardened,$(CARD_CC),-Os) \
	    $(HARD_LINK) -include lib/base/banned.h $(CPPFLAGS) -o $@ \
	    -Wl,-Map=$@.map $(filter %.c,$^)

# The example that runs on both sides, as static as that.
example: $(BUILD)/allreduce
$(BUILD)/allreduce: $(wildcard deploy/examples/allreduce/*.[ch]) \
    lib/base/error.c lib/base/error.h lib/base/hidden_text.c \
    lib/base/hidden_text.h lib/base/utf8.h lib/base/mem.c lib/base/mem.h \
    | $(BUILD)/.setup
	$(call say,LINK,$@)
	$(Q)$(CARD_CC) -static-pie $(CARD_STRIP) -O2 -std=gnu11 $(WARNINGS) \
	    $(WERROR) -fstack-protector-strong $(call hardened,$(CARD_CC),-O2) \
	    $(HARD_LINK) -include lib/base/banned.h $(CPPFLAGS) -o $@ \
	    $(filter %.c,$^)

# Tests are many, and gold links one in a third of the time.  Where clang has
# AddressSanitizer it says 150 lines about each; there it is lld.
LINKER  = $(if $(findstring =address,$(SAN)),lld,gold)
QUICKLY = $(eval QUICKLY := $(if $(shell command -v ld.$(LINKER)),-fuse-ld=$(LINKER)))$(QUICKLY)
# Each test of a program starts it anew, with the libraries that it is linked
# with: those that it uses.
$(UNIT) $(FUZZ) $(RACE): LINK += $(QUICKLY) -Wl,--as-needed

# what tests/lib has in place of what libraries would take
INSTEAD := -Wl,-u,__lsan_is_turned_off -Wl,-u,mbedtls_x509_crt_parse_file \
           -Wl,--export-dynamic-symbol=mbedtls_x509_crt_parse_file \
           -Wl,--export-dynamic-symbol=mbedtls_x509_crt_parse_path
TEST_LIBS := $(BUILD)/libbiga-tests.a $(LIBS) $(BUILD)/libbiga-card.a
FUZZ_MAIN  = $(if $(FUZZER),,$(BUILD)/obj/tests/fuzz/main.o)
# build/tests/test_x is that of tests/unit/ROOM/test_x.c
$(foreach src,$(SRC_UNIT),$(eval $(BUILD)/tests/$(basename $(notdir $(src))): \
    $(call obj,$(src))))
$(UNIT): $(TEST_LIBS)
	@mkdir -p $(dir $@)
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME) -lcriterion $(INSTEAD)
# build/fuzz/fuzz_x is that of tests/fuzz/fuzz_x.c or tests/fuzz/ROOM/fuzz_x.c
$(foreach src,$(SRC_FUZZ),$(eval $(BUILD)/fuzz/$(basename $(notdir $(src))): \
    $(call obj,$(src))))
$(FUZZ): $(FUZZ_MAIN) $(TEST_LIBS)
	@mkdir -p $(dir $@)
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME) $(FUZZER)
# what they do not use is not compiled for ThreadSanitizer
$(BUILD)/race/%: $(BUILD)/obj/tests/race/%.o \
    $(filter-out %-replay.a %-cli.a,$(TEST_LIBS))
	@mkdir -p $(dir $@)
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME)
$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(TEST_LIBS)
	@mkdir -p $(dir $@)
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME)

# what tests in a cluster drive
$(BUILD)/judges/%: $(BUILD)/obj/tests/kube/%.o $(TEST_LIBS)
	@mkdir -p $(dir $@)
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME)

# what tests of cards drive
$(BUILD)/judges/volumes: $(BUILD)/obj/tests/cards/volumes.o $(TEST_LIBS)
	@mkdir -p $(dir $@)
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME)

# what tests of a node drive
$(BUILD)/judges/deviceplugin: $(BUILD)/obj/tests/node/deviceplugin.o $(TEST_LIBS)
	@mkdir -p $(dir $@)
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME)

-include $(shell find $(BUILD)/obj build-fp/obj -name '*.d' -type f 2>/dev/null)

# --- show and test --------------------------------------------------------
export BIGA_BUILD := $(BUILD)

demo: setup programs
	@scripts/setup --cards >/dev/null 2>&1 || true
	@$(BUILD)/biga demo --then tests/cards/demo.py $(DEMO_ARGS)

test: programs man $(UNIT) $(FUZZ) $(RACE)
	@scripts/run-tests --unit $(UNIT) --corpus $(FUZZ) --race $(RACE) --e2e $(E2E)
test-unit: $(UNIT) $(FUZZ)
	@scripts/run-tests --unit $(UNIT) --corpus $(FUZZ)
test-e2e: programs man
	@scripts/run-tests --e2e $(E2E)

# Kubernetes is built once, which takes minutes, and says so.  Where there is
# no Go (status 77) the tests are skipped, with the reason.
test-kube: programs $(BUILD)/bench/bench_reflector $(BUILD)/judges/fit \
    $(BUILD)/judges/podresources
	@scripts/setup --kube
	@for what in '' helm; do \
	    tests/kube/binaries $$what >/dev/null || [ $$? = 77 ] || exit 1; done
	@env -u MAKEFLAGS -u MAKELEVEL tests/kube/pool \
	    scripts/run-tests --kube $(KUBE)
# the scheduler with Biga and without, in turn: some minutes
bench-kube: programs
	@scripts/setup --kube
	@tests/kube/binaries >/dev/null
	@tests/kube/bench.py $(BENCH_ARGS)
# Kueue and JobSet, whose managers take minutes to build
test-kueue: programs
	@scripts/setup --kube
	@for what in '' jobset kueue; do \
	    tests/kube/binaries $$what >/dev/null || exit 1; done
	@tests/kube/kueue/test_kueue.py $(KUEUE_ARGS)

bench-doors: programs
	@scripts/setup --kube
	@tests/kube/binaries >/dev/null
	@tests/kube/bench_doors.py $(BENCH_ARGS)

# 5,000 pods of all kinds, created and deleted at random: some minutes
storm-kube: programs
	@scripts/setup --kube
	@tests/kube/binaries >/dev/null
	@BIGA_STORM_PODS=$${BIGA_STORM_PODS:-5000} tests/kube/test_storm.py
kube-up: programs
	@scripts/setup --kube
	@tests/kube/up $(BUILD)/kube --biga $(KUBE_ARGS)
kube-down:
	@tests/kube/down $(BUILD)/kube

# Real runtimes as cards; where there can be none (no root, no namespaces) the
# tests are skipped, with the reason.
test-cards: programs $(FP)/biga-advertiser $(BUILD)/bench/bench_follow \
    $(BUILD)/judges/volumes
	@scripts/setup --cards || true
	@env -u MAKEFLAGS -u MAKELEVEL scripts/run-tests --cards $(CARDS)
cards-up: programs
	@scripts/setup --cards
	@tests/cards/up $(BUILD)/cards $(CARDS_ARGS)
cards-down:
	@tests/cards/down $(BUILD)/cards

# A real browser; where there is none the tests are skipped, with the reason.
test-console: programs
	@scripts/setup --console || true
	@env -u MAKEFLAGS -u MAKELEVEL scripts/run-tests --console $(CONSOLE)
bench-console: programs
	@scripts/setup --console
	@tests/console/bench.py
screenshots: programs
	@scripts/setup --console
	@tests/console/screenshots.py docs

# A real kubelet and what it dials, with cards.  Where there is no Go, root or
# control groups the tests are skipped, with the reason.
node-binaries:
	@scripts/setup --node || true
	@for what in '' kubelet cri; do \
	    tests/kube/binaries $$what >/dev/null || [ $$? = 77 ] || exit 1; done
# The longest take four minutes alone, and more beside all else.  Each keeps a
# processor busy: with more of them at once, calls do not come in time.
test-node: programs $(FP)/biga-cri $(FP)/biga-advertiser node-binaries \
    $(BUILD)/judges/deviceplugin
	@env -u MAKEFLAGS -u MAKELEVEL \
	    $(if $(NODE_FULL),TEST_TIMEOUT=$${TEST_TIMEOUT:-1500}) \
	    scripts/run-tests -j $${BIGA_JOBS:-$$(nproc)} --node $(NODE)
bench-node: programs node-binaries $(BUILD)/bench/bench_grpcd
	@tests/node/bench_router.py
# all specs, at all targets at the same time: some minutes
critest: programs node-binaries
	@tests/node/critest.py $(CRITEST_ARGS)
node-up: programs node-binaries
	@tests/node/up $(BUILD)/node --biga $(NODE_ARGS)
node-down:
	@tests/node/down $(BUILD)/node
# other versions of kubelet and containerd, which take minutes to build
test-versions: programs $(FP)/biga-advertiser node-binaries
	@for what in kubelet-1.36 containerd-2; do \
	    tests/kube/binaries $$what >/dev/null || [ $$? = 77 ] || exit 1; done
	@env -u MAKEFLAGS -u MAKELEVEL TEST_TIMEOUT=1800 \
	    scripts/run-tests --node $(VERSIONS) tests/node/test_dra.py

# All at once, with faults, for $SOAK_SECONDS (60); $SOAK_SEED repeats a run.
soak: programs
	@scripts/setup --kube
	@scripts/setup --cards
	@tests/kube/binaries >/dev/null
	@tests/soak/soak.py $(SOAK_ARGS)

lint:
	@scripts/lint

bench: programs $(BENCH)
	@BUILD=$(BUILD) bench/run $(BENCH_ARGS)
# a life of 100,000 hosts: some minutes, and some GiB
bench-scale: programs $(BENCH)
	@BUILD=$(BUILD) bench/scale

# Builds of their own, beside the one that is used.
AGAIN   = $(MAKE) --no-print-directory
IN_TSAN = $(AGAIN) BUILD=build-tsan OPT='-O1 -g' \
  SAN=-fsanitize=thread
# AddressSanitizer, UndefinedBehaviorSanitizer and what libFuzzer counts: one
# build for unit tests, corpora and fuzzing.  Tests themselves need not be fast.
# SAN_COVER=-fsanitize=fuzzer-no-link lets a fuzzer see what is compared, too,
# which makes everything a third slower.
SAN_CC    ?= clang
SAN_COVER ?= -fsanitize-coverage=inline-8bit-counters,pc-table
IN_SAN  = $(AGAIN) BUILD=build-san CC='$(SAN_CC)' OPT='-O2 -gline-tables-only' \
  SAN='-fsanitize=address,undefined -fno-sanitize-recover=all $(SAN_COVER)' \
  TEST_CFLAGS=-O0 FUZZER=-fsanitize=fuzzer

# All that asan, fuzz and race run, built and not run.
instrumented: san-built tsan-built
san-built:
	+@$(IN_SAN) unit-built
tsan-built:
	+@$(IN_TSAN) race-built
.PHONY: san-built tsan-built unit-built race-built
unit-built: $(UNIT) $(FUZZ)
race-built: $(RACE)

# A sanitizer never goes on after a finding.  A leak must abort, because
# Criterion only looks at how a test's process dies.
asan: export ASAN_OPTIONS = abort_on_error=1:detect_leaks=1:quarantine_size_mb=4
asan: export UBSAN_OPTIONS = print_stacktrace=1:abort_on_error=1
asan:
	+@$(IN_SAN) test-unit

# Exit status 66 is a finding.  The runtime wants an unrandomized layout.
race: export TSAN_OPTIONS = halt_on_error=1 second_deadlock_stack=1 \
    suppressions=$(CURDIR)/tests/race/tsan.supp
race:
	+@$(IN_TSAN) race-run
.PHONY: race-run
race-run: $(RACE)
	@$$(setarch -R true 2>/dev/null && echo setarch -R) \
	  scripts/run-tests --race $(RACE)

# Programs that die, hang or fail at the points that $BIGA_FAILPOINTS names.
# Only what has such points is compiled again; the linker takes it before what
# the archives have.
FP_SRC := $(shell grep -lw 'failpoint\|FAILPOINTS' $(SRC_ALL))
fp_obj  = $(patsubst %.c,$(FP)/obj/%.o,$(filter-out $(1),$(FP_SRC)))
$(FP)/obj/%.o: %.c | $(BUILD)/.setup
	@mkdir -p $(dir $@)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -DFAILPOINTS -MMD -MP -c -o $@ $<
$(FP)/biga-extender: $(call fp_obj,tests/% advertiser/% router/%) \
    $(BUILD)/obj/extender/main.o $(BUILD)/libbiga-extender.a
$(FP)/biga-cri: $(call fp_obj,tests/% extender/% advertiser/%) \
    $(BUILD)/obj/router/main.o $(BUILD)/libbiga-router.a \
    $(BUILD)/libbiga-advertiser.a
$(FP)/biga-advertiser: $(call fp_obj,tests/% extender/% router/%) \
    $(BUILD)/obj/advertiser/main.o $(BUILD)/libbiga-advertiser.a
# each such test has a main() of its own
FP_RACE := $(notdir $(basename $(filter tests/race/%,$(FP_SRC))))
$(FP_RACE:%=$(FP)/%): $(FP)/race_%: $(FP)/obj/tests/race/race_%.o \
    $(call fp_obj,tests/%) $(TEST_LIBS)
$(FP)/biga-extender $(FP)/biga-advertiser $(FP)/biga-cri \
$(FP_RACE:%=$(FP)/%): \
    $(BUILD)/libbiga-model.a $(BUILD)/libbiga-lib.a
	$(call say,LINK,$@)
	$(Q)$(link) $(TEST_SOME)
# what has no such point is beside them all the same
$(FP)/biga $(FP)/biga-card: $(FP)/%: $(BUILD)/%
	@mkdir -p $(dir $@)
	$(Q)ln -sf $(abspath $<) $@
$(FP)/kubectl-biga: | $(FP)/biga
	$(Q)ln -sf biga $@

.PHONY: failpoints-built
failpoints-built: $(addprefix $(FP)/,biga-extender biga-advertiser biga-cri biga \
    biga-card kubectl-biga $(FP_RACE))
failpoints: failpoints-built
	@tests/kube/binaries >/dev/null || [ $$? = 77 ]
	@BIGA_BUILD=$(FP) scripts/run-tests --race $(FP_RACE:%=$(FP)/%) \
	  --kube tests/kube/failpoints.py

FUZZ_SECONDS ?= 60
fuzz:
	+@$(IN_SAN) fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ)
	@scripts/run-fuzz $(FUZZ_SECONDS) $(FUZZ)

# --- documents and installation --------------------------------------------
$(BUILD)/man/%.1: $(BUILD)/%
	@mkdir -p $(dir $@)
	$(Q)$< --print-docs man >$@
man: $(MAN)
$(BUILD)/settings.md: $(PROGRAMS)
	@printf '# Settings\n\nWritten by `make docs` from the tables that also feed\nthe command line, `--help` and the manual pages.\n' >$@
	@for p in $(PROGRAMS); do echo && $$p --print-docs markdown; done >>$@
docs: man $(BUILD)/settings.md
	@cp $(BUILD)/settings.md docs/settings.md
	@scripts/layers document CONTRIBUTING.md >$(BUILD)/contributing.md
	@cp $(BUILD)/contributing.md CONTRIBUTING.md
	@scripts/pictures docs

BIN  := $(DESTDIR)$(PREFIX)/bin
MAN1 := $(DESTDIR)$(PREFIX)/share/man/man1
DATA := $(DESTDIR)$(PREFIX)/share/biga
COMP := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
FISH := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
ZSH  := $(DESTDIR)$(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
install: programs man
	install -d $(BIN) $(MAN1) $(COMP) $(FISH) $(ZSH) $(DATA)/schema
	install -m 755 $(PROGRAMS) $(BIN)
	ln -sf biga $(BIN)/kubectl-biga
	install -m 644 $(MAN) $(MAN1)
	for p in $(filter-out biga,$(NAMES)); do \
	    $(BUILD)/$$p --print-docs completion >$(COMP)/$$p || exit 1; done
	$(BUILD)/biga completion bash >$(COMP)/biga
	$(BUILD)/biga completion zsh >$(ZSH)/_biga
	$(BUILD)/biga completion fish >$(FISH)/biga.fish
	$(if $(wildcard schema/*),install -m 644 $(wildcard schema/*.*) $(DATA)/schema)
uninstall:
	rm -f $(NAMES:%=$(BIN)/%) $(BIN)/kubectl-biga $(NAMES:%=$(MAN1)/%.1) \
	    $(NAMES:%=$(COMP)/%) $(ZSH)/_biga $(FISH)/biga.fish
	rm -rf $(DATA)

FORMATTED = $(sort $(shell find $(wildcard lib) model advertiser router extender \
    cli card deploy bench tests -name '*.[ch]'))
format:
	clang-format -i $(FORMATTED)
format-check:
	clang-format --dry-run -Werror $(FORMATTED)

clean:
	rm -rf build build-*

define HELP
  all           build the programs (the default)
  demo          build and run the demo; DEMO_ARGS=--once ends by itself
  test          all tests; test-unit, test-e2e: parts of them
  test-kube     tests against a real control plane; builds it with Go, once
  bench-node    what biga-cri costs pods of the host, under a real kubelet
  bench-kube    pods per second of kube-scheduler with Biga and without
  bench-doors   the same of the gate door, the extender's, and claims alone
  test-kueue    with Kueue and JobSet; builds them, once; KUEUE_ARGS=queue is
                a part of it
  storm-kube    5,000 pods come and go at random; nothing is given twice
  kube-up       start a cluster with Biga in it; kube-down ends it;
                KUBE_ARGS go to tests/kube/up
  test-cards    tests against real containerds as cards; needs root
  cards-up      start a host and eight cards and leave them; cards-down ends
                them; CARDS_ARGS go to tests/cards/up
  test-console  tests of the pages in a real browser, with 1,000 hosts
  bench-console how soon pages are painted, and a bind is seen
  screenshots   the pictures of docs/console.md, drawn anew
  test-node     tests of a node with a real kubelet; needs root and Go
  test-versions the short of it with the kubelet of the minor release before,
                containerd 2.x and gates of the kubelet; builds them, once
  node-up       start a node with a kubelet, two cards and a cluster with Biga
                and leave them; node-down ends them; NODE_ARGS go to
                tests/node/up
  test-package  packages in a fresh Debian, and a second build of them; needs
                root and a mirror of Debian
  critest       Kubernetes' tests of container runtimes, all of them, on host
                and card, with biga-cri and without; CRITEST_ARGS=router-card:
                on a card with it alone
  soak          faults in all of it at once for SOAK_SECONDS (60), by root;
                SOAK_SEED=N repeats a run, SOAK_ARGS=cards does a part
  lint          layers, sizes, warnings of gcc and clang, cppcheck, documents
  asan          unit tests and fuzz corpora with ASan and UBSan
  race          the race programs with TSan
  failpoints    die at every named point of the bind path
  fuzz          fuzz each target for FUZZ_SECONDS (60) seconds
  instrumented  build what asan, race and fuzz run, and run nothing
  bench         measure; BENCH_ARGS go to bench/run
  bench-scale   a life of BENCH_SCALE_HOSTS (100,000) hosts, and what it takes
  docs          docs/settings.md and manual pages from the settings, the table
                of rooms in CONTRIBUTING.md, and the drawings of README
  install       into PREFIX (/usr/local) below DESTDIR; uninstall
  deb           Debian packages; deb-foreign: of arm64 (on arm64, of amd64)
  images        images for registries, of both, without an engine
  krew          kubectl's plugin, for krew; KREW_URL=…: where it will be
  example       the static program of deploy/examples/allreduce
  format        clang-format all sources; format-check only looks
  clean         remove build/ and build-*/

  V=1 prints commands, CC=clang, OPT=-O0, WERROR=-Werror choose how to build
endef
export HELP
help:
	@echo "$$HELP"
