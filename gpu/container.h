/* The sectioned binary container of zkey, wtns and r1cs files, read with every bound checked.
 *
 * Four bytes of magic, u32 version, u32 number of sections, then each section as u32 id, u64 length
 * and that many bytes; all little-endian (iden3 binfileutils). Sections come in any order; one that
 * appears twice is refused, one with an unknown id is skipped. Errors name file, section and
 * offset.
 */
#ifndef PROVERQ_CONTAINER_H
#define PROVERQ_CONTAINER_H

#include "gpu/curve.h"
#include "gpu/error.h"

enum { CONTAINER_SECTIONS = 32 /* ids below this are looked up; none of our formats has others */ };

struct container {
    const char *label; /* what errors call the file; the caller's */
    const uint8_t *bytes;
    size_t size;
    struct {
        bool is_present;
        size_t offset, length;
    } sections[CONTAINER_SECTIONS];
};

/* Finds the sections of the `size` bytes at `bytes`, which stay the caller's and must outlive *out.
 * ERR_FORMAT: wrong magic, a section beyond the end, a duplicate, bytes after the last section.
 * ERR_UNSUPPORTED: another version. */
MUST_USE enum err container_parse(const char *label, const uint8_t *bytes, size_t size,
                                  const char *magic, uint32_t version, struct container *out,
                                  struct error *error);

bool container_has(const struct container *container, uint32_t id);

/* A position in one section. */
struct reader {
    const struct container *container;
    uint32_t id;
    const char *name; /* the section's, for errors */
    size_t position, end;
};

/* Starts at the beginning of section `id`, which must exist (ERR_FORMAT). */
MUST_USE enum err reader_open(const struct container *container, uint32_t id, const char *name,
                              struct reader *out, struct error *error);

/* Each moves on, or is ERR_FORMAT when fewer bytes are left in the section. */
MUST_USE enum err reader_u32(struct reader *reader, uint32_t *out, struct error *error);
MUST_USE enum err reader_u64(struct reader *reader, uint64_t *out, struct error *error);
MUST_USE enum err reader_bytes(struct reader *reader, uint64_t n, uint64_t item_bytes,
                               const uint8_t **out, struct error *error);

/* ERR_FORMAT when bytes are left. */
MUST_USE enum err reader_end(const struct reader *reader, struct error *error);

/* Fills `error` with "<file>: section <id> (<name>), offset <n>: <formatted>"; returns `code`. */
enum err reader_error(const struct reader *reader, enum err code, struct error *error,
                      const char *format, ...) PRINTF_LIKE(4, 5);

/* Reads a u32 length and that many bytes: a modulus that must be one of the curves' r.
 * ERR_UNSUPPORTED names it otherwise. */
MUST_USE enum err reader_scalar_modulus(struct reader *reader, const struct curve_info **curve,
                                        struct error *error);

uint32_t le_u32(const uint8_t *bytes);
uint64_t le_u64(const uint8_t *bytes);

#endif
