#include "gpu/wtns.h"

#include "gpu/atomic_file.h"
#include "gpu/container.h"
#include "gpu/mapped_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WTNS_VERSION = 2, SECTION_HEADER = 1, SECTION_VALUES = 2, WTNS_MODE = 0666 };

static enum err check_values(struct reader reader, const struct wtns *wtns, struct error *error) {
    static const struct scalar one = {{1}};
    if (memcmp(&wtns->values[0], &one, sizeof one) != 0)
        return reader_error(&reader, ERR_FORMAT, error,
                            "element 0 is not 1; compute the witness again");
    for (uint32_t i = 1; i < wtns->n_vars; i++) {
        reader.position += SCALAR_BYTES;
        if (!le_less(wtns->values[i].le, wtns->curve->r, SCALAR_BYTES))
            return reader_error(&reader, ERR_FORMAT, error,
                                "element %" PRIu32 " is not below r of %s; compute the witness "
                                "again",
                                i, wtns->curve->name);
    }
    return ERR_NONE;
}

static enum err parse(const char *label, const uint8_t *bytes, size_t size, struct wtns *wtns,
                      struct error *error) {
    enum err rc;
    struct container c;
    struct reader header, values;
    const uint8_t *first;
    TRY(container_parse(label, bytes, size, "wtns", WTNS_VERSION, &c, error));
    TRY(reader_open(&c, SECTION_HEADER, "header", &header, error));
    TRY(reader_scalar_modulus(&header, &wtns->curve, error));
    TRY(reader_u32(&header, &wtns->n_vars, error));
    if (wtns->n_vars == 0)
        return reader_error(&header, ERR_FORMAT, error,
                            "the witness has no element; compute it again");
    TRY(reader_end(&header, error));
    TRY(reader_open(&c, SECTION_VALUES, "values", &values, error));
    struct reader start = values;
    TRY(reader_bytes(&values, wtns->n_vars, SCALAR_BYTES, &first, error));
    TRY(reader_end(&values, error));
    wtns->values = (const struct scalar *)first;
    TRY(check_values(start, wtns, error));
    return ERR_NONE;
fail:
    return rc;
}

static enum err wtns_new(struct wtns **out, struct error *error) {
    *out = calloc(1, sizeof **out);
    if (*out == NULL) return error_set(error, ERR_HOST_MEMORY, "witness: out of memory");
    return ERR_NONE;
}

enum err wtns_open(const char *path, struct wtns **out, struct error *error) {
    enum err rc;
    struct wtns *wtns = NULL;
    TRY(wtns_new(&wtns, error));
    TRY(mapped_file_read(path, &wtns->file, error));
    TRY(parse(path, mapped_file_bytes(wtns->file), mapped_file_size(wtns->file), wtns, error));
    *out = wtns;
    return ERR_NONE;
fail:
    wtns_close(wtns);
    return rc;
}

enum err wtns_parse(const uint8_t *bytes, size_t size, struct wtns **out, struct error *error) {
    enum err rc;
    struct wtns *wtns = NULL;
    TRY(wtns_new(&wtns, error));
    TRY(parse("witness", bytes, size, wtns, error));
    *out = wtns;
    return ERR_NONE;
fail:
    wtns_close(wtns);
    return rc;
}

void wtns_close(struct wtns *wtns) {
    if (wtns == NULL) return;
    mapped_file_close(wtns->file);
    free(wtns);
}

enum err wtns_matches(const struct wtns *wtns, const struct zkey *zkey, struct error *error) {
    if (wtns->curve != zkey->curve)
        return error_set(error, ERR_MISMATCH,
                         "the witness is of curve %s, the key of %s; compile the circuit for the "
                         "key's curve",
                         wtns->curve->name, zkey->curve->name);
    if (wtns->n_vars != zkey->n_vars)
        return error_set(error, ERR_MISMATCH,
                         "the witness has %" PRIu32 " signals, the key's circuit %" PRIu32
                         "; they are of different circuits or versions",
                         wtns->n_vars, zkey->n_vars);
    return ERR_NONE;
}

static void put_u32(uint8_t **at, uint32_t value) {
    for (size_t i = 0; i < sizeof value; i++)
        *(*at)++ = (uint8_t)(value >> (8 * i));
}

static void put_section(uint8_t **at, uint32_t id, uint64_t length) {
    put_u32(at, id);
    put_u32(at, (uint32_t)length);
    put_u32(at, (uint32_t)(length >> 32));
}

enum err wtns_write(const char *path, const struct curve_info *curve, const struct scalar *values,
                    uint32_t n_vars, struct error *error) {
    enum err rc;
    struct atomic_file *file = NULL;
    uint8_t head[12 + 12 + 4 + SCALAR_BYTES + 4 + 12] = "wtns", *at = head + 4;
    put_u32(&at, WTNS_VERSION);
    put_u32(&at, 2);
    put_section(&at, SECTION_HEADER, 4 + SCALAR_BYTES + 4);
    put_u32(&at, SCALAR_BYTES);
    memcpy(at, curve->r, SCALAR_BYTES);
    at += SCALAR_BYTES;
    put_u32(&at, n_vars);
    put_section(&at, SECTION_VALUES, (uint64_t)n_vars * SCALAR_BYTES);

    TRY(atomic_file_create(path, WTNS_MODE, &file, error));
    TRY(atomic_file_write(file, head, sizeof head, error));
    TRY(atomic_file_write(file, values, (size_t)n_vars * SCALAR_BYTES, error));
    TRY(atomic_file_commit(file, error));
fail:
    atomic_file_close(file);
    return rc;
}
