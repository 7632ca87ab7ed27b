#!/usr/bin/env python3
"""A consumer of proverq's webhooks, in nothing but Python's standard library: copy what you need.

    webhook_receiver.py --secret-file FILE [--port N]

FILE holds what proverq.create_webhook_endpoint(name, url) gave. It listens on 127.0.0.1, port 0 meaning any free one,
says which on its first line, and prints a line for each delivery: what came, and whether its signature is right.

The signature is that of the Standard Webhooks specification (https://www.standardwebhooks.com): `webhook-signature` holds
one or more `v1,BASE64`, each an HMAC-SHA256 over `webhook-id.webhook-timestamp.body`. A delivery comes at least once:
whatever acts on it must remember the webhook-id, which stays the same over retries.
"""
import argparse
import base64
import hashlib
import hmac
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300  # older or newer requests may be replays


class Refused(Exception):
    """Why a request is not to be believed."""


def verify(secret, headers, body, now=None):
    """Returns the message that `body` holds, or raises Refused."""
    identity, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not identity or not timestamp.isdigit():
        raise Refused("webhook-id or webhook-timestamp is missing")
    if abs((now or time.time()) - int(timestamp)) > TOLERANCE_SECONDS:
        raise Refused("the timestamp is too far from now")
    key = base64.b64decode(secret.strip().removeprefix("whsec_"))
    digest = hmac.new(key, f"{identity}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    right = "v1," + base64.b64encode(digest).decode()
    # While a key is replaced there are several signatures; one right one is enough.
    if not any(hmac.compare_digest(right.encode(), given.encode())
               for given in headers.get("webhook-signature", "").split()):
        raise Refused("no signature is right")
    return json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to what is signed and 401 to everything else."""

    secret_file = None
    seen = set()

    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 1 << 20))
        try:
            with open(self.secret_file, encoding="ascii") as file:
                message = verify(file.read(), self.headers, body)
        except Refused as reason:
            print(f"refused: {reason}", flush=True)
            self.answer(401)
            return
        again = self.headers["webhook-id"] in self.seen
        self.seen.add(self.headers["webhook-id"])
        if not again:
            self.act(message)
        self.answer(204)

    def act(self, message):
        data = message["data"]
        print(f"{message['type']}: job {data['job']}, {data['partitions']} partitions of {data['circuit']}, "
              f"{data['state']}, {self.headers['webhook-id']}, signature right", flush=True)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description="Receives proverq's webhooks and checks their signatures.")
    parser.add_argument("--secret-file", required=True)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    Receiver.secret_file = arguments.secret_file
    with ThreadingHTTPServer(("127.0.0.1", arguments.port), Receiver) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
