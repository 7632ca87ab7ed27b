# proverq. `make help` lists the targets; README.md tells the two that matter: `make demo` and `make check`.
#
#   SAN=address,undefined | thread   sanitizer build, in a folder of its own
#   CUDA=0                           build without CUDA although nvcc is there
#   ARCHS=all                        device code for sm_80, 86, 89, 90 and PTX (default: sm_90 and PTX)

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

SAN ?=
comma := ,
B   := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

# --- C ------------------------------------------------------------------------------------------------
CC       ?= gcc
AR       ?= ar
PKGS     := libpq libcurl libcrypto jansson libmicrohttpd
WARN     := -Wall -Wextra -Wconversion -Wshadow -Werror   # a conversion that loses bits is a bug in field code
WARN     += -Wstrict-prototypes -Wmissing-prototypes      # what is not in a header is static
WARN     += -Wwrite-strings -Wpointer-arith -Wundef -Wvla
HARDEN   := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
override CPPFLAGS += -I. -I$(B)/gen -D_GNU_SOURCE $(shell pkg-config --cflags $(PKGS))
CFLAGS   ?= -O3 -g
override CFLAGS += -std=c11 $(WARN) $(HARDEN) -pthread -fno-strict-aliasing # zkey bytes are read as limbs
override LDFLAGS += -pthread -pie -Wl,-z,relro,-z,now
override LDLIBS += $(shell pkg-config --libs $(PKGS)) -lm -ldl -lrt
ifneq ($(SAN),)
  SANFLAGS := -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
  # Instrumented code draws warnings that are false; the plain build is the one that must have none.
  override CFLAGS := $(filter-out -D_FORTIFY_SOURCE=2 -Werror,$(CFLAGS)) -w $(SANFLAGS)
  override LDFLAGS += $(SANFLAGS)
endif
ADX := $(if $(filter x86_64,$(shell uname -m)),-mbmi2 -madx)

# --- CUDA ---------------------------------------------------------------------------------------------
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc))
CUDA ?= $(if $(NVCC),1,0)
include $(wildcard gpu/cuda/cuda.mk)

# --- what is built ------------------------------------------------------------------------------------
# Curve files are compiled twice, for any processor and for those with MULX/ADX; cpu_curve.c chooses at run time.
CURVES    := $(wildcard gpu/cpu/curve_*.c)
GPU_SRC   := $(filter-out $(CURVES),$(wildcard gpu/*.c gpu/cpu/*.c))
GPU_OBJ   := $(GPU_SRC:%.c=$(B)/%.o) $(CURVES:%.c=$(B)/%.portable.o) $(if $(ADX),$(CURVES:%.c=$(B)/%.adx.o))
SVC_SRC   := $(wildcard service/*/*.c)
SQL_FILES := $(sort $(wildcard migrations/*.sql sql/*.sql sql/*/*.sql))
SVC_OBJ   := $(SVC_SRC:%.c=$(B)/%.o) $(B)/gen/embedded.o
GPU_LIB   := $(B)/libproverq-gpu.a
SVC_LIB   := $(B)/libproverq-service.a
TEST_SRC  := $(wildcard tests/gpu/test_*.c tests/service/*/test_*.c)
TEST_BIN  := $(TEST_SRC:%.c=$(B)/%) $(CUDA_TEST_BIN)
HELP_SRC  := $(filter-out $(TEST_SRC),$(wildcard tests/gpu/*.c tests/service/*.c))
HELP_OBJ  := $(HELP_SRC:%.c=$(B)/%.o)

.PHONY: build
build: $(B)/proverq ## compile build/proverq (what plain `make` does)

$(B)/proverq: $(B)/service/main.o $(SVC_LIB) $(GPU_LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) $(LDLIBS)

$(GPU_LIB): $(GPU_OBJ) $(CUDA_OBJ)
$(SVC_LIB): $(SVC_OBJ)
%.a:
	@rm -f $@
	$(AR) rcs $@ $^

# A build with CUDA is not one without: what was compiled otherwise is compiled again.
$(B)/with-cuda-$(CUDA):
	@mkdir -p $(@D) && rm -f $(B)/with-cuda-* && touch $@
$(B)/gpu/prover.o: $(B)/with-cuda-$(CUDA)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CUDA_DEFS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/%.portable.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -DCURVE_ISA=portable -MMD -MP -c -o $@ $<
$(B)/%.adx.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(ADX) -DCURVE_ISA=adx -MMD -MP -c -o $@ $<

# SQL is compiled in: one symbol per file (service/common/embedded.h).
$(B)/gen/embedded.c: service/common/embed.sh service/calculator/calculator_glue.inc $(SQL_FILES)
	@mkdir -p $(@D)
	bash service/common/embed.sh $(SQL_FILES) > $@
$(B)/gen/embedded.o: $(B)/gen/embedded.c
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# --- tests --------------------------------------------------------------------------------------------
$(B)/tests/%: $(B)/tests/%.o $(HELP_OBJ) $(SVC_LIB) $(GPU_LIB)
	$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(SVC_LIB) $(GPU_LIB) $(CUDA_LIBS) $(LDLIBS) -lcheck -lsubunit -lgmp -lm

# The same program with sleeps at the boundaries between steps (service/common/faults.h), for tests/e2e/{evidence,control}.sh.
FAULT_OBJ := $(patsubst %.c,$(B)/faults/%.o,$(shell grep -l '"service/common/faults.h"' service/*/*.c) tests/bench/racing.c)
$(B)/proverq-faults: $(B)/service/main.o $(FAULT_OBJ) $(SVC_LIB) $(GPU_LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) $(LDLIBS)
$(B)/faults/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CUDA_DEFS) $(CFLAGS) -DPROVERQ_FAULTS -MMD -MP -c -o $@ $<

