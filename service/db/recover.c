#include "service/db/recover.h"

#include "service/common/log.h"
#include "service/common/report.h"
#include "service/common/stop.h"

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
    } while (rc == ERR_CONNECTION && !stop_event_is_set(stop_fd));
    if (stop_event_is_set(stop_fd)) return ERR_NONE;
    if (rc == ERR_NONE) log_info("connected again");
    return rc;
}
