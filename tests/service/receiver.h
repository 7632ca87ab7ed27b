/* A webhook receiver on the loopback interface, one per test process. The path of a request names the
 * answer:
 *
 *   /200 /410 ...      that status; 3xx with a Location, 429 with Retry-After: 7
 *   /slow              after 4 s          /pause    after 0.3 s
 *   /endless200        an answer without end, as fast as it goes; /drip500: a byte every 50 ms
 *   /headers           160 kB of header fields
 */
#ifndef PROVERQ_TESTS_RECEIVER_H
#define PROVERQ_TESTS_RECEIVER_H

#include <stddef.h>

struct receiver_request {
    char id[64], timestamp[32], signature[128], content_type[64], agent[64], expect[16];
    char body[20000];
    size_t body_bytes;
};

/* Starts it; with a key and a certificate (PEM) for HTTPS as `localhost`. Fails the test otherwise. */
void receiver_start(const char *key, const char *certificate);
void receiver_stop(void);

const char *receiver_url(void); /* without a path */
int receiver_requests(void);    /* that have come whole */
int receiver_connections(void); /* that were made to it */
struct receiver_request receiver_last(void);

#endif
