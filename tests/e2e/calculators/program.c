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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_FILE = 1, WRITE_FILE, SOCKET, FORK, EXEC, LOOP, EAT, CRASH, NOTHING, KILL };

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
        kill(getppid(), 9);
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
