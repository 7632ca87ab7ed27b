/* Stands for the compiled form of a calculator that somebody who may write to the database has put there: its constructor
 * runs when it is loaded. DO says what it tries; PROVER is the process that loads it and SECRET a file of its user. What it
 * reaches it prints before it ends with status 42, what it does not with 43. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    FILES,
    ENVIRONMENT,
    DESCRIPTORS,
    CONNECT,
    EXEC,
    FORK,
    KILL,
    PTRACE,
    READ_MEMORY,
    PRLIMIT,
    SHARE,
    DUMPABLE,
    LIE
};

extern char **environ;

static void reached(const char *what) {
    fprintf(stderr, "reached %s\n", what);
    _exit(42);
}

static void try_file(const char *path, int flags) {
    if (open(path, flags, 0600) >= 0) reached(path);
}

static void try_files(void) {
    static const char *const of_prover[] = {"environ", "mem",     "maps",
                                            "fd/0",    "cmdline", "root/etc/passwd"};
    char path[100];
    for (size_t i = 0; i < sizeof of_prover / sizeof *of_prover; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", PROVER, of_prover[i]);
        try_file(path, O_RDONLY);
    }
    try_file("/proc/self/environ", O_RDONLY);
    try_file("/etc/passwd", O_RDONLY);
    try_file("/", O_RDONLY | O_DIRECTORY);
    try_file(SECRET, O_RDONLY);
    try_file(SECRET, O_WRONLY);
    try_file("/tmp/proverq-constructor", O_WRONLY | O_CREAT);
    try_file("/dev/null", O_RDWR);
}

static void try_descriptors(void) {
    for (int fd = 6; fd < 1024; fd++)
        if (lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF) reached("a descriptor");
}

static void try_to_connect(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) reached("the network");
}

static void try_memory(void) {
    char byte;
    struct iovec own = {&byte, 1}, other = {(void *)0x400000, 1};
    process_vm_readv(PROVER, &own, 1, &other, 1, 0);
}

/* As if all had gone well, and the witness were enormous. */
static void lie(void) {
    static char reply[4096];
    memset(reply + 600, 0x7f, sizeof reply - 600);
    for (int i = 0; i < 4; i++)
        if (write(3, reply, sizeof reply) < 0) break;
}

__attribute__((constructor)) static void attack(void) {
    struct rlimit none = {0, 0};
    switch (DO) {
    case FILES:
        try_files();
        break;
    case ENVIRONMENT:
        if (environ && *environ) reached(*environ);
        break;
    case DESCRIPTORS:
        try_descriptors();
        break;
    case CONNECT:
        try_to_connect();
        break;
    case EXEC:
        execl("/bin/sh", "sh", "-c", "true", (char *)NULL);
        break;
    case FORK:
        fork();
        break;
    case KILL:
        kill(PROVER, SIGTERM);
        break;
    case PTRACE:
        ptrace(PTRACE_ATTACH, PROVER, NULL, NULL);
        break;
    case READ_MEMORY:
        try_memory();
        break;
    case PRLIMIT:
        syscall(SYS_prlimit64, PROVER, RLIMIT_NOFILE, &none, NULL);
        break;
    case SHARE:
        mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        break;
    case DUMPABLE:
        prctl(PR_SET_DUMPABLE, 1);
        break;
    case LIE:
        lie();
        break;
    default:
        break;
    }
    _exit(43);
}
