#include "service/calculator/tool_process.h"
#include "service/calculator/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static enum err become(char **words, struct error *error) {
    const uint64_t data_bytes = UINT64_C(8) << 30;
    enum err rc;
    if (!words[0] || !words[1]) TRY(error_set(error, ERR_USAGE, "no program"));
    TRY(sandbox_limit(data_bytes, error));
    TRY(sandbox_enter_tool(words[0], ".", error));
    (void)execve(words[0], words + 1, environ);
    rc = error_set(error, ERR_ABSENT, "%s cannot be executed: %s", words[0], strerror(errno));
fail:
    return rc;
}

int tool_process_main(char **words) {
    struct error error = {.code = ERR_NONE};
    (void)close_range(STDERR_FILENO + 1, ~0u, 0);
    (void)become(words, &error); /* it returns only when it fails */
    (void)fprintf(stderr, "%s\n", error.text);
    return TOOL_NOT_STARTED;
}
