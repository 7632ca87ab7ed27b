#include "service/db/db.h"

#include <stdio.h>
#include <unistd.h>

struct db_settings db_settings_for(const char *conninfo, const char *role,
                                   const struct db_statement *const *statements, size_t n) {
    struct db_settings settings = {.conninfo = conninfo,
                                   .statement_timeout_ms = DB_STATEMENT_TIMEOUT_MS,
                                   .lock_timeout_ms = DB_LOCK_TIMEOUT_MS,
                                   .statements = statements,
                                   .n_statements = n};
    (void)snprintf(settings.application, sizeof settings.application, "proverq %s", role);
    return settings;
}

struct db_settings db_settings_for_daemon(const char *conninfo, const char *role,
                                          const char *device,
                                          const struct db_statement *const *statements, size_t n) {
    struct db_settings settings = db_settings_for(conninfo, role, statements, n);
    char host[64] = "?";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(settings.application, sizeof settings.application, "proverq %s %s%s%s", role,
                   device ? device : "", device ? "@" : "", host);
    return settings;
}
