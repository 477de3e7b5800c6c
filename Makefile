# One non-recursive Makefile; everything it makes lands under build/.
#
#   make demo          set up, build, show the main job, leave the server up
#   make test          set up, build, run all tests that need no cluster
#   make help          the other targets
#
# Sources are found by folder: a new model/x.c, extender/x.c, cli/x.c,
# tests/unit/test_x.c, tests/fuzz/fuzz_x.c, tests/race/race_x.c or
# bench/bench_x.c needs no line here.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla \
            -Wno-format-truncation
OPT      ?= -O2 -g
SAN      ?=
PACKAGES := libmicrohttpd libcurl libcjson hwloc sqlite3
PKG_CFLAGS = $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS   = $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lgnutls -lm -lpthread

CPPFLAGS += -D_GNU_SOURCE -I. -I$(BUILD) -DBIGA_VERSION='"$(VERSION)"'
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARNINGS) $(WERROR) $(SAN) -fno-common \
             -fstack-protector-strong -include model/base/banned.h \
             $(PKG_CFLAGS) $(CFLAGS)
LINK = $(CC) $(OPT) $(SAN) $(LDFLAGS)

# --- what there is --------------------------------------------------------
SRC_MODEL      := $(wildcard model/base/*.c model/*.c model/io/*.c)
SRC_ADVERTISER := $(filter-out %/main.c,$(wildcard advertiser/*.c))
SRC_EXTENDER   := $(filter-out %/main.c,$(wildcard extender/*.c))
SRC_CLI        := $(filter-out %/main.c,$(wildcard cli/*.c))
SRC_TESTLIB    := $(wildcard tests/lib/*.c)
UNIT  := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
FUZZ  := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
RACE  := $(patsubst tests/race/%.c,$(BUILD)/race/%,$(wildcard tests/race/race_*.c))
BENCH := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c))
PROGRAMS := $(patsubst %,$(BUILD)/%,$(foreach p,advertiser:biga-advertiser \
              extender:biga-extender cli:biga,$(if $(wildcard \
              $(firstword $(subst :, ,$p))/main.c),$(lastword $(subst :, ,$p)))))

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIBS := $(BUILD)/libbiga-cli.a $(BUILD)/libbiga-extender.a \
        $(BUILD)/libbiga-advertiser.a $(BUILD)/libbiga-model.a

.DEFAULT_GOAL := all
.PHONY: all programs help setup demo test test-unit test-e2e lint bench fuzz race \
        asan ubsan install uninstall clean docs format
.SECONDARY:
.DELETE_ON_ERROR:

all: setup programs
programs: $(PROGRAMS)

# setup is quick when nothing is missing; its stamp depends on the script
setup: $(BUILD)/.setup
$(BUILD)/.setup: scripts/setup
	@mkdir -p $(BUILD)
	@scripts/setup
	@touch $@

include $(wildcard scripts/*.mk)

$(BUILD)/obj/%.o: %.c | $(BUILD)/.setup
	@mkdir -p $(dir $@)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(CFLAGS_$(subst /,_,$*)) -MMD -MP -c -o $@ $<

$(BUILD)/libbiga-model.a:      $(call obj,$(SRC_MODEL))
$(BUILD)/libbiga-advertiser.a: $(call obj,$(SRC_ADVERTISER))
$(BUILD)/libbiga-extender.a:   $(call obj,$(SRC_EXTENDER))
$(BUILD)/libbiga-cli.a:        $(call obj,$(SRC_CLI))
$(BUILD)/libbiga-tests.a:      $(call obj,$(SRC_TESTLIB))
$(BUILD)/%.a:
	@mkdir -p $(dir $@)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/biga-advertiser: $(BUILD)/obj/advertiser/main.o \
    $(BUILD)/libbiga-advertiser.a $(BUILD)/libbiga-model.a
	$(LINK) -o $@ $^ $(PKG_LIBS)
$(BUILD)/biga-extender: $(BUILD)/obj/extender/main.o \
    $(BUILD)/libbiga-extender.a $(BUILD)/libbiga-model.a
	$(LINK) -o $@ $^ $(PKG_LIBS)
$(BUILD)/biga: $(BUILD)/obj/cli/main.o $(BUILD)/libbiga-cli.a \
    $(BUILD)/libbiga-model.a
	$(LINK) -o $@ $^ $(PKG_LIBS)

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(BUILD)/libbiga-tests.a $(LIBS)
	@mkdir -p $(dir $@)
	$(LINK) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(PKG_LIBS) -lcriterion
$(BUILD)/race/%: $(BUILD)/obj/tests/race/%.o $(BUILD)/libbiga-tests.a $(LIBS)
	@mkdir -p $(dir $@)
	$(LINK) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(PKG_LIBS)
$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(BUILD)/libbiga-tests.a $(LIBS)
	@mkdir -p $(dir $@)
	$(LINK) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(PKG_LIBS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)

clean:
	rm -rf $(BUILD)
