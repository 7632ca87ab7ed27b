#include "service/common/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum kind { STRING, CHOICE, FLAG, COUNT, SIZE, DURATION, LIST };

struct option {
    const char *name;
    enum kind kind;
    size_t offset; /* of its field in struct options */
    const char *argument, *fallback;
    unsigned commands;
    const char *help;
};

static const struct option option_table[] = {
#define X(field, kind, name, argument, fallback, commands, help)                                   \
    {name, kind, offsetof(struct options, field), argument, fallback, commands, help},
    OPTION_TABLE(X)
#undef X
};
enum { OPTIONS = sizeof option_table / sizeof *option_table };

static const struct {
    const char *words, *arguments;
    size_t least, most;
    const char *help;
} command_table[] = {
#define X(id, words, arguments, least, most, help) [id] = {words, arguments, least, most, help},
    COMMAND_TABLE(X)
#undef X
};

enum {
    COUNT_MOST = 1000000,
    DURATION_MOST = 7 * 24 * 3600 * 1000, /* a week, in ms */
    WORD_MAX = 128,
};

const char *options_command_words(enum command command) {
    return command_table[command].words;
}

/* --- values --- */

static bool whole_number(const char *text, uint64_t *value, const char **rest) {
    if (!isdigit((unsigned char)*text)) return false;
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || n > UINT64_MAX / 2) return false;
    *value = n;
    *rest = end;
    return true;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* A number with one of `units`, at most `most`. */
static bool with_unit(const char *text, const struct unit *units, uint64_t most, uint64_t *value) {
    uint64_t n;
    const char *rest;
    if (!whole_number(text, &n, &rest)) return false;
    for (; units->name; units++) {
        if (strcmp(rest, units->name) != 0) continue;
        if (n > most / units->factor) return false;
        *value = n * units->factor;
        return true;
    }
    return false;
}

static bool size_value(const char *text, uint64_t *value) {
    static const struct unit units[] = {
        {"", 1}, {"k", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};
    return with_unit(text, units, INT64_MAX, value);
}

static bool duration_value(const char *text, uint32_t *value) {
    static const struct unit units[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"h", 3600 * 1000}, {NULL, 0}};
    uint64_t ms;
    if (!with_unit(text, units, DURATION_MOST, &ms) || ms == 0) return false;
    *value = (uint32_t)ms;
    return true;
}

/* Zero only where the table's default is zero, which then means "choose for me". */
static bool count_value(const char *text, const char *fallback, uint32_t *value) {
    uint64_t n;
    const char *rest;
    if (!whole_number(text, &n, &rest) || *rest || n > COUNT_MOST) return false;
    if (n == 0 && strcmp(fallback, "0") != 0) return false;
    *value = (uint32_t)n;
    return true;
}

static bool flag_value(const char *text, bool *value) {
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcmp(text, yes[i]) != 0 && strcmp(text, no[i]) != 0) continue;
        *value = strcmp(text, yes[i]) == 0;
        return true;
    }
    return false;
}

/* Whether `word` is one of the words that `|` separates in `choices`. */
static bool one_of(const char *choices, const char *word) {
    size_t length = strcspn(word, "|");
    if (length == 0 || word[length]) return false;
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == '|' || !at[length])) return true;
    return false;
}

static enum err own(struct options *o, char *text, struct error *error) {
    char **bigger = text ? realloc(o->owned, (o->n_owned + 1) * sizeof *bigger) : NULL;
    if (!bigger) {
        free(text);
        return error_set(error, ERR_HOST_MEMORY, "out of memory while reading the options");
    }
    o->owned = bigger;
    o->owned[o->n_owned++] = text;
    return ERR_NONE;
}

