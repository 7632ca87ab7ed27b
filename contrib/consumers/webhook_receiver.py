#!/usr/bin/env python3
"""A consumer of proverq's webhooks, in nothing but Python's standard library: copy what you need.

    webhook_receiver.py --secret-file FILE [--port N]

FILE holds what proverq.create_webhook_endpoint(name, url) gave; while a secret is rotated, two lines: either is right. It
listens on 127.0.0.1, port 0 meaning any free one, says which on its first line, and prints a line for each delivery: what
came, and whether its signature is right.

The signature is that of the Standard Webhooks specification (https://www.standardwebhooks.com): `webhook-signature` holds
one or more `v1,BASE64`, each an HMAC-SHA256 over `webhook-id.webhook-timestamp.body`. A delivery comes at least once, always
under the same webhook-id. Here the ids are in memory; a consumer that acts on them keeps them where it keeps what it does,
in the same transaction, for four days: as long as proverq tries.
"""
import argparse
import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_SECONDS = 300  # older or newer requests may be replays
MAX_BYTES = 1 << 20


class Refused(Exception):
    """Why a request is not to be believed."""


def is_number(text):
    """isdigit() alone takes digits that int() does not, such as superscripts."""
    return text.isascii() and text.isdigit() and len(text) < 20


def verify(secrets, headers, body, now=None):
    """Returns the message that `body` holds, or raises Refused. `secrets`: one, or two while one replaces the other."""
    identity, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not identity or not is_number(timestamp):
        raise Refused("webhook-id or webhook-timestamp is missing")
    if abs((now or time.time()) - int(timestamp)) > TOLERANCE_SECONDS:
        raise Refused("the timestamp is too far from now")
    given = headers.get("webhook-signature", "").encode().split()  # several while a secret is replaced
    for secret in secrets.split():
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, f"{identity}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        right = b"v1," + base64.b64encode(digest)
        if any(hmac.compare_digest(right, signature) for signature in given):
            break
    else:
        raise Refused("no signature is right")
    return json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to what is signed and 401 to everything else."""

    secret_file = None
    seen = set()
    lock = threading.Lock()

    def do_POST(self):
        size = self.headers.get("content-length", "")
        if not is_number(size) or int(size) > MAX_BYTES:
            self.answer(413)
            return
        body = self.rfile.read(int(size))
        try:
            with open(self.secret_file, encoding="ascii") as file:
                message = verify(file.read(), self.headers, body)
        except Refused as reason:
            print(f"refused: {reason}", flush=True)
            self.answer(401)
            return
        with self.lock:
            identity = self.headers["webhook-id"]
            if identity in self.seen:
                print(f"again: {identity}", flush=True)
            else:
                self.act(message)
            self.seen.add(identity)  # after it was acted upon: what fails before comes again
        self.answer(204)

    def act(self, message):
        data = message["data"]
        if message["type"] == "proverq.ping":
            print(f"{message['type']}: endpoint {data['endpoint']}, {self.headers['webhook-id']}, signature right", flush=True)
            return
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
