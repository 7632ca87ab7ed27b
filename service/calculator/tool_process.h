/* The process in which wasm2c or the C compiler reads what a stranger wrote.
 *
 * proverq starts its own program again as
 *
 *     proverq tool-process PROGRAM NAME [ARGUMENT ...]
 *
 * with PATH, TMPDIR and LANG as its whole environment, in the folder where the tool works. So nothing
 * of proverq's memory, environment (which may hold the database's password) or descriptors is in
 * it. It shuts itself in (sandbox_enter_tool) and becomes PROGRAM, a path.
 */
#ifndef PROVERQ_TOOL_PROCESS_H
#define PROVERQ_TOOL_PROCESS_H

#define TOOL_COMMAND "tool-process"

/* Exit status when the tool could not be started: the standard error says why. */
enum { TOOL_NOT_STARTED = 125 };

/* The whole process; `words`: PROGRAM and what follows, and NULL. Returns its exit status. */
int tool_process_main(char **words);

#endif