/* Adds the items of `text`, which commas separate. */
static enum err list_add(struct options *o, const struct option *option, const char *text,
                         struct error *error) {
    struct option_list *list = (struct option_list *)((char *)o + option->offset);
    char *copy = strdup(text);
    enum err rc = own(o, copy, error);
    if (rc) return rc;
    for (char *at = copy; at;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        if (*at && list->n == OPTION_LIST_MAX)
            return error_set(error, ERR_USAGE, "--%s: more than %d values", option->name,
                             OPTION_LIST_MAX);
        if (*at) list->item[list->n++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return ERR_NONE;
}

static const char *form_of(const struct option *option) {
    switch (option->kind) {
    case FLAG:
        return "1 or 0";
    case COUNT:
        return strcmp(option->fallback, "0") == 0 ? "a whole number" : "a number above 0";
    case SIZE:
        return "a size such as 512M";
    case DURATION:
        return "a time such as 500ms, 30s or 5m, at most a week";
    default:
        return option->argument;
    }
}

/* `source` is how the user named the option: --lease, or PROVERQ_LEASE. */
static enum err set_value(struct options *o, const struct option *option, const char *source,
                          const char *text, struct error *error) {
    void *field = (char *)o + option->offset;
    bool good = true;
    switch (option->kind) {
    case LIST:
        return list_add(o, option, text, error);
    case CHOICE:
        good = one_of(option->argument, text); /* fall through */
    case STRING:
        *(const char **)field = text;
        break;
    case FLAG:
        good = flag_value(text, field);
        break;
    case COUNT:
        good = count_value(text, option->fallback, field);
        break;
    case SIZE:
        good = size_value(text, field);
        break;
    case DURATION:
        good = duration_value(text, field);
        break;
    }
    if (good) return ERR_NONE;
    return error_set(error, ERR_USAGE, "%s: \"%s\" is not %s", source, text, form_of(option));
}

/* --- names --- */

static void environment_name(const struct option *option, char name[WORD_MAX]) {
    int n = snprintf(name, WORD_MAX, "PROVERQ_%s", option->name);
    for (int i = 0; i < n && i < WORD_MAX; i++)
        name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
}

static bool applies(const struct option *option, enum command command) {
    return option->commands & FOR(command);
}

/* Levenshtein's distance, of words cut at WORD_MAX. */
static size_t distance(const char *a, const char *b) {
    size_t row[WORD_MAX + 1], n = strnlen(b, WORD_MAX);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; i < WORD_MAX && a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j + 1] + 1 < best) best = row[j + 1] + 1;
            if (row[j] + 1 < best) best = row[j] + 1;
            row[j + 1] = best;
        }
    }
    return row[n];
}

static enum err unknown_option(enum command command, const char *name, struct error *error) {
    const struct option *nearest = NULL;
    size_t least = SIZE_MAX;
    for (const struct option *o = option_table; o < option_table + OPTIONS; o++) {
        size_t d = applies(o, command) ? distance(name, o->name) : SIZE_MAX;
        if (d < least) nearest = o, least = d;
    }
    const char *words = options_command_words(command);
    if (!nearest)
        return error_set(error, ERR_USAGE, "proverq %s has no option --%s; it takes none", words,
                         name);
    return error_set(error, ERR_USAGE,
                     "proverq %s has no option --%.64s; nearest is --%s%s%s: %s (all: proverq %s "
                     "--help)",
                     words, name, nearest->name, nearest->argument ? " " : "",
                     nearest->argument ? nearest->argument : "", nearest->help, words);
}

static enum err unknown_command(const char *word, struct error *error) {
    enum command nearest = 0;
    for (enum command c = 0; c < COMMAND_COUNT; c++)
        if (distance(word, command_table[c].words) < distance(word, command_table[nearest].words))
            nearest = c;
    return error_set(error, ERR_USAGE,
                     "there is no command \"%.64s\"; nearest is `proverq %s`: %s (all: proverq "
                     "--help)",
                     word, command_table[nearest].words, command_table[nearest].help);
}

/* --- the command line --- */

struct cursor {
    const char *const *argv;
    int argc, at;
};

