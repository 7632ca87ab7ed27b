/* Which addresses a webhook may reach. */
#include "service/finalizer/address.h"
#include "tests/gpu/suite.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

static struct address_filter filter;
static struct error error;

static void setup(void) {
    memset(&filter, 0, sizeof filter);
    memset(&error, 0, sizeof error);
}

static bool allowed(const char *text) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(443)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return address_allowed(&filter, (struct sockaddr *)&v4);
    ck_assert_msg(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1, "%s", text);
    return address_allowed(&filter, (struct sockaddr *)&v6);
}

static void allow(const char *cidr) {
    ck_assert_msg(address_filter_allow(&filter, cidr, &error) == ERR_NONE, "%s", error.text);
}

START_TEST(public_addresses_are_allowed) {
    static const char *const good[] = {
        "1.1.1.1",         "9.255.255.255",   "11.0.0.0",         "100.63.255.255",
        "100.128.0.0",     "126.255.255.255", "128.0.0.0",        "169.253.255.255",
        "169.255.0.0",     "172.15.255.255",  "172.32.0.0",       "191.255.255.255",
        "192.0.1.0",       "192.167.255.255", "192.169.0.0",      "198.17.255.255",
        "198.20.0.0",      "223.255.255.255", "2606:4700::1111",  "2a00:1450:4001:81b::200e",
        "2001:4860::8888", "::ffff:1.1.1.1",  "64:ff9b::1.1.1.1", "2002:0101:0101::1",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(allowed(good[i]), "%s", good[i]);
}
END_TEST

static const char *const special[] = {
    "0.0.0.0",         "0.255.255.255",  "10.0.0.0",        "10.255.255.255",  "100.64.0.0",
    "100.127.255.255", "127.0.0.1",      "127.255.255.255", "169.254.169.254", "172.16.0.0",
    "172.31.255.255",  "192.0.0.0",      "192.0.0.255",     "192.168.0.0",     "192.168.255.255",
    "198.18.0.0",      "198.19.255.255", "224.0.0.1",       "239.255.255.255", "240.0.0.0",
    "255.255.255.255", "192.0.2.1",      "198.51.100.7",    "203.0.113.255",   "192.88.99.1",
};

START_TEST(addresses_that_only_this_host_reaches_are_refused) {
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        ck_assert_msg(!allowed(special[i]), "%s", special[i]);
}
END_TEST

/* Each of them again as v4-mapped, NAT64 and 6to4. */
START_TEST(an_ipv4_address_inside_an_ipv6_one_is_judged_as_itself) {
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        uint8_t b[4];
        char text[64];
        ck_assert_int_eq(inet_pton(AF_INET, special[i], b), 1);
        (void)snprintf(text, sizeof text, "::ffff:%s", special[i]);
        ck_assert_msg(!allowed(text), "%s", text);
        (void)snprintf(text, sizeof text, "64:ff9b::%s", special[i]);
        ck_assert_msg(!allowed(text), "%s", text);
        (void)snprintf(text, sizeof text, "2002:%02x%02x:%02x%02x::1", b[0], b[1], b[2], b[3]);
        ck_assert_msg(!allowed(text), "%s", text);
    }
}
END_TEST

START_TEST(ipv6_addresses_that_are_not_public_are_refused) {
    static const char *const bad[] = {
        "::",        "::1",     "::7f00:1", "::10.0.0.1",        "fc00::1", "fdff::1",
        "fe80::1",   "febf::1", "fec0::1",  "ff02::1",           "100::1",  "64:ff9b:1::7f00:1",
        "2001::1",   "1fff::1", "4000::1",  "::ffff:0:10.0.0.1", "5f00::1", "2001:db8::1",
        "2001:2::1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!allowed(bad[i]), "%s", bad[i]);
}
END_TEST

START_TEST(an_operator_allows_a_network_and_nothing_beside_it) {
    allow("10.1.0.0/16");
    ck_assert(allowed("10.1.0.0"));
    ck_assert(allowed("10.1.255.255"));
    ck_assert(allowed("::ffff:10.1.2.3"));
    ck_assert(allowed("64:ff9b::10.1.2.3"));
    ck_assert(!allowed("10.0.255.255"));
    ck_assert(!allowed("10.2.0.0"));
    ck_assert(!allowed("::10.1.2.3"));
    allow("127.0.0.1");
    ck_assert(allowed("127.0.0.1"));
    ck_assert(!allowed("127.0.0.2"));
    allow("192.168.128.0/17");
    ck_assert(allowed("192.168.128.0"));
    ck_assert(!allowed("192.168.127.255"));
    allow("fd00::/8");
    ck_assert(allowed("fd12::1"));
    ck_assert(!allowed("fc12::1"));
    allow("::1");
    ck_assert(allowed("::1"));
    ck_assert(!allowed("::"));
}
END_TEST

START_TEST(all_of_one_family_is_not_all_of_the_other) {
    allow("::/0");
    ck_assert(allowed("fe80::1"));
    ck_assert(!allowed("127.0.0.1"));
    ck_assert(!allowed("::ffff:127.0.0.1"));
    memset(&filter, 0, sizeof filter);
    allow("0.0.0.0/0");
    ck_assert(allowed("127.0.0.1"));
    ck_assert(!allowed("::1"));
}
END_TEST

START_TEST(other_families_are_refused) {
    struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
    char text[INET6_ADDRSTRLEN];
    allow("0.0.0.0/0");
    allow("::/0");
    ck_assert(!address_allowed(&filter, (struct sockaddr *)&local));
    address_text((struct sockaddr *)&local, text);
    ck_assert_str_eq(text, "?");
}
END_TEST

START_TEST(what_is_no_network_is_refused) {
    static const char *const bad[] = {
        "",
        "10",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/",
        "10.0.0.0/8x",
        "10.0.0/8",
        "10.0.0.1/8",
        "fd00::/129",
        "fd00::1/64",
        "example.org",
        "10.0.0.0/ 8",
        "10.0.0.0/4294967304",
        "::ffff:10.0.0.0/8",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999/64",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(address_filter_allow(&filter, bad[i], &error) == ERR_USAGE, "%s", bad[i]);
        ck_assert_uint_eq(filter.n_allowed, 0);
    }
    for (size_t i = 0; i < ADDRESS_NETWORKS_MAX; i++)
        allow("10.0.0.0/8");
    ck_assert_int_eq(address_filter_allow(&filter, "10.0.0.0/8", &error), ERR_USAGE);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&public_addresses_are_allowed,
                                         &addresses_that_only_this_host_reaches_are_refused,
                                         &an_ipv4_address_inside_an_ipv6_one_is_judged_as_itself,
                                         &ipv6_addresses_that_are_not_public_are_refused,
                                         &an_operator_allows_a_network_and_nothing_beside_it,
                                         &all_of_one_family_is_not_all_of_the_other,
                                         &other_families_are_refused,
                                         &what_is_no_network_is_refused};
    return run_tests("address", setup, NULL, tests, sizeof tests / sizeof *tests);
}
