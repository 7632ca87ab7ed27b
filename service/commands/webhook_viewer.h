/* `proverq listen`: shows webhooks on a terminal, for development.
 *
 * It receives what a consumer would: it is an HTTP server on 127.0.0.1, makes a webhook endpoint for
 * itself (or moves the one of its last run), verifies each delivery and prints it. So the finalizer
 * must be allowed to go there, like to any private address: --webhook-http --webhook-allow
 * 127.0.0.0/8. It begins with a ping, and says why when that does not arrive. When it ends it
 * disables the endpoint.
 */
#ifndef PROVERQ_WEBHOOK_VIEWER_H
#define PROVERQ_WEBHOOK_VIEWER_H

#include "service/common/options.h"

/* Runs until a signal asks it to stop (ERR_NONE) or an error. ERR_USAGE: the port is taken. */
MUST_USE enum err webhook_viewer_run(const struct options *options, struct error *error);

/* Whether a delivery is one of ours: its signatures (blanks between them) have one by `secret` over
 * "id.timestamp.body", and its timestamp is less than five minutes from `now`. */
bool webhook_viewer_verify(const char *secret, const char *id, const char *timestamp,
                           const char *signatures, const char *body, size_t body_bytes,
                           int64_t now);

#endif
