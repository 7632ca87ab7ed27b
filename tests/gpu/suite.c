#include "tests/gpu/suite.h"

#include <stdlib.h>

enum { TIMEOUT_S = 300 /* sanitizers and valgrind are slow */ };

TCase *add_tests(Suite *suite, const char *name, void (*set_up)(void), void (*tear_down)(void),
                 const TTest *const *const *tests, size_t n) {
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, TIMEOUT_S);
    if (set_up != NULL) tcase_add_checked_fixture(tcase, set_up, tear_down);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int run_suite(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run_tests(const char *name, void (*set_up)(void), void (*tear_down)(void),
              const TTest *const *const *tests, size_t n) {
    Suite *suite = suite_create(name);
    (void)add_tests(suite, name, set_up, tear_down, tests, n);
    return run_suite(suite);
}
