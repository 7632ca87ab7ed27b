#include "service/db/recover.h"

#include "service/common/log.h"
#include "service/common/report.h"

#include <poll.h>

bool recover_is_stopping(int fd) {
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return poll(&look, 1, 0) > 0;
}

enum err recover(struct db *db, enum err rc, int stop_fd, struct error *error) {
    if (rc == ERR_NONE || rc == ERR_SCHEMA) return rc;
    if (rc == ERR_DATABASE) {
        log_error("a statement was refused", log_text("error", error->text));
        return ERR_NONE;
    }
    if (rc != ERR_CONNECTION) return rc;
    log_warn("the connection is lost", log_text("error", error->text));
    do {
        report_tick(); /* it waits for its database: that is no reason to replace it */
        rc = db_reconnect_within(db, stop_fd, REPORT_STUCK_MS / 9, error);
    } while (rc == ERR_CONNECTION && !recover_is_stopping(stop_fd));
    if (recover_is_stopping(stop_fd)) return ERR_NONE;
    if (rc == ERR_NONE) log_info("connected again");
    return rc;
}
