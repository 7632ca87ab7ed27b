#include "gpu/curve.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

const struct curve_info curve_infos[CURVE_COUNT] = {
    [CURVE_BN254] =
        {
            .id = CURVE_BN254,
            .name = "bn128",
            .n8q = 32,
            .q = {0x47, 0xfd, 0x7c, 0xd8, 0x16, 0x8c, 0x20, 0x3c, 0x8d, 0xca, 0x71,
                  0x68, 0x91, 0x6a, 0x81, 0x97, 0x5d, 0x58, 0x81, 0x81, 0xb6, 0x45,
                  0x50, 0xb8, 0x29, 0xa0, 0x31, 0xe1, 0x72, 0x4e, 0x64, 0x30},
            .r = {0x01, 0x00, 0x00, 0xf0, 0x93, 0xf5, 0xe1, 0x43, 0x91, 0x70, 0xb9,
                  0x79, 0x48, 0xe8, 0x33, 0x28, 0x5d, 0x58, 0x81, 0x81, 0xb6, 0x45,
                  0x50, 0xb8, 0x29, 0xa0, 0x31, 0xe1, 0x72, 0x4e, 0x64, 0x30},
            .two_adicity = 28,
        },
    [CURVE_BLS12_381] =
        {
            .id = CURVE_BLS12_381,
            .name = "bls12381",
            .n8q = 48,
            .q = {0xab, 0xaa, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xb9, 0xff, 0xff, 0x53, 0xb1,
                  0xfe, 0xff, 0xab, 0x1e, 0x24, 0xf6, 0xb0, 0xf6, 0xa0, 0xd2, 0x30, 0x67,
                  0xbf, 0x12, 0x85, 0xf3, 0x84, 0x4b, 0x77, 0x64, 0xd7, 0xac, 0x4b, 0x43,
                  0xb6, 0xa7, 0x1b, 0x4b, 0x9a, 0xe6, 0x7f, 0x39, 0xea, 0x11, 0x01, 0x1a},
            .r = {0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe,
                  0xff, 0x02, 0xa4, 0xbd, 0x53, 0x05, 0xd8, 0xa1, 0x09, 0x08, 0xd8,
                  0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73},
            .two_adicity = 32,
        },
};

const struct curve_info *curve_info(enum curve_id id) {
    return &curve_infos[id];
}

/* The letters and digits of `name`: "alt-bn128" is "altbn128". */
static void plain_name(const char *name, char *out, size_t size) {
    size_t n = 0;
    for (; *name != '\0' && n + 1 < size; name++)
        if (isalnum((unsigned char)*name)) out[n++] = *name;
    out[n] = '\0';
}

const struct curve_info *curve_by_name(const char *name) {
    static const struct {
        const char *name;
        enum curve_id id;
    } names[] = {
        {"bn128", CURVE_BN254},
        {"bn254", CURVE_BN254},
        {"altbn128", CURVE_BN254},
        {"bls12381", CURVE_BLS12_381},
    };
    char plain[16];
    plain_name(name, plain, sizeof plain);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(plain, names[i].name) == 0) return &curve_infos[names[i].id];
    return NULL;
}

const struct curve_info *curve_by_scalar_modulus(const uint8_t *r_le, size_t n) {
    if (n != SCALAR_BYTES) return NULL;
    for (size_t i = 0; i < CURVE_COUNT; i++)
        if (memcmp(curve_infos[i].r, r_le, n) == 0) return &curve_infos[i];
    return NULL;
}

bool le_less(const uint8_t *a, const uint8_t *b, size_t n) {
    while (n-- > 0)
        if (a[n] != b[n]) return a[n] < b[n];
    return false;
}

bool le_is_zero(const uint8_t *a, size_t n) {
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++)
        any |= a[i];
    return any == 0;
}
