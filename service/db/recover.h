/* What an error means for a loop that works on a database for as long as its process lives. */
#ifndef PROVERQ_RECOVER_H
#define PROVERQ_RECOVER_H

#include "service/db/db.h"

/* ERR_NONE to go on: nothing was wrong, or only one statement was refused (that is logged), or the
 * lost connection was made again, or `stop_fd` (stop.h) became readable while it could not be. Else the error
 * that ends the process. */
MUST_USE enum err recover(struct db *db, enum err rc, int stop_fd, struct error *error);

#endif
