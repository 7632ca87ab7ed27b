/* What all unit tests share: how a suite is run, and assertions on errors. */
#ifndef PROVERQ_TESTS_SUITE_H
#define PROVERQ_TESTS_SUITE_H

#include "gpu/error.h"

#include <check.h>
#include <string.h>

/* Both want a `struct error error` in scope. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        enum err check_rc = (call);                                                                \
        ck_assert_msg(check_rc == ERR_NONE, "%s: %s: %s", #call, error_name(check_rc),             \
                      error.text);                                                                 \
    } while (0)
#define CHECK_ERR(call, expected, fragment)                                                        \
    do {                                                                                           \
        enum err check_rc = (call);                                                                \
        ck_assert_msg(check_rc == (expected), "%s: %s, not %s: %s", #call, error_name(check_rc),   \
                      error_name(expected), check_rc == ERR_NONE ? "" : error.text);               \
        ck_assert_msg(strstr(error.text, (fragment)) != NULL, "\"%s\" does not say \"%s\"",        \
                      error.text, fragment);                                                       \
    } while (0)

/* A case of the suite: its tests run each in a process of its own, between set_up and tear_down (or
 * NULL), and may take 300 s. For a suite of several cases, or one with other fixtures. */
TCase *add_tests(Suite *suite, const char *name, void (*set_up)(void), void (*tear_down)(void),
                 const TTest *const *const *tests, size_t n);

/* Runs the suite and frees it; what main returns. */
int run_suite(Suite *suite);

/* Both, for a suite of one case. */
int run_tests(const char *name, void (*set_up)(void), void (*tear_down)(void),
              const TTest *const *const *tests, size_t n);

#endif