/* Matches the command's words, of which there are one or two, at argv[1]. */
static bool command_matches(enum command command, struct cursor *in) {
    char words[WORD_MAX];
    (void)snprintf(words, sizeof words, "%s", command_table[command].words);
    char *second = strchr(words, ' ');
    if (second) *second++ = '\0';
    if (strcmp(in->argv[1], words) != 0) return false;
    if (second && (in->argc < 3 || strcmp(in->argv[2], second) != 0)) return false;
    in->at = second ? 3 : 2;
    return true;
}

/* The error for `proverq migrate`, which lacks its second word; `word` as such otherwise. */
static enum err no_command(const struct cursor *in, struct error *error) {
    char list[256] = "";
    size_t length = strlen(in->argv[1]), used = 0;
    for (enum command c = 0; c < COMMAND_COUNT; c++) {
        const char *words = command_table[c].words;
        if (strncmp(words, in->argv[1], length) != 0 || words[length] != ' ') continue;
        int n = snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", words);
        if (n > 0 && (size_t)n < sizeof list - used) used += (size_t)n;
    }
    if (!used) return unknown_command(in->argv[1], error);
    return error_set(error, ERR_USAGE, "`proverq %s` needs one more word: %s", in->argv[1], list);
}

static bool asks_for_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static enum err find_command(struct cursor *in, struct options *o, struct error *error) {
    o->command = COMMAND_COUNT;
    if (in->argc < 2)
        return error_set(error, ERR_USAGE, "no command given; proverq --help lists them");
    if (asks_for_help(in->argv[1]) || strcmp(in->argv[1], "help") == 0) {
        o->help = true;
        return ERR_NONE;
    }
    if (strcmp(in->argv[1], "--version") == 0) {
        o->version = true;
        return ERR_NONE;
    }
    if (in->argv[1][0] == '-')
        return error_set(error, ERR_USAGE,
                         "the command comes first, then its options; proverq --help lists them");
    for (enum command c = 0; c < COMMAND_COUNT; c++)
        if (command_matches(c, in)) {
            o->command = c;
            return ERR_NONE;
        }
    if (in->argc > 2 && asks_for_help(in->argv[2])) { /* proverq migrate --help */
        o->help = true;
        return ERR_NONE;
    }
    return no_command(in, error);
}

static enum err set_defaults(struct options *o, struct error *error) {
    for (const struct option *option = option_table; option < option_table + OPTIONS; option++) {
        if (!option->fallback || option->kind == LIST) continue;
        enum err rc = set_value(o, option, option->name, option->fallback, error);
        if (rc) return rc;
    }
    return ERR_NONE;
}

static enum err read_environment(struct options *o, struct error *error) {
    for (const struct option *option = option_table; option < option_table + OPTIONS; option++) {
        char name[WORD_MAX];
        environment_name(option, name);
        const char *value = getenv(name);
        if (!applies(option, o->command) || !value || !*value) continue;
        enum err rc = set_value(o, option, name, value, error);
        if (rc) return rc;
    }
    return ERR_NONE;
}

static enum err read_option(struct cursor *in, struct options *o, bool given[OPTIONS],
                            struct error *error) {
    const char *word = in->argv[in->at++] + 2;
    const char *equals = strchr(word, '=');
    char name[WORD_MAX], source[WORD_MAX + 2];
    (void)snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word) : WORD_MAX, word);
    (void)snprintf(source, sizeof source, "--%s", name);
    const struct option *option = option_table;
    while (option < option_table + OPTIONS &&
           !(applies(option, o->command) && strcmp(option->name, name) == 0))
        option++;
    if (option == option_table + OPTIONS) return unknown_option(o->command, name, error);

    const char *value = equals ? equals + 1 : option->kind == FLAG ? "1" : NULL;
    if (!value) {
        if (in->at == in->argc)
            return error_set(error, ERR_USAGE, "%s needs a value: %s", source, option->argument);
        value = in->argv[in->at++];
    }
    bool *seen = &given[option - option_table];
    if (option->kind == LIST && !*seen) /* the command line replaces the environment */
        memset((char *)o + option->offset, 0, sizeof(struct option_list));
    *seen = true;
    return set_value(o, option, source, value, error);
}

