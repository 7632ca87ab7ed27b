// graphile-worker with jobs that do nothing.
//
//     graphile.mjs drain COUNT CONCURRENCY default|batched     prints jobs and seconds
//     graphile.mjs latency COUNT                               p50, p99 and the longest, in ms
//
// The connection string is DATABASE_URL. `default` is as installed; `batched` fetches 500 jobs at a time into its local queue
// and completes what has ended within a millisecond in one statement, as its documentation says for speed.
import { makeWorkerUtils, run, Logger } from "graphile-worker";
import { percentiles, sleep } from "./measure.mjs";

const [what, count, concurrency, mode] = process.argv.slice(2);
const connectionString = process.env.DATABASE_URL;
const logger = new Logger(() => () => {});
const batched = { worker: { localQueue: { size: 500, refetchDelay: { durationMs: 10 } }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } };
let done = 0;
let expected = 0;
let ended; // called when the last job, or the one that is waited for, has run

// When so many jobs have run.
function next(number) {
  expected = number;
  return new Promise((resolve) => (ended = resolve));
}

function start(preset, concurrentJobs) {
  const taskList = {
    noop: () => {
      if (++done === expected) ended(performance.now());
    },
  };
  return run({ connectionString, logger, noHandleSignals: true, taskList, preset: { ...preset, worker: { ...preset.worker, concurrentJobs, maxPoolSize: Math.max(concurrentJobs, 10) } } });
}

const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
await utils.withPgClient((client) => client.query("truncate graphile_worker._private_jobs"));
if (what === "drain") {
  await utils.withPgClient((client) => client.query("select graphile_worker.add_jobs(array(select row('noop','{}',null,null,null,null,null,null)::graphile_worker.job_spec from generate_series(1, $1)))", [count]));
  await utils.withPgClient((client) => client.query("analyze graphile_worker._private_jobs"));
  const from = performance.now();
  const all = next(Number(count));
  const runner = await start(mode === "batched" ? batched : {}, Number(concurrency));
  await all;
  await runner.stop();
  const seconds = (performance.now() - from) / 1000;
  const left = await utils.withPgClient((client) => client.query("select count(*)::int as n from graphile_worker._private_jobs"));
  if (done !== Number(count) || left.rows[0].n !== 0) throw new Error(`${done} of ${count} jobs ran, ${left.rows[0].n} are left`);
  console.log(`${done} ${seconds.toFixed(3)}`);
} else {
  const runner = await start({}, 1);
  const ms = [];
  for (let i = 0; i < count; i++) {
    await sleep(10 + 10 * Math.random());
    const started = next(i + 1);
    const from = performance.now();
    await utils.addJob("noop", {});
    ms.push((await started) - from);
  }
  await runner.stop();
  console.log(percentiles(ms));
}
await utils.release();
