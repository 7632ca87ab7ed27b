#include "service/calculator/sym.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char main_prefix[] = "main.";

/* The name of the signal that a line ("12,7,0,main.path[3]") is about, without the indexes at its
 * end, in place; NULL: the line is about none of the main component. */
static char *signal_of(char *line) {
    char *at = strrchr(line, ',');
    line[strcspn(line, "\r\n")] = '\0';
    if (!at || strncmp(at + 1, main_prefix, sizeof main_prefix - 1) != 0) return NULL;
    char *name = at + sizeof main_prefix;
    size_t n = strlen(name);
    while (n > 0 && name[n - 1] == ']') {
        char *open = strrchr(name, '[');
        if (!open) break;
        *open = '\0';
        n = (size_t)(open - name);
    }
    return name;
}

/* The input signal of that name, or NULL. */
static const struct wasm_input *find(const struct calculator_facts *facts, const char *name) {
    uint64_t hash = inputs_hash(name);
    for (size_t i = 0; i < facts->n_inputs; i++)
        if (facts->inputs[i].hash == hash) return &facts->inputs[i];
    return NULL;
}

static enum err read_names(FILE *file, const struct calculator_facts *facts, json_t *names,
                           struct error *error) {
    char *line = NULL;
    size_t room = 0;
    enum err rc = ERR_NONE;
    while (getline(&line, &room, file) > 0) {
        const char *name = signal_of(line);
        const struct wasm_input *input = name ? find(facts, name) : NULL;
        if (input && json_object_set_new(names, name, json_integer(input->size)) != 0)
            TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
    }
fail:
    free(line);
    return rc;
}

enum err sym_name_inputs(const char *path, const struct calculator_facts *facts, char **json,
                         struct error *error) {
    json_t *names = json_object();
    FILE *file = fopen(path, "re");
    enum err rc;
    if (!file)
        TRY(error_set(error, errno == ENOENT ? ERR_ABSENT : ERR_IO, "%s: %s", path,
                      strerror(errno)));
    if (facts->n_inputs == 0)
        TRY(error_set(error, ERR_UNSUPPORTED,
                      "this calculator does not tell its input signals; leave --sym out"));
    TRY(read_names(file, facts, names, error));
    if (json_object_size(names) != facts->n_inputs)
        TRY(error_set(error, ERR_MISMATCH,
                      "%s names %zu of the calculator's %zu input signals: they do not belong "
                      "together",
                      path, json_object_size(names), facts->n_inputs));
    *json = json_dumps(names, JSON_COMPACT | JSON_SORT_KEYS);
    if (!*json) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
fail:
    if (file) (void)fclose(file);
    json_decref(names);
    return rc;
}
