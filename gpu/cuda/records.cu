#include "gpu/cuda/records.cuh"

#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A buffer comes back when all its records are complete: small ones come soon. */
static const size_t BUFFER_BYTES = 64 * 1024;

/* What the records of kernels, copies and fills of every CUPTI since 11 have in common. */
struct timed_record {
    CUpti_ActivityKind kind;
    uint32_t others[3];
    uint64_t start_ns, end_ns;
};
#define HAS_TIMES(type)                                                                            \
    static_assert(offsetof(type, start) == offsetof(struct timed_record, start_ns) &&              \
                      offsetof(type, end) == offsetof(struct timed_record, end_ns),                \
                  "a record of another layout")
#if CUDART_VERSION >= 13000 /* the names of the newest layouts */
HAS_TIMES(CUpti_ActivityKernel10);
HAS_TIMES(CUpti_ActivityMemcpy6);
HAS_TIMES(CUpti_ActivityMemset4);
#endif

static const CUpti_ActivityKind KINDS[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                           CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

/* --- the library --- */
#define CUPTI_FUNCTIONS(X)                                                                         \
    X(cuptiActivityRegisterTimestampCallback, set_clock)                                           \
    X(cuptiActivityRegisterCallbacks, set_buffers)                                                 \
    X(cuptiActivityEnable, enable)                                                                 \
    X(cuptiActivityDisable, disable)                                                               \
    X(cuptiActivityFlushAll, flush)                                                                \
    X(cuptiActivityGetNextRecord, next_record)                                                     \
    X(cuptiGetResultString, result_text)                                                           \
    X(cuptiGetVersion, version)

static struct {
    void *library;
#define X(symbol, name) decltype(&symbol) name;
    CUPTI_FUNCTIONS(X)
#undef X
} cupti;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct activity *receiver; /* NULL: nobody wants them */

static bool load_from(const char *path) {
    cupti.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (cupti.library == NULL) return false;
#define X(symbol, name) cupti.name = (decltype(cupti.name))dlsym(cupti.library, #symbol);
    CUPTI_FUNCTIONS(X)
#undef X
#define X(symbol, name) &&cupti.name != NULL
    if (true CUPTI_FUNCTIONS(X)) return true;
#undef X
    (void)dlclose(cupti.library);
    cupti.library = NULL;
    return false;
}

/* Where the loader looks, then where toolkits keep it. */
static bool load_library(void) {
    static const char *const folders[] = {
        "", "/usr/local/cuda/extras/CUPTI/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/",
        "/usr/local/cuda/lib64/", "/usr/lib/x86_64-linux-gnu/"};
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    char path[256];
    for (const char *folder : folders)
        for (const char *name : names) {
            (void)snprintf(path, sizeof path, "%s%s", folder, name);
            if (load_from(path)) return true;
        }
    return false;
}

/* --- records --- */
static int64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint64_t CUPTIAPI host_clock(void) {
    return (uint64_t)now_ns();
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *max_records) {
    *buffer = (uint8_t *)aligned_alloc(8, BUFFER_BYTES);
    *bytes = *buffer == NULL ? 0 : BUFFER_BYTES;
    *max_records = 0; /* as many as fit */
}

/* Records that were never completed have no times. */
static void take_record(const CUpti_Activity *activity_record, int64_t now) {
    const struct timed_record *record = (const struct timed_record *)activity_record;
    bool is_kernel = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    bool is_copy =
        record->kind == CUPTI_ACTIVITY_KIND_MEMCPY || record->kind == CUPTI_ACTIVITY_KIND_MEMSET;
    if ((!is_kernel && !is_copy) || record->start_ns == 0 || record->end_ns == 0) return;
    activity_add(receiver, is_kernel ? ACTIVITY_KERNEL : ACTIVITY_COPY, (int64_t)record->start_ns,
                 (int64_t)record->end_ns, now);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid_bytes) {
    CUpti_Activity *record = NULL;
    int64_t now = now_ns();
    (void)context, (void)stream, (void)bytes;
    (void)pthread_mutex_lock(&mutex);
    while (receiver != NULL &&
           cupti.next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
        take_record(record, now);
    (void)pthread_mutex_unlock(&mutex);
    free(buffer);
}

/* --- the backend's part --- */
static CUptiResult enable(void) {
    CUptiResult result = cupti.set_clock(host_clock);
    if (result == CUPTI_SUCCESS)
        result = cupti.set_buffers(give_buffer, take_buffer);
    for (CUpti_ActivityKind kind : KINDS)
        if (result == CUPTI_SUCCESS) result = cupti.enable(kind);
    return result;
}

static void disable(void) {
    for (CUpti_ActivityKind kind : KINDS)
        (void)cupti.disable(kind);
}

static void set_receiver(struct activity *activity) {
    (void)pthread_mutex_lock(&mutex);
    receiver = activity;
    (void)pthread_mutex_unlock(&mutex);
}

bool cupti_start(struct activity *activity, char source[ACTIVITY_SOURCE_BYTES]) {
    const char *why = "unknown error";
    uint32_t version = 0;
    if (cupti.library == NULL && !load_library()) {
        (void)snprintf(source, ACTIVITY_SOURCE_BYTES,
                       "events of the proofs' steps (device_span): libcupti, a part of the CUDA "
                       "Toolkit, is not installed");
        return false;
    }
    set_receiver(activity);
    CUptiResult result = enable();
    if (result == CUPTI_SUCCESS) {
        (void)cupti.version(&version);
        (void)snprintf(source, ACTIVITY_SOURCE_BYTES,
                       "CUPTI's records of kernels and copies (API %u)", version);
        return true;
    }
    disable();
    set_receiver(NULL);
    (void)cupti.result_text(result, &why);
    (void)snprintf(source, ACTIVITY_SOURCE_BYTES,
                   "events of the proofs' steps (device_span): CUPTI refuses: %s", why);
    return false;
}

void cupti_flush(void) {
    (void)cupti.flush(0);
}

void cupti_stop(void) {
    disable();
    (void)cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    set_receiver(NULL);
}
