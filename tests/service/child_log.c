#include "tests/service/child_log.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char child_log_path[] = "/tmp/proverq-log-XXXXXX";

void child_log_open(void) {
    int fd = mkstemp(child_log_path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

void child_log_close(void) {
    (void)unlink(child_log_path);
}

bool child_log_take_stderr(void) {
    int fd = open(child_log_path, O_WRONLY | O_APPEND);
    return fd >= 0 && dup2(fd, STDERR_FILENO) >= 0;
}

char *file_text(const char *path) {
    enum { MOST = 1 << 20 };
    char *text = calloc(1, MOST + 1);
    if (!text) abort();
    FILE *file = fopen(path, "r");
    if (!file) return text;
    if (fread(text, 1, MOST, file) >= MOST) abort();
    (void)fclose(file);
    return text;
}

size_t words_count(const char *path, const char *words) {
    size_t n = 0;
    char *text = file_text(path);
    for (const char *at = text; (at = strstr(at, words)); at++)
        n++;
    free(text);
    return n;
}

void wait_for_words(const char *path, const char *words, size_t times) {
    for (int i = 0; i < 2000; i++) {
        if (words_count(path, words) >= times) return;
        (void)usleep(10000);
    }
    char *text = file_text(path), *log = file_text(child_log_path);
    ck_abort_msg("%s does not say \"%s\" %zu times:\n%s\nlog:\n%s", path, words, times,
                 strcmp(path, child_log_path) == 0 ? "" : text, log);
}

void wait_for_log(const char *words) {
    wait_for_words(child_log_path, words, 1);
}
