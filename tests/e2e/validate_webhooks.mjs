// Validates bodies of webhooks, one a line, by contrib/schemas/webhook.schema.json: validate_webhooks.mjs FILE
// Prints how many are valid; then, as a check of the schema, each of them with a member gone or of another type must not be.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../npm/package.json", import.meta.url));
const Ajv = require("ajv/dist/2020.js").default;

const schema = JSON.parse(readFileSync(new URL("../../contrib/schemas/webhook.schema.json", import.meta.url), "utf8"));
const validate = new Ajv({ allErrors: true, strict: true, strictRequired: false, strictTypes: false }).compile(schema);
const bodies = readFileSync(process.argv[2], "utf8").trim().split("\n").map((line) => JSON.parse(line));
let valid = 0;
const passed = [];

// Every body with one required member taken away or made an array.
function* broken(body) {
    for (const path of [[], ["data"]]) {
        const holder = (of) => path.reduce((value, key) => value[key], of);
        for (const key of Object.keys(holder(body))) {
            for (const change of [(o) => delete o[key], (o) => (o[key] = [])]) {
                const copy = structuredClone(body);
                change(holder(copy));
                yield [copy, `${body.type} without ${[...path, key].join(".")}`];
            }
        }
    }
}

for (const body of bodies) {
    if (validate(body)) valid++;
    else console.error(body.type, JSON.stringify(validate.errors, null, 1));
    for (const [copy, name] of broken(body)) if (validate(copy)) passed.push(name);
}
if (passed.length > 0) console.error("valid though broken:", passed);
console.log(passed.length > 0 ? "broken ones pass" : valid);
