# The CUDA part of the build, included by the Makefile. Device code is built for sm_90 with PTX for
# what comes after; ARCHS=all adds sm_80, 86 and 89. Nothing needs relocatable device code.

CUDA_SRC :=
CUDA_C_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard gpu/cuda/*.c)) # host code, tested everywhere
CUDA_OBJ :=
CUDA_DEFS :=
CUDA_LIBS :=

ifeq ($(CUDA)$(SAN),1) # sanitizers watch host code; the card has compute-sanitizer
ARCHS     ?= 90
SM        := $(if $(filter all,$(ARCHS)),80 86 89 90,$(ARCHS))
GENCODE   := $(foreach a,$(SM),-gencode arch=compute_$(a),code=sm_$(a))
GENCODE   += -gencode arch=compute_$(lastword $(SM)),code=compute_$(lastword $(SM))
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))

CUDA_SRC  := $(wildcard gpu/cuda/*.cu)
CUDA_OBJ  := $(CUDA_SRC:%.cu=$(B)/%.o) $(CUDA_C_OBJ)
CUDA_DEFS := -DPROVERQ_CUDA
CUDA_LIBS := -L$(CUDA_HOME)/lib64 -lcudart_static -lstdc++ -lpthread

# -Wconversion and -Wshadow stay with the C files: the runtime's headers do not pass the one, and in C++ a function
# named like its struct (curve_info) does not pass the other.
NVCCFLAGS := -O3 -g -lineinfo -std=c++17 -Xcompiler -Wall,-Wextra,-Werror,-fPIE -Werror all-warnings
NVCCFLAGS += $(GENCODE)
NVCCFLAGS += $(addprefix -I,$(wildcard $(CUDA_HOME)/extras/CUPTI/include)) # cupti.h; elsewhere it is with the others

$(B)/%.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) -I. $(CUDA_DEFS) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
endif

# Device code compiled for the host and tested there, with or without nvcc.
CXX           ?= g++
CUDA_TEST_BIN := $(patsubst %.cu,$(B)/%,$(wildcard tests/gpu/test_cuda_*.cu))
ifeq ($(CUDA_SRC),)
CUDA_TEST_BIN := $(filter-out %/test_cuda_backend,$(CUDA_TEST_BIN)) # links nvcc's objects, with a runtime of its own
endif

$(B)/tests/gpu/test_cuda_%.o: tests/gpu/test_cuda_%.cu
	@mkdir -p $(@D)
	$(CXX) -x c++ -std=c++17 -O2 -g -I. -Wall -Wextra -Werror -fPIE $(SANFLAGS) -MMD -MP -c -o $@ $<
$(B)/tests/gpu/test_cuda_%: $(B)/tests/gpu/test_cuda_%.o $(CUDA_C_OBJ) $(B)/libproverq-gpu.a
	$(CXX) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) $(LDLIBS) -lcheck -lsubunit -lgmp

$(B)/tests/gpu/test_cuda_backend: $(B)/tests/gpu/test_cuda_backend.o $(B)/libcard.a
	$(CXX) $(LDFLAGS) -o $@ $^ -lm -ldl -lrt -lcheck -lsubunit

# --- on the card --------------------------------------------------------------------------------------
# A program per part. They link the same objects as everything else but for those that include another
# library's headers, so that a machine with gcc and nvcc is enough.
CARD_LIB   := $(B)/libcard.a
CARD_CURVE := $(wildcard gpu/cpu/curve_*.c)
CARD_SRC   := $(filter-out $(CARD_CURVE),$(shell grep -L '<openssl/\|<jansson' gpu/*.c gpu/cpu/*.c))
CARD_SRC   += tests/gpu/r1cs_builder.c $(wildcard tests/gpu-card/*.c)
CARD_OBJ   := $(CARD_SRC:%.c=$(B)/%.o) $(CARD_CURVE:%.c=$(B)/%.portable.o) $(if $(ADX),$(CARD_CURVE:%.c=$(B)/%.adx.o))
CARD_CHECK := $(patsubst %.cu,$(B)/%,$(wildcard tests/gpu-card/check_*.cu))
CARD_BENCH := $(patsubst %.cu,$(B)/%,$(wildcard tests/bench/bench_*.cu))
part        = $(patsubst %_gpu,%,$(patsubst bench_%,%,$(patsubst check_%,%,$(notdir $(1)))))
chosen      = $(foreach p,$(1),$(if $(or $(if $(ONLY),,all),$(filter $(call part,$p),$(subst $(comma), ,$(ONLY)))),$p))

$(CARD_LIB): $(CARD_OBJ) $(CUDA_OBJ)
$(CARD_CHECK) $(CARD_BENCH): $(B)/%: $(B)/%.o $(CARD_LIB)
	$(CXX) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS) -lm -ldl -lrt

.PHONY: check-gpu bench-gpu
check-gpu: $(call chosen,$(CARD_CHECK)) ## what only a card can show (5 minutes); ONLY="ntt msm prove sanitize"
	for program in $^; do "$$program"; done
ifneq ($(or $(if $(ONLY),,all),$(filter sanitize,$(ONLY))),)
	$(MAKE) $(CARD_CHECK)
	for program in $(CARD_CHECK); do compute-sanitizer --tool memcheck --error-exitcode 1 "$$program" small; done
	for part in ntt prove; do compute-sanitizer --tool racecheck --error-exitcode 1 $(B)/tests/gpu-card/check_$$part small; done
endif

bench-gpu: $(call chosen,$(CARD_BENCH)) ## times on a card, each result checked; ONLY="ntt msm prove"
	for program in $^; do "$$program"; done
