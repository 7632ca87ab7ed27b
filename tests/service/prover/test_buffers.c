/* Witness buffers: reused, wiped, and within a budget. */
#include "service/prover/buffers.h"
#include "tests/gpu/suite.h"

#include <string.h>

static struct error error;
static struct device *device;
static struct budget budget;
static struct buffers *buffers;

static void setup(void) {
    ck_assert_int_eq(device_open("cpu", 1, &device, &error), ERR_NONE);
    budget_init(&budget, 2 << 20);
    ck_assert_int_eq(buffers_open(device, &budget, 2, &buffers, &error), ERR_NONE);
}

static void teardown(void) {
    buffers_close(buffers);
    ck_assert_uint_eq(budget.used, 0);
    budget_destroy(&budget);
    device_close(device);
}

START_TEST(a_buffer_is_wiped_before_another_gets_it) {
    struct buffer *buffer, *again;
    ck_assert_int_eq(buffers_take(buffers, 5000, &buffer, &error), ERR_NONE);
    memset(buffer->bytes, 0xaa, 5000);
    buffer->used = 5000;
    uint8_t *bytes = buffer->bytes;
    buffers_give(buffers, buffer);
    for (int i = 0; i < 5000; i++)
        ck_assert_uint_eq(bytes[i], 0);
    ck_assert_int_eq(buffers_take(buffers, 4000, &again, &error), ERR_NONE);
    ck_assert_ptr_eq(again->bytes, bytes); /* reused, not allocated again */
    buffers_give(buffers, again);
}
END_TEST

enum { GRAIN = 64 << 10 };

START_TEST(a_buffer_that_fits_is_used_before_one_is_made) {
    struct buffer *a, *b, *c;
    ck_assert_int_eq(buffers_take(buffers, 100, &a, &error), ERR_NONE);
    ck_assert_int_eq(buffers_take(buffers, 1000000, &b, &error), ERR_NONE);
    ck_assert_uint_ge(b->capacity, 1000000);
    ck_assert_int_eq(buffers_take(buffers, 1, &c, &error), ERR_NONE);
    ck_assert_ptr_null(c); /* both are taken: wait */
    size_t used = budget.used;
    buffers_give(buffers, a);
    buffers_give(buffers, b);
    ck_assert_int_eq(buffers_take(buffers, 10, &c, &error), ERR_NONE);
    ck_assert_ptr_eq(c, a); /* the smaller one */
    buffers_give(buffers, c);
    ck_assert_uint_eq(budget.used, used);
}
END_TEST

START_TEST(free_buffers_make_room_for_one_that_is_needed) {
    struct buffer *a, *b;
    ck_assert_int_eq(buffers_prepare(buffers, 1 << 20, 2, &error), ERR_NONE);
    ck_assert_uint_eq(buffers_made(buffers, 1 << 20), 2);
    ck_assert_int_eq(buffers_take(buffers, 1, &a, &error), ERR_NONE);
    ck_assert_int_eq(buffers_take(buffers, (1 << 20) + GRAIN, &b, &error), ERR_NONE);
    ck_assert_ptr_null(b); /* `a` leaves no room for it */
    buffers_give(buffers, a);
    ck_assert_int_eq(buffers_take(buffers, (1 << 20) + GRAIN, &b, &error), ERR_NONE);
    ck_assert_ptr_nonnull(b);
    buffers_give(buffers, b);
    ck_assert_uint_le(budget_peak(&budget), 2 << 20);
}
END_TEST

START_TEST(what_never_fits_is_refused_and_not_waited_for) {
    struct buffer *a;
    ck_assert_int_eq(buffers_take(buffers, (2 << 20) + 1, &a, &error), ERR_HOST_MEMORY);
    ck_assert_ptr_nonnull(strstr(error.text, "--host-memory"));
    ck_assert_int_eq(buffers_prepare(buffers, SIZE_MAX, 1, &error), ERR_HOST_MEMORY);
    ck_assert_int_eq(buffers_prepare(buffers, (1 << 20) + 1, 2, &error), ERR_NONE);
    ck_assert_uint_eq(buffers_made(buffers, 1), 1); /* as many as fit */
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&a_buffer_is_wiped_before_another_gets_it,
                                         &a_buffer_that_fits_is_used_before_one_is_made,
                                         &free_buffers_make_room_for_one_that_is_needed,
                                         &what_never_fits_is_refused_and_not_waited_for};
    return run_tests("buffers", setup, teardown, tests, sizeof tests / sizeof *tests);
}
