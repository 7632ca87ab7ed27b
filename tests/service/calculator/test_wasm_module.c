/* Modules whose names are C, and modules that are cut off or lie about their sizes. */
#include "service/calculator/wasm_module.h"
#include "tests/gpu/suite.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct error error;
static char folder[64], wasm[96], copy[96];
static uint8_t module[4096];
static size_t used;

static void set_up(void) {
    static const uint8_t head[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    (void)snprintf(folder, sizeof folder, "/tmp/proverq-module-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(wasm, sizeof wasm, "%s/evil.wasm", folder);
    (void)snprintf(copy, sizeof copy, "%s/copy.wasm", folder);
    memcpy(module, head, sizeof head);
    used = sizeof head;
}

static void tear_down(void) {
    (void)unlink(wasm);
    (void)unlink(copy);
    (void)rmdir(folder);
}

static void add(const void *bytes, size_t n) {
    ck_assert_uint_le(used + n, sizeof module);
    memcpy(module + used, bytes, n);
    used += n;
}

static void add_byte(size_t byte) {
    uint8_t b = (uint8_t)byte;
    add(&b, 1);
}

static void add_name(const char *name) {
    size_t n = strlen(name);
    add_byte((n & 0x7f) | 0x80); /* two bytes, so that longer names fit */
    add_byte(n >> 7);
    add(name, n);
}

/* A section of less than 16384 bytes: its size is set by end_section. */
static size_t begin_section(uint8_t id) {
    add_byte(id);
    add("\x80", 2);
    return used;
}

static void end_section(size_t start) {
    size_t n = used - start;
    module[start - 2] = (uint8_t)((n & 0x7f) | 0x80);
    module[start - 1] = (uint8_t)(n >> 7);
}

static void add_export(const char *name) {
    size_t start = begin_section(7);
    add_byte(1);
    add_name(name);
    add("\0\0", 2);
    end_section(start);
}

static void add_import(const char *from, const char *name) {
    size_t start = begin_section(2);
    add_byte(1);
    add_name(from);
    add_name(name);
    add("\0\0", 2);
    end_section(start);
}

static size_t begin_custom(const char *name) {
    size_t start = begin_section(0);
    add_name(name);
    return start;
}

/* The subsection `kind` of the name section: one name, below one index or two, or the module's. */
static void add_debug_name(int kind, const char *name) {
    size_t start = begin_custom("name"), depth = kind == 0 ? 0 : kind == 2 || kind == 3 ? 2 : 1;
    add_byte((size_t)kind);
    add_byte(2 * depth + 2 + strlen(name));
    for (size_t i = 0; i < depth; i++)
        add("\1\0", 2); /* one entry, of index 0 */
    add_name(name);
    end_section(start);
}

static enum err try(void) {
    FILE *file = fopen(wasm, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(module, 1, used, file), used);
    ck_assert_int_eq(fclose(file), 0);
    (void)unlink(copy);
    return wasm_module_copy(wasm, copy, &error);
}

static const char attack[] = "*/ __attribute__((constructor)) void f(void) { } /*";

START_TEST(names_that_are_c_are_rejected_with_file_and_name) {
    size_t empty = used;
    add_export(attack);
    CHECK_ERR(try(), ERR_FORMAT, attack);
    ck_assert_ptr_nonnull(strstr(error.text, wasm));
    ck_assert_ptr_nonnull(strstr(error.text, "of an export is rejected"));
    used = empty;
    add_import("env", attack);
    CHECK_ERR(try(), ERR_FORMAT, "of an import is rejected");
    used = empty;
    add_import(attack, "memory");
    CHECK_ERR(try(), ERR_FORMAT, "of an imported module is rejected");
    used = empty;
    end_section(begin_custom(attack));
    CHECK_ERR(try(), ERR_FORMAT, "of a custom section is rejected");
    used = empty;
    add_debug_name(0, attack);
    CHECK_ERR(try(), ERR_FORMAT, "of the module is rejected");
    for (int kind = 1; kind <= 9; kind++) {
        used = empty;
        add_debug_name(kind, attack);
        CHECK_ERR(try(), ERR_FORMAT, "of the name section is rejected");
    }
}
END_TEST

START_TEST(names_are_shown_printable_and_short) {
    size_t empty = used;
    char longest[130];
    add_export("a\n#include \"/etc/passwd\"\n\x1b[2J\xff");
    CHECK_ERR(try(), ERR_FORMAT, "\"a\\x0a#include \"/etc/passwd\"\\x0a\\x1b[2J\\xff\"");
    used = empty;
    add_export("");
    CHECK_ERR(try(), ERR_FORMAT, "the name \"\" of an export");
    memset(longest, 'x', sizeof longest);
    longest[129] = '\0';
    used = empty;
    add_export(longest);
    CHECK_ERR(try(), ERR_FORMAT, "xxx...\" of an export");
    longest[128] = '\0';
    used = empty;
    add_export(longest);
    CHECK_OK(try());
}
END_TEST

START_TEST(custom_sections_do_not_reach_wasm2c) {
    uint8_t bytes[256];
    add_export("getVersion");
    size_t kept = used;
    add_debug_name(1, "Num2Bits_0_run");
    size_t start = begin_custom("producers");
    add(attack, sizeof attack);
    end_section(start);
    CHECK_OK(try());
    FILE *file = fopen(copy, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, file), kept);
    ck_assert_mem_eq(bytes, module, kept);
    (void)fclose(file);
}
END_TEST

/* Whatever is cut off or changed, the parser ends within the file: the sanitizers watch. */
START_TEST(malformed_modules_are_rejected) {
    size_t good;
    add_import("env", "memory");
    add_export("init");
    add_debug_name(2, "x");
    good = used;
    CHECK_OK(try());
    for (used = 1; used < good; used++) {
        bool is_whole = used == 8 || used == 27 || used == 39;
        ck_assert_msg((try() == ERR_NONE) == is_whole, "%zu", used);
    }
    used = good;
    for (size_t i = 8; i < good; i++) {
        uint8_t byte = module[i];
        module[i] = 0xff;
        (void)!try();
        module[i] = byte;
    }
    used = 8;
    add("\x0e\0", 2);
    CHECK_ERR(try(), ERR_FORMAT, "sections are malformed");
    used = 8;
    add("\7\xff\xff\xff\xff\x0f", 6);
    CHECK_ERR(try(), ERR_FORMAT, "sections are malformed");
    used = 8;
    add("\7\xff\xff\xff\xff\x7f", 6);
    CHECK_ERR(try(), ERR_FORMAT, "sections are malformed");
    memcpy(module, "no wasm", 8);
    CHECK_ERR(try(), ERR_FORMAT, "not WebAssembly");
}
END_TEST

START_TEST(circom_s_calculators_pass) {
    static const char *const names[] = {"factor", "factor381", "merkle", "range"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "tests/circuits/%s/%s.wasm", names[i], names[i]);
        (void)unlink(copy);
        CHECK_OK(wasm_module_copy(path, copy, &error));
    }
    CHECK_ERR(wasm_module_copy("tests/circuits/range/range.wasm", copy, &error), ERR_IO, copy);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &names_that_are_c_are_rejected_with_file_and_name, &names_are_shown_printable_and_short,
        &custom_sections_do_not_reach_wasm2c, &malformed_modules_are_rejected,
        &circom_s_calculators_pass};
    return run_tests("wasm_module", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