/* Options and arguments may be mixed; `--` ends the options. */
static enum err read_words(struct cursor *in, struct options *o, struct error *error) {
    bool given[OPTIONS] = {false}, options_end = false;
    char **arguments = calloc((size_t)in->argc + 1, sizeof *arguments);
    enum err rc = own(o, (char *)arguments, error);
    if (rc) return rc;
    o->arguments = (const char *const *)arguments;
    while (in->at < in->argc) {
        const char *word = in->argv[in->at];
        if (!options_end && strcmp(word, "--") == 0) {
            options_end = true;
            in->at++;
        } else if (!options_end && asks_for_help(word)) {
            o->help = true;
            return ERR_NONE;
        } else if (!options_end && strncmp(word, "--", 2) == 0) {
            if ((rc = read_option(in, o, given, error))) return rc;
        } else {
            arguments[o->n_arguments++] = (char *)(uintptr_t)word;
            in->at++;
        }
    }
    return ERR_NONE;
}

static bool device_name_good(const char *name) {
    uint64_t index;
    const char *rest;
    if (strcmp(name, "auto") == 0 || strcmp(name, "cpu") == 0) return true;
    return strncmp(name, "cuda:", 5) == 0 && whole_number(name + 5, &index, &rest) && !*rest &&
           index < COUNT_MOST;
}

static enum err check_devices(struct options *o, struct error *error) {
    if (o->devices.n == 0) o->devices = (struct option_list){.item = {"auto"}, .n = 1};
    if (o->devices.n > 1 && o->command != COMMAND_SERVE)
        return error_set(error, ERR_USAGE, "proverq %s uses one --device, not %zu",
                         options_command_words(o->command), o->devices.n);
    for (size_t i = 0; i < o->devices.n; i++)
        if (!device_name_good(o->devices.item[i]))
            return error_set(error, ERR_USAGE,
                             "--device: \"%s\" is not auto, cpu, or cuda:N such as cuda:0",
                             o->devices.item[i]);
    return ERR_NONE;
}

static enum err check_arguments(const struct options *o, struct error *error) {
    size_t least = command_table[o->command].least, most = command_table[o->command].most;
    if (o->n_arguments >= least && o->n_arguments <= most) return ERR_NONE;
    return error_set(error, ERR_USAGE, "%s; usage: proverq %s %s%s",
                     o->n_arguments < least ? "an argument is missing"
                                            : "there are too many arguments",
                     command_table[o->command].words, command_table[o->command].arguments,
                     most ? "" : "(no arguments)");
}

static enum err default_cache_dir(struct options *o, struct error *error) {
    const char *parent = getenv("CACHE_DIRECTORY"), *below = ""; /* systemd's */
    if (!parent || !*parent) parent = getenv("XDG_CACHE_HOME"), below = "/proverq";
    if (!parent || !*parent) parent = getenv("HOME"), below = "/.cache/proverq";
    if (!parent || !*parent) parent = "/var/cache", below = "/proverq";
    char *path = NULL;
    if (asprintf(&path, "%s%s", parent, below) < 0) path = NULL;
    enum err rc = own(o, path, error);
    if (!rc) o->cache_dir = path;
    return rc;
}

enum err options_parse(int argc, const char *const *argv, struct options *out,
                       struct error *error) {
    struct cursor in = {argv, argc, 0};
    memset(out, 0, sizeof *out);
    enum err rc;
    TRY(set_defaults(out, error));
    TRY(find_command(&in, out, error));
    if (out->help || out->version) return ERR_NONE;
    TRY(read_environment(out, error));
    TRY(read_words(&in, out, error));
    if (out->help) return ERR_NONE;
    TRY(check_arguments(out, error));
    TRY(check_devices(out, error));
    if (!*out->cache_dir) TRY(default_cache_dir(out, error));
fail:
    return rc;
}

void options_free(struct options *options) {
    for (size_t i = 0; i < options->n_owned; i++)
        free(options->owned[i]);
    free(options->owned);
    *options = (struct options){0};
}

/* --- the environment of child processes --- */

