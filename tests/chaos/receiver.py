#!/usr/bin/env python3
"""A webhook receiver that keeps a line of every receipt, in order: receiver.py ADDRESS PORT OUT SECRET_FILE

It judges like the Standard Webhooks libraries: the signature, and a timestamp at most 5 minutes off. What it does not take, it
answers with 400. Of the ids that it takes, one in twenty is answered with 500 once, as a service would that is restarted.
"""
import base64
import hashlib
import hmac
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
seen = set()


def signature(secret, webhook_id, timestamp, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return base64.b64encode(hmac.new(key, f"{webhook_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()).decode()


def judge(headers, body):
    with open(sys.argv[4], encoding="ascii") as file:
        secrets = file.read().split()
    webhook_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    given = [part.partition(",")[2] for part in headers.get("webhook-signature", "").split(" ")]
    is_signed = any(signature(secret, webhook_id, timestamp, body) in given for secret in secrets)
    is_timely = timestamp.isdigit() and abs(int(timestamp) - time.time()) <= 300
    return webhook_id, is_signed, is_timely


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        webhook_id, is_signed, is_timely = judge(self.headers, body)
        with lock:
            is_unlucky = webhook_id not in seen and hashlib.sha256(webhook_id.encode()).digest()[0] < 13
            seen.add(webhook_id)
            status = 400 if not (is_signed and is_timely) else 500 if is_unlucky else 204
            with open(sys.argv[3], "a", encoding="utf-8") as out:
                out.write(json.dumps({"id": webhook_id, "signed": is_signed, "timely": is_timely, "status": status, "body": body.decode()}) + "\n")
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server((sys.argv[1], int(sys.argv[2])), Receiver).serve_forever()
