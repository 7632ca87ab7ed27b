#include "service/prover/task.h"
#include "gpu/wtns.h"

#include <stdlib.h>

void claim_rows_release(struct claim_rows *rows) {
    if (!rows || atomic_fetch_sub(&rows->users, 1) > 1) return;
    db_free(rows->rows);
    free(rows);
}

void task_drop_witness(struct task *task, struct buffers *buffers) {
    wtns_close(task->wtns);
    task->wtns = NULL;
    buffers_give(buffers, task->buffer);
    task->buffer = NULL;
    claim_rows_release(task->claim);
    task->claim = NULL;
    task->witness = NULL;
    task->path = NULL;
}
