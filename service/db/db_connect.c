#include "service/db/db_private.h"

#include <stdlib.h>
#include <string.h>

/* Where several hosts stand for one database, one that does not answer must not keep us from the
 * next for long. */
enum { TIMEOUT_S = 10, TIMEOUT_OF_SEVERAL_S = 5, TIMEOUT_LEAST_S = 2, TIMEOUT_MOST_S = 3600 };

enum { ITEM_BYTES = 1025, OPTIONS_MAX = 16 };

struct db_target {
    char *conninfo, *application;
    char *host, *address, *port; /* lists with commas; NULL: not given */
    size_t n_hosts;              /* at least 1 */
    uint32_t timeout_s;
    bool is_set[OPTIONS_MAX]; /* by the user, of the table below */
    bool has_attributes;      /* target_session_attrs is not libpq's default */
};

/* A peer that has vanished without a word is noticed in less than a minute, one that does not take
 * what we send in 20 s. */
static const struct {
    const char *name, *value;
} defaults[] = {{"keepalives_idle", "30"},
                {"keepalives_interval", "5"},
                {"keepalives_count", "3"},
                {"tcp_user_timeout", "20000"}};
enum { DEFAULTS = sizeof defaults / sizeof *defaults };

static size_t items(const char *list) {
    size_t n = 1;
    for (; *list; list++)
        n += *list == ',';
    return n;
}

/* The nth item of a list; a list of one serves all. */
static const char *item(const char *list, size_t n, char out[ITEM_BYTES]) {
    if (items(list) == 1) n = 0;
    for (; n > 0; n--)
        list = strchr(list, ',') + 1;
    size_t size = strcspn(list, ",");
    if (size >= ITEM_BYTES) size = ITEM_BYTES - 1;
    memcpy(out, list, size);
    out[size] = '\0';
    return out;
}

/* What libpq would connect with, as it puts it together from the string, a service file and the
 * environment: it stops at a setting that does not exist before it goes to any host. */
static PQconninfoOption *effective(const char *conninfo) {
    const char *const keywords[] = {"dbname", "sslmode", NULL};
    const char *const values[] = {conninfo, "none such", NULL};
    PGconn *connection = PQconnectStartParams(keywords, values, 1);
    PQconninfoOption *options = connection ? PQconninfo(connection) : NULL;
    PQfinish(connection);
    return options;
}

static const char *value_of(const PQconninfoOption *options, const char *keyword) {
    for (; options && options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0) return options->val;
    return NULL;
}

/* False: out of memory. */
static bool keep(char **out, const char *value) {
    if (value && *value) *out = strdup(value);
    return !value || !*value || *out;
}

static uint32_t timeout_of(const char *text, size_t n_hosts) {
    long s = text ? strtol(text, NULL, 10) : 0;
    if (s <= 0) return n_hosts > 1 ? TIMEOUT_OF_SEVERAL_S : TIMEOUT_S;
    if (s < TIMEOUT_LEAST_S) return TIMEOUT_LEAST_S;
    return s > TIMEOUT_MOST_S ? TIMEOUT_MOST_S : (uint32_t)s;
}

static bool read_options(struct db_target *target, const PQconninfoOption *options) {
    if (!keep(&target->host, value_of(options, "host")) ||
        !keep(&target->address, value_of(options, "hostaddr")) ||
        !keep(&target->port, value_of(options, "port")))
        return false;
    const char *hosts = target->address ? target->address : target->host;
    if (hosts) target->n_hosts = items(hosts);
    /* Lists that do not fit together: libpq says so. */
    if ((target->host && items(target->host) != target->n_hosts) ||
        (target->port && items(target->port) != target->n_hosts && items(target->port) != 1))
        target->n_hosts = 1;
    target->timeout_s = timeout_of(value_of(options, "connect_timeout"), target->n_hosts);
    for (size_t i = 0; i < DEFAULTS; i++)
        target->is_set[i] = value_of(options, defaults[i].name) != NULL;
    const char *attributes = value_of(options, "target_session_attrs");
    target->has_attributes =
        (attributes && strcmp(attributes, "any") != 0) || getenv("PGTARGETSESSIONATTRS");
    return true;
}

enum err db_target_open(const char *conninfo, const char *application, struct db_target **out,
                        struct error *error) {
    struct db_target *target = calloc(1, sizeof *target);
    *out = target;
    if (!target) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    target->n_hosts = 1;
    target->conninfo = strdup(conninfo);
    target->application = strdup(application);
    PQconninfoOption *options = effective(conninfo);
    bool is_read = target->conninfo && target->application && read_options(target, options);
    PQconninfoFree(options);
    return is_read ? ERR_NONE : error_set(error, ERR_HOST_MEMORY, "out of memory");
}

void db_target_close(struct db_target *target) {
    if (!target) return;
    if (target->conninfo)
        explicit_bzero(target->conninfo, strlen(target->conninfo)); /* it may hold a password */
    free(target->conninfo);
    free(target->application);
    free(target->host);
    free(target->address);
    free(target->port);
    free(target);
}

size_t db_target_hosts(const struct db_target *target) {
    return target->n_hosts;
}

uint32_t db_target_timeout_ms(const struct db_target *target) {
    return target->timeout_s * 1000;
}

/* --- one connection --- */

struct settings {
    const char *keywords[OPTIONS_MAX], *values[OPTIONS_MAX];
    size_t n;
};

static void set(struct settings *settings, const char *keyword, const char *value) {
    settings->keywords[settings->n] = keyword;
    settings->values[settings->n++] = value;
}

PGconn *db_target_start(const struct db_target *target, size_t host) {
    struct settings settings = {.n = 0};
    char name[ITEM_BYTES], address[ITEM_BYTES], port[ITEM_BYTES];
    if (target->n_hosts > 1 && !target->has_attributes)
        set(&settings, "target_session_attrs", "read-write"); /* the string counts more */
    set(&settings, "dbname", target->conninfo);               /* what follows counts more */
    set(&settings, "fallback_application_name", target->application);
    set(&settings, "client_encoding", "UTF8");
    for (size_t i = 0; i < DEFAULTS; i++)
        if (!target->is_set[i]) set(&settings, defaults[i].name, defaults[i].value);
    if (target->n_hosts > 1) {
        if (target->host) set(&settings, "host", item(target->host, host, name));
        if (target->address) set(&settings, "hostaddr", item(target->address, host, address));
        if (target->port) set(&settings, "port", item(target->port, host, port));
    }
    return PQconnectStartParams(settings.keywords, settings.values, 1);
}
