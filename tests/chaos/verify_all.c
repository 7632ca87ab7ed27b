/* Verifies proofs by the thousand: verify_all VKEY.json ... <PROOFS
 *
 * A line of PROOFS: the number of the key among the arguments (from 0), the publics and the proof as
 * JSON, separated by tabs. Prints the numbers (from 1) of the lines that are not valid, one a line;
 * fails only when it cannot judge.
 */
#include "gpu/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 8, FILE_MAX_BYTES = 1 << 20 };

static enum err read_key(const char *path, struct vkey **out, struct error *error) {
    char *text = malloc(FILE_MAX_BYTES);
    FILE *file = fopen(path, "rb");
    size_t n = file && text ? fread(text, 1, FILE_MAX_BYTES, file) : 0;
    enum err rc = n ? vkey_from_json(text, n, out, error)
                    : error_set(error, ERR_IO, "%s: cannot be read", path);
    if (file) (void)fclose(file);
    free(text);
    return rc;
}

static bool is_valid(const struct vkey *vkey, const char *publics_text, const char *proof_text) {
    struct proof proof;
    struct scalar *publics = NULL;
    struct error error;
    size_t n = 0;
    bool valid = publics_from_json(publics_text, strlen(publics_text), vkey->curve, &publics, &n,
                                   &error) == ERR_NONE &&
                 proof_from_json(proof_text, strlen(proof_text), &proof, &error) == ERR_NONE &&
                 verify(vkey, publics, n, &proof, &error) == ERR_NONE;
    free(publics);
    return valid;
}

int main(int argc, char **argv) {
    struct vkey *keys[KEYS_MAX] = {NULL};
    struct error error;
    char *line = NULL;
    size_t size = 0;
    int status = EXIT_SUCCESS, n_keys = argc - 1 < KEYS_MAX ? argc - 1 : KEYS_MAX;
    for (int i = 0; i < n_keys && status == EXIT_SUCCESS; i++)
        if (read_key(argv[i + 1], &keys[i], &error) != ERR_NONE) {
            (void)fprintf(stderr, "verify_all: %s\n", error.text);
            status = EXIT_FAILURE;
        }
    for (long number = 1; status == EXIT_SUCCESS && getline(&line, &size, stdin) > 0; number++) {
        char *publics = strchr(line, '\t'), *proof = publics ? strchr(publics + 1, '\t') : NULL;
        long key = strtol(line, NULL, 10);
        bool valid = false;
        line[strcspn(line, "\n")] = '\0';
        if (proof && key >= 0 && key < n_keys) {
            *publics++ = *proof++ = '\0';
            valid = is_valid(keys[key], publics, proof);
        }
        if (!valid) (void)printf("%ld\n", number);
    }
    for (int i = 0; i < n_keys; i++)
        vkey_free(keys[i]);
    free(line);
    return status;
}