# The program of a later release, for tests/migrations: with the files of tests/migrations/later beside today's.
LATER := $(B)/later/tree
$(B)/later/embedded.c: service/common/embed.sh contrib/scripts/seal-migrations.sh $(SQL_FILES) $(shell find tests/migrations/later -name '*.sql')
	rm -rf $(LATER)
	mkdir -p $(LATER)
	cp -r --parents migrations sql service/common/embed.sh service/calculator/calculator_glue.inc contrib/scripts $(LATER)
	cp -r tests/migrations/later/. $(LATER)
	cd $(LATER) && contrib/scripts/seal-migrations.sh && shopt -s nullglob && export LC_ALL=C && \
	    bash service/common/embed.sh migrations/*.sql sql/*.sql sql/*/*.sql > ../embedded.c
$(B)/later/embedded.o: $(B)/later/embedded.c
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/proverq-later: $(B)/service/main.o $(B)/later/embedded.o $(SVC_LIB) $(GPU_LIB)
	$(CC) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) $(LDLIBS)

.PHONY: tests check chaos lint sanitizers
tests: $(TEST_BIN) $(B)/proverq-faults $(B)/proverq-later $(B)/tests/bench/bench_queue

check: ## run every test and check (README.md); ONLY="unit lint" runs these parts
	tests/check.sh $(ONLY)

chaos: ## root only: whatever can end, stop or be cut off does so at random, for 8 minutes; CHAOS_SECONDS=N CHAOS_SEED=N RUNS="main notify"
	tests/chaos/run.sh $(RUNS)

lint: ## formatting, static analysis, the layer rules, the documentation of options
	tests/lint.sh

sanitizers: ## the unit tests under ASan and UBSan, those with threads under TSan
	tests/check.sh sanitizers

# --- for people ---------------------------------------------------------------------------------------
.PHONY: help deps demo demo-stop bench bench-pipeline bench-queue clean
demo: ## see it work: builds, starts a private PostgreSQL in .demo/, proves real jobs
	contrib/scripts/demo.sh

demo-stop: ## stop what `make demo` started and remove .demo/
	contrib/scripts/demo.sh stop

bench: build $(B)/tests/bench/make_circuit ## proverq against snarkjs (and rapidsnark, if it is on PATH), each proof verified
	tests/bench/compare.sh $(CASES)

bench-pipeline: build $(B)/proverq-faults $(B)/tests/bench/make_circuit ## the whole service: as shipped and disturbed; DEVICE=cuda:0, RUNS="backlog small experiment"
	tests/bench/pipeline.sh $(RUNS)

bench-queue: build $(B)/tests/bench/bench_queue ## the queue alone, against graphile-worker and pg-boss from npm; ONLY="rates latency claims"
	tests/bench/bench_queue.sh $(ONLY)

deps: ## install the Debian or Ubuntu packages that are missing
	contrib/scripts/install-packages.sh

clean: ## remove what was built
	rm -rf build

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@sed -n '3,6s/^#//p' Makefile

-include $(shell find $(B) -name '*.d' 2>/dev/null)
