#!/usr/bin/env node
// A consumer of proverq's webhooks in Node: copy what you need.   npm install standardwebhooks
//
//     node webhook_receiver.mjs SECRET_FILE [PORT]
//
// SECRET_FILE holds what proverq.create_webhook_endpoint(name, url) gave; while a secret is rotated, two lines: either is right.
// It listens on 127.0.0.1, says where on its first line, and prints a line for each delivery.
//
// A delivery comes at least once, always under the same webhook-id. Here the ids are in memory; a consumer that acts on them
// keeps them where it keeps what it does, in the same transaction, for four days: as long as proverq tries.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const MAX_BYTES = 1 << 20;
const [secretFile, port = "0"] = process.argv.slice(2);
const seen = new Set();

// The library checks signature and timestamp: five minutes from now are too far.
function verify(body, headers) {
    let reason;
    for (const secret of readFileSync(secretFile, "utf8").trim().split(/\s+/)) {
        try {
            return new Webhook(secret).verify(body, headers);
        } catch (error) {
            if (!(error instanceof WebhookVerificationError)) throw error;
            reason = error;
        }
    }
    throw reason;
}

function act({ type, data }) {
    if (type === "proverq.ping") console.log(`${type}: endpoint ${data.endpoint}`);
    else console.log(`${type}: job ${data.job}, ${data.partitions} partitions of ${data.circuit}, ${data.state}`);
}

async function read(request) {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
        size += chunk.length;
        if (size > MAX_BYTES) throw new RangeError("too large");
        chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8"); // the bytes as they came: what is parsed and written again has another signature
}

const server = createServer(async (request, response) => {
    try {
        const message = verify(await read(request), request.headers);
        const id = request.headers["webhook-id"];
        if (seen.has(id)) console.log(`again: ${id}`);
        else act(message);
        seen.add(id); // after it was acted upon: what fails before comes again
        response.writeHead(204).end();
    } catch (error) {
        console.log(`refused: ${error.message}`);
        response.writeHead(error instanceof WebhookVerificationError ? 401 : 413).end();
    }
});
server.listen(Number(port), "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
