#include "service/db/db_private.h"

#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* From src/include/catalog/pg_type.dat; these numbers never change. */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_BYTEA_ARRAY = 1001,
    OID_INT2_ARRAY = 1005,
    OID_INT4_ARRAY = 1007,
    OID_INT8_ARRAY = 1016,
    OID_VARCHAR = 1043,
    OID_TIMESTAMPTZ = 1184,
    OID_TIMESTAMPTZ_ARRAY = 1185,
    OID_VOID = 2278,
    OID_UUID = 2950,
    OID_UUID_ARRAY = 2951,
    OID_JSONB = 3802,
    OID_JSONB_ARRAY = 3807,
    OID_FIRST_USER = 16384, /* enums of the schema */
};

static const struct db_type types[] = {
    {'b', OID_BOOL, 0, 1, true, false},
    {'s', OID_INT2, 0, 2, true, false},
    {'i', OID_INT4, 0, 4, true, false},
    {'l', OID_INT8, 0, 8, true, false},
    {'z', OID_TIMESTAMPTZ, 0, 8, true, false},
    {'t', OID_TEXT, 0, 0, true, true},
    {'x', OID_BYTEA, 0, 0, true, false},
    {'u', OID_UUID, 0, 16, true, false},
    {'j', OID_JSONB, 0, 0, false, true},
    {'v', OID_VOID, 0, 0, true, false},
    {'S', OID_INT2_ARRAY, OID_INT2, 2, false, false},
    {'I', OID_INT4_ARRAY, OID_INT4, 4, false, false},
    {'L', OID_INT8_ARRAY, OID_INT8, 8, false, false},
    {'Z', OID_TIMESTAMPTZ_ARRAY, OID_TIMESTAMPTZ, 8, false, false},
    {'U', OID_UUID_ARRAY, OID_UUID, 16, false, false},
    {'J', OID_JSONB_ARRAY, OID_JSONB, 0, false, false},
    {'X', OID_BYTEA_ARRAY, OID_BYTEA, 0, false, false},
};

const struct db_type *db_type(char letter) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].letter == letter) return &types[i];
    return NULL;
}

bool db_type_matches(const struct db_type *type, Oid oid) {
    if (type->letter == 't')
        return oid == OID_TEXT || oid == OID_VARCHAR || oid == OID_NAME || oid >= OID_FIRST_USER;
    return type->oid == oid;
}

struct db_param db_text(const char *text) {
    if (!text) return db_null();
    return (struct db_param){.kind = DB_TEXT, .data = text, .n = strlen(text)};
}

/* --- encoding --- */

static void put_be(uint8_t *out, uint64_t number, size_t bytes) {
    number = htobe64(number);
    memcpy(out, (const uint8_t *)&number + (8 - bytes), bytes);
}

static bool number_fits(const struct db_type *type, int64_t number) {
    switch (type->item_bytes) {
    case 1:
        return number == 0 || number == 1;
    case 2:
        return number >= INT16_MIN && number <= INT16_MAX;
    case 4:
        return number >= INT32_MIN && number <= INT32_MAX;
    default:
        return true;
    }
}

static bool is_number(const struct db_type *type) {
    return type->item_bytes > 0 && type->item_bytes <= 8 && !type->item;
}

/* PostgreSQL's array_recv: dimensions, has-nulls flag, element type, length, lower bound, and each
 * element behind its length. */
static size_t array_head(size_t n) {
    return n ? 20 : 12;
}

static uint8_t *put_array_head(uint8_t *at, const struct db_type *type, size_t n, bool has_nulls) {
    put_be(at, n ? 1 : 0, 4);
    put_be(at + 4, has_nulls, 4);
    put_be(at + 8, type->item, 4);
    if (n) {
        put_be(at + 12, n, 4);
        put_be(at + 16, 1, 4);
    }
    return at + array_head(n);
}

static void put_item(uint8_t *at, const struct db_type *type, const uint8_t *item) {
    int64_t number = 0;
    int32_t middle;
    int16_t narrow;
    switch (type->letter) {
    case 'U':
        memcpy(at, item, type->item_bytes);
        return;
    case 'S':
        memcpy(&narrow, item, sizeof narrow);
        number = narrow;
        break;
    case 'I':
        memcpy(&middle, item, sizeof middle);
        number = middle;
        break;
    default:
        memcpy(&number, item, sizeof number);
    }
    put_be(at, (uint64_t)(type->letter == 'Z' ? number - DB_EPOCH_US : number), type->item_bytes);
}

