#include "gpu/container.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FILE_HEADER_BYTES = 12, SECTION_HEADER_BYTES = 12 };

static const char advice[] = "the file is truncated or corrupt: copy or make it again";

uint32_t le_u32(const uint8_t *bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < sizeof value; i++)
        value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

uint64_t le_u64(const uint8_t *bytes) {
    return (uint64_t)le_u32(bytes) | (uint64_t)le_u32(bytes + 4) << 32;
}

static enum err check_header(const struct container *c, const char *magic, uint32_t version,
                             struct error *error) {
    if (c->size < FILE_HEADER_BYTES)
        return error_set(error, ERR_FORMAT, "%s: %zu bytes are too few for a %s file; %s", c->label,
                         c->size, magic, advice);
    if (memcmp(c->bytes, magic, 4) != 0)
        return error_set(error, ERR_FORMAT,
                         "%s: not a %s file (it begins with %02x %02x %02x %02x); check which file "
                         "was given",
                         c->label, magic, c->bytes[0], c->bytes[1], c->bytes[2], c->bytes[3]);
    if (le_u32(c->bytes + 4) != version)
        return error_set(error, ERR_UNSUPPORTED,
                         "%s: %s version %" PRIu32 " is not supported, only %" PRIu32, c->label,
                         magic, le_u32(c->bytes + 4), version);
    return ERR_NONE;
}

/* Notes the section whose header is at *offset and moves behind it. */
static enum err note_section(struct container *c, uint32_t index, size_t *offset,
                             struct error *error) {
    if (c->size - *offset < SECTION_HEADER_BYTES)
        return error_set(error, ERR_FORMAT,
                         "%s: the header of section number %" PRIu32
                         " at offset %zu is beyond the end of the file (%zu bytes); %s",
                         c->label, index + 1, *offset, c->size, advice);
    uint32_t id = le_u32(c->bytes + *offset);
    uint64_t length = le_u64(c->bytes + *offset + 4);
    *offset += SECTION_HEADER_BYTES;
    if (length > c->size - *offset)
        return error_set(error, ERR_FORMAT,
                         "%s: section %" PRIu32 " at offset %zu has %" PRIu64
                         " bytes, but only %zu are left in the file; %s",
                         c->label, id, *offset, length, c->size - *offset, advice);
    if (id < CONTAINER_SECTIONS) {
        if (c->sections[id].is_present)
            return error_set(error, ERR_FORMAT,
                             "%s: section %" PRIu32 " appears twice, at offsets %zu and %zu; %s",
                             c->label, id, c->sections[id].offset, *offset, advice);
        c->sections[id].is_present = true;
        c->sections[id].offset = *offset;
        c->sections[id].length = (size_t)length;
    }
    *offset += (size_t)length;
    return ERR_NONE;
}

enum err container_parse(const char *label, const uint8_t *bytes, size_t size, const char *magic,
                         uint32_t version, struct container *out, struct error *error) {
    enum err rc;
    *out = (struct container){.label = label, .bytes = bytes, .size = size};
    TRY(check_header(out, magic, version, error));
    uint32_t n = le_u32(bytes + 8);
    size_t offset = FILE_HEADER_BYTES;
    for (uint32_t i = 0; i < n; i++)
        TRY(note_section(out, i, &offset, error));
    if (offset != size)
        return error_set(error, ERR_FORMAT,
                         "%s: %zu bytes follow the last of its %" PRIu32 " sections; %s", label,
                         size - offset, n, advice);
    return ERR_NONE;
fail:
    return rc;
}

bool container_has(const struct container *container, uint32_t id) {
    return id < CONTAINER_SECTIONS && container->sections[id].is_present;
}

enum err reader_open(const struct container *container, uint32_t id, const char *name,
                     struct reader *out, struct error *error) {
    if (!container_has(container, id))
        return error_set(error, ERR_FORMAT, "%s: section %" PRIu32 " (%s) is missing; %s",
                         container->label, id, name, advice);
    size_t offset = container->sections[id].offset;
    *out = (struct reader){.container = container,
                           .id = id,
                           .name = name,
                           .position = offset,
                           .end = offset + container->sections[id].length};
    return ERR_NONE;
}

enum err reader_error(const struct reader *reader, enum err code, struct error *error,
                      const char *format, ...) {
    char what[sizeof error->text];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return error_set(error, code, "%s: section %" PRIu32 " (%s), offset %zu: %s",
                     reader->container->label, reader->id, reader->name, reader->position, what);
}

enum err reader_bytes(struct reader *reader, uint64_t n, uint64_t item_bytes, const uint8_t **out,
                      struct error *error) {
    size_t left = reader->end - reader->position;
    uint64_t wanted;
    if (__builtin_mul_overflow(n, item_bytes, &wanted) || wanted > left)
        return reader_error(reader, ERR_FORMAT, error,
                            "%" PRIu64 " times %" PRIu64
                            " bytes expected, but the section has only %zu left; %s",
                            n, item_bytes, left, advice);
    *out = reader->container->bytes + reader->position;
    reader->position += (size_t)wanted;
    return ERR_NONE;
}

enum err reader_u32(struct reader *reader, uint32_t *out, struct error *error) {
    const uint8_t *bytes = NULL;
    enum err rc = reader_bytes(reader, 1, sizeof *out, &bytes, error);
    if (rc == ERR_NONE) *out = le_u32(bytes);
    return rc;
}

enum err reader_u64(struct reader *reader, uint64_t *out, struct error *error) {
    const uint8_t *bytes = NULL;
    enum err rc = reader_bytes(reader, 1, sizeof *out, &bytes, error);
    if (rc == ERR_NONE) *out = le_u64(bytes);
    return rc;
}

enum err reader_end(const struct reader *reader, struct error *error) {
    if (reader->position == reader->end) return ERR_NONE;
    return reader_error(reader, ERR_FORMAT, error, "%zu bytes too many in the section; %s",
                        reader->end - reader->position, advice);
}

enum err reader_scalar_modulus(struct reader *reader, const struct curve_info **curve,
                               struct error *error) {
    enum err rc;
    uint32_t n;
    const uint8_t *bytes = NULL;
    TRY(reader_u32(reader, &n, error));
    TRY(reader_bytes(reader, n, 1, &bytes, error));
    *curve = curve_by_scalar_modulus(bytes, n);
    if (*curve == NULL)
        return reader_error(
            reader, ERR_UNSUPPORTED, error,
            "a scalar modulus of %" PRIu32 " bytes that is neither bn128's nor bls12381's", n);
    return ERR_NONE;
fail:
    return rc;
}
