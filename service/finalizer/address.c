#include "service/finalizer/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Refused unless allowed, after unwrapping; of IPv6 also all that is outside of 2000::/3, the only
 * global unicast addresses: loopback, unique local fc00::/7, link-local fe80::/10, multicast
 * ff00::/8, local NAT64, v4-compatible ... */
static const char *const special_networks[] = {
    "0.0.0.0/8",       /* this network; 0.0.0.0 reaches the host itself */
    "10.0.0.0/8",      /* private */
    "100.64.0.0/10",   /* carrier-grade NAT */
    "127.0.0.0/8",     /* loopback */
    "169.254.0.0/16",  /* link-local, clouds' metadata */
    "172.16.0.0/12",   /* private */
    "192.0.0.0/24",    /* protocol assignments */
    "192.0.2.0/24",    /* documentation, TEST-NET-1 */
    "192.88.99.0/24",  /* 6to4 relays, withdrawn */
    "192.168.0.0/16",  /* private */
    "198.18.0.0/15",   /* benchmarking */
    "198.51.100.0/24", /* documentation, TEST-NET-2 */
    "203.0.113.0/24",  /* documentation, TEST-NET-3 */
    "224.0.0.0/3",     /* multicast, reserved, broadcast */
    "2001::/32",       /* Teredo: carries an obfuscated IPv4 address */
    "2001:2::/48",     /* benchmarking */
    "2001:db8::/32",   /* documentation */
};
enum { SPECIAL_NETWORKS = sizeof special_networks / sizeof *special_networks };

static struct in6_addr mapped(const uint8_t v4[4]) {
    struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(a.s6_addr + 12, v4, 4);
    return a;
}

static bool in_network(const struct in6_addr *a, const struct address_network *network) {
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    if (memcmp(a->s6_addr, network->base.s6_addr, whole) != 0) return false;
    return rest == 0 || (a->s6_addr[whole] ^ network->base.s6_addr[whole]) >> (8 - rest) == 0;
}

static bool parse_bits(const char *text, unsigned most, unsigned *bits) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    unsigned long n = strtoul(text, &end, 10);
    *bits = (unsigned)n;
    return !*end && n <= most;
}

static bool no_bits_behind(const struct address_network *network) {
    for (unsigned bit = network->bits; bit < 128; bit++)
        if (network->base.s6_addr[bit / 8] & 0x80u >> bit % 8) return false;
    return true;
}

static bool parse_network(const char *cidr, struct address_network *out) {
    char text[INET6_ADDRSTRLEN];
    uint8_t v4[4];
    const char *slash = strchr(cidr, '/');
    size_t length = slash ? (size_t)(slash - cidr) : strlen(cidr);
    if (length >= sizeof text) return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)length, cidr);
    unsigned most;
    if (inet_pton(AF_INET, text, v4) == 1)
        most = 32, out->base = mapped(v4);
    else if (inet_pton(AF_INET6, text, &out->base) == 1)
        most = 128;
    else
        return false;
    out->bits = most;
    if (slash && !parse_bits(slash + 1, most, &out->bits)) return false;
    out->bits += 128 - most;
    return no_bits_behind(out);
}

enum err address_filter_allow(struct address_filter *filter, const char *cidr,
                              struct error *error) {
    struct address_network network;
    if (!parse_network(cidr, &network))
        return error_set(error, ERR_USAGE,
                         "\"%.64s\" is no network such as 10.0.0.0/8 or fd00::/8 (no bits may be "
                         "set behind the prefix)",
                         cidr);
    if (filter->n_allowed == ADDRESS_NETWORKS_MAX)
        return error_set(error, ERR_USAGE, "more than %d networks are allowed",
                         ADDRESS_NETWORKS_MAX);
    filter->allowed[filter->n_allowed++] = network;
    return ERR_NONE;
}

/* The IPv4 address that an IPv6 address leads to, as v4-mapped; else the address itself. */
static struct in6_addr unwrapped(const struct in6_addr *a) {
    static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b}; /* RFC 6052 */
    static const uint8_t six_to_four[2] = {0x20, 0x02};     /* RFC 3056 */
    if (memcmp(a->s6_addr, nat64, sizeof nat64) == 0) return mapped(a->s6_addr + 12);
    if (memcmp(a->s6_addr, six_to_four, sizeof six_to_four) == 0) return mapped(a->s6_addr + 2);
    return *a;
}

static bool is_mapped(const struct in6_addr *a) {
    return IN6_IS_ADDR_V4MAPPED(a);
}

bool address_allowed(const struct address_filter *filter, const struct sockaddr *address) {
    struct in6_addr a;
    if (address->sa_family == AF_INET) {
        uint8_t v4[4];
        memcpy(v4, &((const struct sockaddr_in *)(const void *)address)->sin_addr, sizeof v4);
        a = mapped(v4);
    } else if (address->sa_family == AF_INET6) {
        a = unwrapped(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    } else {
        return false;
    }
    for (size_t i = 0; i < filter->n_allowed; i++)
        if (is_mapped(&a) == is_mapped(&filter->allowed[i].base) &&
            in_network(&a, &filter->allowed[i]))
            return true;
    if (!is_mapped(&a) && a.s6_addr[0] >> 5 != 1) return false;
    for (size_t i = 0; i < SPECIAL_NETWORKS; i++) {
        struct address_network special;
        if (!parse_network(special_networks[i], &special) || in_network(&a, &special)) return false;
    }
    return true;
}

void address_text(const struct sockaddr *address, char text[INET6_ADDRSTRLEN]) {
    const void *bytes =
        address->sa_family == AF_INET6
            ? (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr
            : &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    bool known = address->sa_family == AF_INET || address->sa_family == AF_INET6;
    if (!known || !inet_ntop(address->sa_family, bytes, text, INET6_ADDRSTRLEN))
        (void)snprintf(text, INET6_ADDRSTRLEN, "?");
}
