/* Which network addresses a webhook may reach.
 *
 * The URL of an endpoint is chosen by whoever submits jobs, so without a filter it would reach what
 * only this host can: its loopback, its cloud's metadata service, the private network (server-side
 * request forgery). Public addresses are allowed, all else only where the operator allowed the
 * network. An IPv4 address inside an IPv6 one (v4-mapped, NAT64, 6to4) is judged as the IPv4
 * address that it leads to. Registries: IANA's special-purpose IPv4 and IPv6 addresses (RFC 6890).
 */
#ifndef PROVERQ_ADDRESS_H
#define PROVERQ_ADDRESS_H

#include "gpu/error.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

enum { ADDRESS_NETWORKS_MAX = 32 };

/* A network in IPv6 notation; an IPv4 network a.b.c.d/n is ::ffff:a.b.c.d/(96+n). */
struct address_network {
    struct in6_addr base;
    unsigned bits;
};

struct address_filter {
    struct address_network allowed[ADDRESS_NETWORKS_MAX];
    size_t n_allowed;
};

/* Adds "10.0.0.0/8", "fd00::/8", or one address. ERR_USAGE for anything else, and for a network
 * with bits set behind its prefix. */
MUST_USE enum err address_filter_allow(struct address_filter *filter, const char *cidr,
                                       struct error *error);

/* Whether a connection may be made to `address`; a family other than IPv4 and IPv6 is refused. */
bool address_allowed(const struct address_filter *filter, const struct sockaddr *address);

/* The address as people write it, without port; "?" for another family. */
void address_text(const struct sockaddr *address, char text[INET6_ADDRSTRLEN]);

#endif