static uint8_t *encode_array(const struct db_type *type, const struct db_param *value,
                             size_t *size) {
    size_t head = array_head(value->n), step = 4 + type->item_bytes;
    if (!type->item_bytes || value->item_bytes != type->item_bytes ||
        value->n > (INT_MAX - head) / step)
        return NULL;
    uint8_t *bytes = malloc(head + value->n * step);
    if (!bytes) return NULL;
    uint8_t *at = put_array_head(bytes, type, value->n, false);
    for (size_t i = 0; i < value->n; i++, at += step) {
        put_be(at, type->item_bytes, 4);
        put_item(at + 4, type, (const uint8_t *)value->data + i * type->item_bytes);
    }
    *size = head + value->n * step;
    return bytes;
}

/* Elements whose lengths differ; jsonb_recv wants a version byte, 1, before the text. */
static uint8_t *encode_items(const struct db_type *type, const struct db_param *value,
                             size_t *size) {
    const struct db_item *items = value->data;
    size_t extra = type->letter == 'J' ? 1 : 0, bytes_n = array_head(value->n);
    bool has_nulls = false;
    for (size_t i = 0; i < value->n; i++) {
        has_nulls = has_nulls || !items[i].data;
        if (items[i].n > INT_MAX - 5 || bytes_n > INT_MAX - 5 - items[i].n) return NULL;
        bytes_n += 4 + (items[i].data ? extra + items[i].n : 0);
    }
    uint8_t *bytes = type->item_bytes ? NULL : malloc(bytes_n);
    if (!bytes) return NULL;
    uint8_t *at = put_array_head(bytes, type, value->n, has_nulls);
    for (size_t i = 0; i < value->n; i++) {
        put_be(at, items[i].data ? extra + items[i].n : UINT32_MAX, 4);
        at += 4;
        if (!items[i].data) continue;
        if (extra) *at++ = 1;
        memcpy(at, items[i].data, items[i].n);
        at += items[i].n;
    }
    *size = bytes_n;
    return bytes;
}

static bool encode_one(const struct db_type *type, const struct db_param *value, int i,
                       struct db_encoded *out) {
    size_t size = value->n;
    out->formats[i] = type->is_text ? 0 : 1;
    if (value->kind == DB_NULL) return true;
    if (value->kind == DB_INT && is_number(type) && number_fits(type, value->number)) {
        int64_t number = value->number - (type->letter == 'z' ? DB_EPOCH_US : 0);
        put_be(out->numbers[i], (uint64_t)number, type->item_bytes);
        out->values[i] = (const char *)out->numbers[i];
        size = type->item_bytes;
    } else if (value->kind == DB_ARRAY && type->item) {
        out->arrays[i] = encode_array(type, value, &size);
        out->values[i] = (const char *)out->arrays[i];
    } else if (value->kind == DB_ITEMS && type->item) {
        out->arrays[i] = encode_items(type, value, &size);
        out->values[i] = (const char *)out->arrays[i];
    } else if ((value->kind == DB_TEXT && type->is_text) ||
               (value->kind == DB_BYTES && type->letter == 'x') ||
               (value->kind == DB_UUID && type->letter == 'u')) {
        out->values[i] = value->data;
    }
    if (!out->values[i] || size > INT_MAX) return false;
    out->lengths[i] = (int)size;
    return true;
}

enum err db_encode(const char *what, const char *params, const struct db_param *values,
                   struct db_encoded *out, struct error *error) {
    *out = (struct db_encoded){.n = 0};
    for (; params[out->n]; out->n++) {
        const struct db_type *type = db_type(params[out->n]);
        if (out->n == DB_PARAMS_MAX || !type)
            return error_set(error, ERR_INTERNAL, "%s: bad parameter list '%s'", what, params);
        if (!encode_one(type, &values[out->n], out->n, out))
            return error_set(error, ERR_INTERNAL,
                             "%s: parameter %d cannot be sent as type '%c' (or is too large)", what,
                             out->n + 1, type->letter);
    }
    return ERR_NONE;
}

void db_encoded_free(struct db_encoded *encoded) {
    for (int i = 0; i < DB_PARAMS_MAX; i++)
        free(encoded->arrays[i]);
}

/* --- decoding --- */

struct db_result {
    PGresult *rows;
};

/* A column as it is declared: a letter, followed by " NAME," unless it has no name. */
struct column {
    const struct db_type *type; /* NULL: there is no such letter */
    const char *name;
    int name_n;
};

