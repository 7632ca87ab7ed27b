// Verifies stored webhooks with the Standard Webhooks project's own library: verify_webhooks.mjs REQUESTS SECRET_FILE
// Prints how many were right; exits 1 at the first that is not, or when a changed body passes.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../npm/package.json", import.meta.url));
const { Webhook } = require("standardwebhooks");

const webhook = new Webhook(readFileSync(process.argv[3], "utf8").trim());
const lines = readFileSync(process.argv[2], "utf8").trim().split("\n").map((line) => JSON.parse(line));
for (const { body, headers } of lines) {
    webhook.verify(body, headers);
    try {
        webhook.verify(body.replace("job", "jpb"), headers);
    } catch {
        continue;
    }
    console.error("a changed body passed");
    process.exit(1);
}
console.log(lines.length);