/* The value as text that set_value reads back; the caller frees it. */
static char *value_text(const struct options *o, const struct option *option) {
    const void *field = (const char *)o + option->offset;
    const struct option_list *list = field;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return NULL;
    switch (option->kind) {
    case STRING:
    case CHOICE:
        (void)fputs(*(const char *const *)field, stream);
        break;
    case FLAG:
        (void)fputs(*(const bool *)field ? "1" : "0", stream);
        break;
    case COUNT:
        (void)fprintf(stream, "%" PRIu32, *(const uint32_t *)field);
        break;
    case SIZE:
        (void)fprintf(stream, "%" PRIu64, *(const uint64_t *)field);
        break;
    case DURATION:
        (void)fprintf(stream, "%" PRIu32 "ms", *(const uint32_t *)field);
        break;
    case LIST:
        for (size_t i = 0; i < list->n; i++)
            (void)fprintf(stream, "%s%s", i ? "," : "", list->item[i]);
        break;
    }
    if (fclose(stream) == 0) return text;
    free(text);
    return NULL;
}

enum err options_export(const struct options *options, struct error *error) {
    for (const struct option *option = option_table; option < option_table + OPTIONS; option++) {
        if (!applies(option, options->command)) continue;
        char name[WORD_MAX];
        environment_name(option, name);
        char *text = value_text(options, option);
        int failed = text ? setenv(name, text, 1) : -1;
        free(text);
        if (failed)
            return error_set(error, ERR_HOST_MEMORY, "out of memory while exporting the options");
    }
    return ERR_NONE;
}

/* --- help --- */

static void wrapped(FILE *stream, const char *text, size_t indent) {
    size_t width = 96 - indent;
    while (*text) {
        size_t n = strlen(text);
        if (n > width)
            for (n = width; n > 1 && text[n] != ' '; n--)
                ;
        (void)fprintf(stream, "%*s%.*s\n", (int)indent, "", (int)n, text);
        text += n;
        text += *text == ' ';
    }
}

static void option_help(FILE *stream, const struct option *option) {
    char name[WORD_MAX];
    environment_name(option, name);
    (void)fprintf(stream, "  --%s%s%s\n", option->name, option->argument ? " " : "",
                  option->argument ? option->argument : "");
    wrapped(stream, option->help, 6);
    (void)fprintf(stream, "      [%s", name);
    if (option->fallback && *option->fallback)
        (void)fprintf(stream, ", default %s", option->fallback);
    (void)fprintf(stream, "]\n");
}

static void program_help(FILE *stream) {
    (void)fprintf(stream, "usage: proverq COMMAND [OPTION]... [ARGUMENT]...\n\n"
                          "A queue of zero-knowledge proofs in PostgreSQL, with its own Groth16 "
                          "provers.\n\ncommands:\n");
    for (enum command c = 0; c < COMMAND_COUNT; c++) {
        (void)fprintf(stream, "  %s%s%s\n", command_table[c].words,
                      command_table[c].most ? " " : "", command_table[c].arguments);
        wrapped(stream, command_table[c].help, 6);
    }
    (void)fprintf(stream,
                  "\n`proverq COMMAND --help` lists the options of a command, `proverq --version` "
                  "says which\nprogram this is. Each option can also be given by the environment "
                  "variable in brackets\nafter it. Exit status: 0 success, 1 failure, 2 wrong "
                  "usage.\n");
}

void options_help(FILE *stream, enum command command) {
    if (command == COMMAND_COUNT) {
        program_help(stream);
        return;
    }
    (void)fprintf(stream, "usage: proverq %s [OPTION]...%s%s\n\n", command_table[command].words,
                  command_table[command].most ? " " : "", command_table[command].arguments);
    wrapped(stream, command_table[command].help, 0);
    bool any = false;
    for (const struct option *option = option_table; option < option_table + OPTIONS; option++) {
        if (!applies(option, command)) continue;
        if (!any) (void)fprintf(stream, "\noptions:\n");
        any = true;
        option_help(stream, option);
    }
}
