/* UUIDs: identities of processes and tokens of leases. */
#ifndef PROVERQ_UUID_H
#define PROVERQ_UUID_H

#include "gpu/error.h"

#include <stdint.h>

struct uuid {
    uint8_t bytes[16]; /* in the order of the text */
};

enum { UUID_TEXT_BYTES = 37 };

/* A random one (RFC 9562 version 4) from getrandom. */
MUST_USE enum err uuid_random(struct uuid *out, struct error *error);

/* "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", either case. ERR_USAGE for anything else. */
MUST_USE enum err uuid_parse(const char *text, struct uuid *out, struct error *error);

void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_BYTES]);

bool uuid_equal(const struct uuid *a, const struct uuid *b);

#endif
