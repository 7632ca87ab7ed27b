/* Makes a circuit of 2^LOG2 rows and a witness for it: see tests/gpu/r1cs_builder.h. */
#include "tests/gpu/r1cs_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_number(const char *text, unsigned long most, unsigned long *out) {
    char *end;
    *out = strtoul(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && *out <= most;
}

int main(int argc, char **argv) {
    static const char usage[] =
        "usage: make_circuit CURVE dense|bits LOG2 N_PUBLIC OUT.r1cs OUT.wtns [INPUTS]\n"
        "CURVE is bn128 or bls12381; LOG2 is 2 to 26; 2^LOG2 rows hold N_PUBLIC and more.\n"
        "INPUTS, a number, gives another witness of the same dense circuit.\n";
    unsigned long log2, n_public, inputs = 0;
    const struct curve_info *curve = argc == 7 || argc == 8 ? curve_by_name(argv[1]) : NULL;
    if (curve == NULL || (strcmp(argv[2], "dense") != 0 && strcmp(argv[2], "bits") != 0) ||
        !parse_number(argv[3], 26, &log2) || log2 < 2 ||
        !parse_number(argv[4], (1UL << log2) - 2, &n_public) ||
        (argc == 8 && !parse_number(argv[7], UINT32_MAX, &inputs))) {
        (void)fputs(usage, stderr);
        return 2;
    }
    const struct circuit_spec spec = {
        .curve = curve->id,
        .kind = strcmp(argv[2], "dense") == 0 ? CIRCUIT_DENSE : CIRCUIT_BITS,
        .n_constraints = circuit_constraints((unsigned)log2, (uint32_t)n_public),
        .n_public = (uint32_t)n_public,
        .seed = log2,
        .inputs = inputs,
    };
    struct error error = {.code = ERR_NONE};
    if (circuit_write(&spec, argv[5], argv[6], &error) == ERR_NONE) return EXIT_SUCCESS;
    (void)fprintf(stderr, "make_circuit: %s\n", error.text);
    return EXIT_FAILURE;
}
