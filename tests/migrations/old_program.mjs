// Works as programs do that were started before a migration, with the statements of this tree: provers, a finalizer, and a producer
// of jobs.
//
//     node old_program.mjs STATEMENTS_FOLDER FIRST_JOB      the database is PROVERQ_DATABASE's
//
// Statements are prepared at the start and kept, as the programs do; what cannot be recorded is tried again. It works until its
// standard input ends, then until no job from FIRST_JOB on is under way (20 s at most), and prints one line: counts, errors, and
// the longest time that a statement took, as JSON.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';

const { Client } = createRequire(new URL('../npm/package.json', import.meta.url))('pg');
const folder = process.argv[2];
const texts = Object.fromEntries(readdirSync(folder).map((file) => [file.replace('.sql', ''), readFileSync(join(folder, file), 'utf8')]));
const report = { jobs: 0, completed: 0, refused: 0, finalized: 0, slowest_ms: 0, slowest: '', errors: [] };
const provers = 3;
let stopping = false;
let drained = false;

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function session() {
  const client = new Client({ connectionString: process.env.PROVERQ_DATABASE, application_name: 'old program' });
  client.on('error', (error) => report.errors.push(`connection: ${error.message}`));
  await client.connect();
  for (const [name, text] of Object.entries(texts)) await client.query(`prepare "check ${name}" as ${text}`);
  const attempt = async (name, values, text = texts[name]) => {
    const start = performance.now();
    try {
      return (await client.query({ name, text, values })).rows;
    } catch (error) {
      report.errors.push(`${name}: ${error.code} ${error.message}`);
      return null;
    } finally {
      const took = Math.round(performance.now() - start);
      if (took > report.slowest_ms) [report.slowest_ms, report.slowest] = [took, name];
    }
  };
  const run = async (...query) => (await attempt(...query)) ?? [];
  run.untilDone = async (...query) => {
    for (;;) {
      const rows = await attempt(...query);
      if (rows) return rows;
      await sleep(50);
    }
  };
  return run;
}

async function complete(run, prover, row) {
  const now = new Date().toISOString();
  await run('renew_leases', [prover, [row.job_seq], [row.partition_idx], [row.token], 60000]);
  const rows = await run.untilDone('complete', [[row.job_seq], [row.partition_idx], [row.token], ['{"pi_a": 1}'], ['["1"]'], [null],
    [1], [10, 80], [0, 1], [now, now], [5, 70]]);
  if (rows.length === 1) report.completed++;
  else report.refused++;
}

async function prover(run) {
  const [{ prover_id: id }] = await run('prover_register', [randomUUID(), 'old', process.pid, 'cpu', '', '0.0.1']);
  while (!drained) {
    const wanted = await run('wanted_circuits', [[]]);
    const rows = await run('claim', [id, wanted.map((row) => row.circuit_id), 60000, 2, [], [], [], []]);
    for (const row of rows) await complete(run, id, row);
    if (rows.length === 0) {
      await run('prover_idle', [id, true]);
      await run('wake_due', []);
      await run('rescue_expired', []);
      await sleep(20);
    }
  }
  await run('prover_stop', [id]);
}

async function finalizer(run) {
  while (!drained) {
    let ended = 0;
    for (const { job_seq: job } of await run('finalizable', [10])) {
      ended += (await run('finalize', [job])).filter((row) => row.event).length;
    }
    report.finalized += ended;
    if (ended === 0) await sleep(10);
  }
}

// Jobs by function and, every other one, by plain INSERT.
async function producer(run) {
  for (let i = 0; !stopping; i++) {
    const n = 1 + i % 3;
    if (i % 2) {
      const made = await run('enqueue', [n], "select proverq.enqueue_witness('mul', array_fill('w'::bytea, array[$1::int]))");
      report.jobs += made.length;
    } else {
      const [made] = await run('insert', [n], "insert into proverq.job (circuit, partitions) values ('mul', $1::int) returning job_seq");
      if (made) report.jobs++;
      if (made) await run.untilDone('insert partitions', [made.job_seq, n], `insert into proverq.partition (job_seq, partition_idx, witness)
        select $1::bigint, idx, 'w' from generate_series(0, $2::int - 1) idx`);
    }
    await sleep(15);
  }
}

async function drain(run) {
  const end = performance.now() + 20000;
  while (performance.now() < end) {
    const [row] = await run('left', [], `select count(*)::int as n from proverq.job
      where job_seq >= ${Number(process.argv[3])} and state not in ('finished', 'failed', 'cancelled')`);
    if (row?.n === 0) break;
    await sleep(50);
  }
  drained = true;
}

const sessions = await Promise.all(Array.from({ length: provers + 3 }, session));
process.stdout.write('working\n');
const work = [...sessions.slice(0, provers).map(prover), finalizer(sessions[provers]), producer(sessions[provers + 1])];
await new Promise((done) => process.stdin.resume().on('end', done));
stopping = true;
await work.at(-1);
await drain(sessions[provers + 2]);
await Promise.all(work);
report.errors = [...new Set(report.errors)];
console.log(JSON.stringify(report));
process.exit(0);