/* Takes the first column of a declaration; returns the rest. */
static const char *next_column(const char *columns, struct column *out) {
    *out = (struct column){.type = db_type(*columns++)};
    if (*columns != ' ') return columns;
    out->name = columns + 1;
    out->name_n = (int)strcspn(out->name, ",");
    return out->name + out->name_n + 1;
}

static int count_columns(const char *columns) {
    struct column column;
    int n = 0;
    for (; *columns; n++)
        columns = next_column(columns, &column);
    return n;
}

static bool has_name(const struct column *column, const char *name) {
    return !column->name || (strlen(name) == (size_t)column->name_n &&
                             memcmp(name, column->name, (size_t)column->name_n) == 0);
}

enum err db_columns_check(const char *what, const char *columns, const PGresult *rows,
                          struct error *error) {
    int n = PQnfields(rows), expected = count_columns(columns);
    if (n != expected)
        return error_set(error, ERR_SCHEMA, "%s: %d columns, expected %d; run: proverq migrate up",
                         what, n, expected);
    for (int i = 0; i < n; i++) {
        char letter = *columns;
        struct column column;
        columns = next_column(columns, &column);
        if (!has_name(&column, PQfname(rows, i)))
            return error_set(error, ERR_SCHEMA,
                             "%s: column %d is %s, expected %.*s; run: proverq migrate up", what,
                             i + 1, PQfname(rows, i), column.name_n, column.name);
        if (!column.type || !column.type->is_result ||
            !db_type_matches(column.type, PQftype(rows, i)))
            return error_set(error, ERR_SCHEMA,
                             "%s: column %s has type %u, expected '%c'; run: proverq migrate up",
                             what, PQfname(rows, i), PQftype(rows, i), letter);
    }
    return ERR_NONE;
}

enum err db_result_make(const char *what, const char *columns, PGresult *rows,
                        struct db_result **out, struct error *error) {
    enum err rc = ERR_NONE;
    if (PQntuples(rows) > 0 || PQnfields(rows) > 0)
        TRY(db_columns_check(what, columns, rows, error));
    *out = malloc(sizeof **out);
    if (!*out) TRY(error_set(error, ERR_HOST_MEMORY, "%s: out of memory", what));
    **out = (struct db_result){rows};
    return ERR_NONE;
fail:
    PQclear(rows);
    return rc;
}

int db_rows(const struct db_result *result) {
    return PQntuples(result->rows);
}

bool db_is_null(const struct db_result *result, int row, int column) {
    return PQgetisnull(result->rows, row, column) != 0;
}

int64_t db_get_int(const struct db_result *result, int row, int column) {
    const uint8_t *bytes = (const uint8_t *)PQgetvalue(result->rows, row, column);
    size_t n = (size_t)PQgetlength(result->rows, row, column);
    uint64_t number = 0;
    if (db_is_null(result, row, column) || n > 8 || n == 0) return 0;
    if (bytes[0] & 0x80) number = UINT64_MAX; /* the sign goes on */
    for (size_t i = 0; i < n; i++)
        number = number << 8 | bytes[i];
    bool is_time = PQftype(result->rows, column) == OID_TIMESTAMPTZ;
    return (int64_t)number + (is_time ? DB_EPOCH_US : 0);
}

bool db_get_bool(const struct db_result *result, int row, int column) {
    return db_get_int(result, row, column) != 0;
}

const char *db_get_text(const struct db_result *result, int row, int column) {
    return PQgetvalue(result->rows, row, column);
}

const uint8_t *db_get_bytes(const struct db_result *result, int row, int column, size_t *n) {
    *n = (size_t)PQgetlength(result->rows, row, column);
    return (const uint8_t *)PQgetvalue(result->rows, row, column);
}

struct uuid db_get_uuid(const struct db_result *result, int row, int column) {
    struct uuid uuid = {{0}};
    if (PQgetlength(result->rows, row, column) == (int)sizeof uuid)
        memcpy(&uuid, PQgetvalue(result->rows, row, column), sizeof uuid);
    return uuid;
}

/* A result may hold a witness: what was secret does not stay in freed memory. */
static void wipe(PGresult *rows) {
    for (int row = 0; row < PQntuples(rows); row++)
        for (int column = 0; column < PQnfields(rows); column++)
            if (PQftype(rows, column) == OID_BYTEA)
                explicit_bzero(PQgetvalue(rows, row, column),
                               (size_t)PQgetlength(rows, row, column));
}

void db_free(struct db_result *result) {
    if (!result) return;
    wipe(result->rows);
    PQclear(result->rows);
    free(result);
}
