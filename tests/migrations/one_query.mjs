// Sends each file as a single query, without a transaction around it, as golang-migrate does: one_query.mjs FILE ...
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { Client } = createRequire(new URL('../npm/package.json', import.meta.url))('pg');
const client = new Client({ connectionString: process.env.PROVERQ_DATABASE });
await client.connect();
for (const file of process.argv.slice(2)) await client.query(readFileSync(file, 'utf8'));
await client.end();
