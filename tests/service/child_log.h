/* What the processes under test say: their log, and other files that they write. Where something
 * here fails, the test fails, and prints the log. */
#ifndef PROVERQ_TESTS_CHILD_LOG_H
#define PROVERQ_TESTS_CHILD_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* Makes an empty file for the log, for one test; removes it. */
extern char child_log_path[];
void child_log_open(void);
void child_log_close(void);

/* In the child, also between fork and exec (signal-safety(7)): standard error goes to the log. */
bool child_log_take_stderr(void);

/* Waits, 20 s at most, until the log says `words`. */
void wait_for_log(const char *words);

/* The same for any file, until it says them so often. */
void wait_for_words(const char *path, const char *words, size_t times);
size_t words_count(const char *path, const char *words); /* how often it does now */

/* The file's text, "" if it is not there; the caller frees it. */
char *file_text(const char *path);

#endif
