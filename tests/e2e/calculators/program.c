/* Stands for one of circom's C++ calculators: PROGRAM INPUT.json OUTPUT.wtns, with PROGRAM.dat. What it does is said by a
 * macro: a good one gives its .dat file as the witness, if the inputs are those of the circuit `factor`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_FILE = 1,
    WRITE_FILE,
    SOCKET,
    FORK,
    EXEC,
    LOOP,
    EAT,
    CRASH,
    NOTHING,
    KILL,
    THREADS,
    PRLIMIT,
    SETOWN,
    SETSIG,
    NOTIFY
};

static char bytes[1 << 20];

static size_t read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(3);
    }
    size_t n = fread(bytes, 1, sizeof bytes - 1, file);
    bytes[n] = '\0';
    fclose(file);
    return n;
}

/* Beside the program, which is in a folder of the test that runs it. */
static void write_file(void) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s.written", program_invocation_name);
    if (open(path, O_CREAT | O_WRONLY, 0600) >= 0) return;
    fprintf(stderr, "cannot write: %s\n", strerror(errno));
    exit(4);
}

static void *thread_main(void *arg) {
    return arg;
}

static void *wait_forever(void *arg) {
    for (;;)
        nanosleep(&(struct timespec){1, 0}, NULL);
    return arg;
}

/* Threads with small stacks, which hardly count as memory. */
static void make_threads(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    for (size_t i = 0; i < 10000; i++)
        if (pthread_create(&thread, &attributes, wait_forever, NULL) != 0) exit(9);
}

/* Another process's limits (of none that exists), at an address whose lower half is zero, as if it were NULL. */
static void limit_others(void) {
    struct rlimit *none = mmap((void *)0x100000000, 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    syscall(SYS_prlimit64, 4194303, RLIMIT_NOFILE, none, NULL);
}

static void misbehave(void) {
    switch (DO) {
    case READ_FILE:
        read_file("/etc/passwd");
        break;
    case WRITE_FILE:
        write_file();
        break;
    case SOCKET:
        socket(AF_INET, SOCK_STREAM, 0);
        break;
    case FORK:
        fork();
        break;
    case EXEC:
        execl("/bin/sh", "sh", "-c", "true", (char *)NULL);
        break;
    case LOOP:
        for (;;)
            ;
    case EAT:
        for (size_t i = 0; i < 100000; i++) {
            char *more = malloc(1 << 20);
            if (!more) {
                fprintf(stderr, "no memory\n");
                exit(5);
            }
            memset(more, 1, 1 << 20);
        }
        break;
    case CRASH:
        fprintf(stderr, "an assertion of the program\n");
        abort();
    case NOTHING:
        exit(0);
    case KILL:
        kill(1000000, 9);
        break;
    case THREADS:
        make_threads();
        break;
    case PRLIMIT:
        limit_others();
        break;
    case SETOWN:
        fcntl(1, F_SETOWN, 1000000);
        break;
    case SETSIG:
        fcntl(1, F_SETSIG, SIGKILL);
        break;
    case NOTIFY:
        fcntl(1, F_NOTIFY, DN_MODIFY);
        break;
    default:
        break;
    }
}

int main(int argc, char **argv) {
    char path[4096];
    pthread_t thread;
    if (argc != 3) return 2;
    misbehave();
    read_file(argv[1]);
    if (!strstr(bytes, "\"p\":\"65521\"") || !strstr(bytes, "\"q\":\"49999\"")) {
        fprintf(stderr, "other inputs: %s\n", bytes);
        return 6;
    }
    if (pthread_create(&thread, NULL, thread_main, NULL) != 0) return 7;
    pthread_join(thread, NULL);
    snprintf(path, sizeof path, "%s.dat", argv[0]);
    size_t n = read_file(path);
    FILE *out = fopen(argv[2], "wb");
    return out && fwrite(bytes, 1, n, out) == n && fclose(out) == 0 ? 0 : 8;
}
