#include "gpu/r1cs.h"

#include "gpu/container.h"
#include "gpu/cpu/cpu_curve.h"
#include "gpu/mapped_file.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    R1CS_VERSION = 1,
    SECTION_HEADER = 1,
    SECTION_CONSTRAINTS = 2,
    SECTION_GATE_LIST = 4,
    SECTION_GATE_USES = 5,
    MIN_CONSTRAINT_BYTES = 3 * 4, /* three empty rows */
};

_Static_assert(sizeof(struct r1cs_term) == 4 + SCALAR_BYTES, "a term is packed as in the file");

static enum err read_header(const struct container *c, struct r1cs *r1cs, struct error *error) {
    enum err rc;
    struct reader reader;
    uint32_t n_outputs, n_inputs, n_private, n_public;
    uint64_t n_labels;
    TRY(reader_open(c, SECTION_HEADER, "header", &reader, error));
    TRY(reader_scalar_modulus(&reader, &r1cs->curve, error));
    TRY(reader_u32(&reader, &r1cs->n_vars, error));
    TRY(reader_u32(&reader, &n_outputs, error));
    TRY(reader_u32(&reader, &n_inputs, error));
    TRY(reader_u32(&reader, &n_private, error));
    TRY(reader_u64(&reader, &n_labels, error));
    TRY(reader_u32(&reader, &r1cs->n_constraints, error));
    if (__builtin_add_overflow(n_outputs, n_inputs, &n_public) || n_public >= r1cs->n_vars)
        return reader_error(&reader, ERR_FORMAT, error,
                            "%" PRIu32 " outputs, %" PRIu32 " public inputs and the constant 1 do "
                            "not fit into %" PRIu32 " wires; compile the circuit again",
                            n_outputs, n_inputs, r1cs->n_vars);
    r1cs->n_public = n_public;
    TRY(reader_end(&reader, error));
    return ERR_NONE;
fail:
    return rc;
}

/* Custom gates are PLONK's: Groth16 has no way to enforce them. */
static enum err refuse_custom_gates(const struct container *c, struct error *error) {
    enum err rc;
    for (uint32_t id = SECTION_GATE_LIST; id <= SECTION_GATE_USES; id++) {
        struct reader reader;
        uint32_t n;
        if (!container_has(c, id)) continue;
        TRY(reader_open(c, id, "custom gates", &reader, error));
        TRY(reader_u32(&reader, &n, error));
        if (n != 0)
            return reader_error(&reader, ERR_UNSUPPORTED, error,
                                "the circuit uses %" PRIu32 " custom gates, which Groth16 does not "
                                "have; compile it without `pragma custom_templates`",
                                n);
    }
    return ERR_NONE;
fail:
    return rc;
}

static enum err read_row(struct reader *reader, const struct r1cs *r1cs, uint32_t constraint,
                         struct r1cs_row *row, struct error *error) {
    enum err rc;
    const uint8_t *terms;
    TRY(reader_u32(reader, &row->n, error));
    struct reader start = *reader;
    TRY(reader_bytes(reader, row->n, sizeof *row->terms, &terms, error));
    row->terms = (const struct r1cs_term *)terms;
    for (uint32_t i = 0; i < row->n; i++) {
        const struct r1cs_term *term = &row->terms[i];
        const char *fault = r1cs_wire(term) >= r1cs->n_vars
                                ? "its wire is not below the number of wires"
                            : !le_less(term->coefficient.le, r1cs->curve->r, SCALAR_BYTES)
                                ? "its coefficient is not below r"
                                : NULL;
        if (fault == NULL) continue;
        start.position += i * sizeof *term;
        return reader_error(&start, ERR_FORMAT, error,
                            "constraint %" PRIu32 ", wire %" PRIu32 ": %s; compile the circuit "
                            "again",
                            constraint, r1cs_wire(term), fault);
    }
    return ERR_NONE;
fail:
    return rc;
}

static enum err read_constraints(const struct container *c, struct r1cs *r1cs,
                                 struct error *error) {
    enum err rc;
    struct reader reader;
    TRY(reader_open(c, SECTION_CONSTRAINTS, "constraints", &reader, error));
    if (r1cs->n_constraints > (reader.end - reader.position) / MIN_CONSTRAINT_BYTES)
        return reader_error(&reader, ERR_FORMAT, error,
                            "%" PRIu32 " constraints announced, more than the section can hold; "
                            "the file is truncated or corrupt: compile the circuit again",
                            r1cs->n_constraints);
    r1cs->constraints = calloc((size_t)r1cs->n_constraints + 1, sizeof *r1cs->constraints);
    if (r1cs->constraints == NULL)
        return error_set(error, ERR_HOST_MEMORY, "%s: out of memory", c->label);
    for (uint32_t i = 0; i < r1cs->n_constraints; i++) {
        TRY(read_row(&reader, r1cs, i, &r1cs->constraints[i].a, error));
        TRY(read_row(&reader, r1cs, i, &r1cs->constraints[i].b, error));
        TRY(read_row(&reader, r1cs, i, &r1cs->constraints[i].c, error));
    }
    TRY(reader_end(&reader, error));
    return ERR_NONE;
fail:
    return rc;
}

static enum err read_all(struct r1cs *r1cs, struct error *error) {
    enum err rc;
    struct container c;
    TRY(container_parse(mapped_file_path(r1cs->file), mapped_file_bytes(r1cs->file),
                        mapped_file_size(r1cs->file), "r1cs", R1CS_VERSION, &c, error));
    TRY(read_header(&c, r1cs, error));
    TRY(refuse_custom_gates(&c, error));
    TRY(read_constraints(&c, r1cs, error));
    TRY(mapped_file_unchanged(r1cs->file, error));
    return ERR_NONE;
fail:
    return rc;
}

enum err r1cs_open(const char *path, struct r1cs **out, struct error *error) {
    enum err rc;
    struct r1cs *r1cs = calloc(1, sizeof *r1cs);
    if (r1cs == NULL) return error_set(error, ERR_HOST_MEMORY, "%s: out of memory", path);
    TRY(mapped_file_open(path, &r1cs->file, error));
    TRY(read_all(r1cs, error));
    *out = r1cs;
    return ERR_NONE;
fail:
    r1cs_close(r1cs);
    return rc;
}

void r1cs_close(struct r1cs *r1cs) {
    if (r1cs == NULL) return;
    free(r1cs->constraints);
    mapped_file_close(r1cs->file);
    free(r1cs);
}

enum err r1cs_check_witness(const struct r1cs *r1cs, const struct wtns *wtns, struct error *error) {
    if (wtns->curve != r1cs->curve)
        return error_set(error, ERR_MISMATCH, "the witness is of curve %s, the circuit of %s",
                         wtns->curve->name, r1cs->curve->name);
    if (wtns->n_vars != r1cs->n_vars)
        return error_set(error, ERR_MISMATCH,
                         "the witness has %" PRIu32 " signals, the circuit %" PRIu32
                         "; they are of different circuits or versions",
                         wtns->n_vars, r1cs->n_vars);
    uint32_t bad = cpu_curve(r1cs->curve->id)->first_unsatisfied(pool_shared(), r1cs, wtns->values);
    if (bad == r1cs->n_constraints) return ERR_NONE;
    return error_set(error, ERR_WITNESS,
                     "the witness does not satisfy constraint %" PRIu32 " of %" PRIu32
                     " (counted from 0); check the inputs, `snarkjs r1cs print` shows the "
                     "constraint",
                     bad, r1cs->n_constraints);
}
