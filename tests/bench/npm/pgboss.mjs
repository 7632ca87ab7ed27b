// pg-boss with jobs that do nothing.
//
//     pgboss.mjs drain COUNT CONCURRENCY default|batched     prints jobs and seconds
//     pgboss.mjs latency COUNT                               p50, p99 and the longest, in ms
//
// The connection string is DATABASE_URL. CONCURRENCY loops fetch and complete, one job at a time (`default`) or 500 (`batched`,
// after ANALYZE, without which its plans are slow). Latency is that of work() as installed but for its polling at the shortest
// interval that it allows, 0.5 s: it has no notification.
import PgBoss from "pg-boss";
import { percentiles, sleep } from "./measure.mjs";

const [what, count, concurrency, mode] = process.argv.slice(2);
const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: Math.max(10, Number(concurrency)), supervise: false, schedule: false });
boss.on("error", (error) => {
  throw error;
});
await boss.start();
await boss.createQueue("noop");
await boss.getDb().executeSql("truncate pgboss.job");
if (what === "drain") {
  for (let i = 0; i < count; i += 5000) await boss.insert(Array.from({ length: Math.min(5000, count - i) }, () => ({ name: "noop" })));
  await boss.getDb().executeSql("analyze pgboss.job");
  const batchSize = mode === "batched" ? 500 : 1;
  const seen = new Set();
  const loop = async () => {
    for (let jobs; (jobs = await boss.fetch("noop", { batchSize })).length > 0; ) {
      for (const job of jobs) seen.add(job.id);
      await boss.complete("noop", jobs.map((job) => job.id));
    }
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: Number(concurrency) }, loop));
  const seconds = (performance.now() - from) / 1000;
  const { rows } = await boss.getDb().executeSql("select count(*)::int as n from pgboss.job where name = 'noop' and state = 'completed'");
  if (seen.size !== Number(count) || rows[0].n !== Number(count)) throw new Error(`${seen.size} of ${count} jobs ran, ${rows[0].n} are completed`);
  console.log(`${seen.size} ${seconds.toFixed(3)}`);
} else {
  let started; // called when the job that is waited for runs
  await boss.work("noop", { pollingIntervalSeconds: 0.5 }, async () => started(performance.now()));
  const ms = [];
  for (let i = 0; i < count; i++) {
    await sleep(10 + 10 * Math.random());
    const at = new Promise((resolve) => (started = resolve));
    const from = performance.now();
    await boss.send("noop");
    ms.push((await at) - from);
  }
  console.log(percentiles(ms));
}
await boss.stop({ graceful: false });
process.exit(0);
