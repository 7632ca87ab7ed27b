#!/usr/bin/env python3
"""A webhook receiver that keeps everything and can be told to misbehave: receiver.py OUT STATUS_FILE

Appends each request to OUT as a line of JSON: headers, body as text, and the status that it was answered with. STATUS_FILE
holds one word: a status to answer with, or `hang` to never answer. Prints its port.
"""
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with open(sys.argv[2], encoding="ascii") as file:
            status = file.read().strip()
        line = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                "body": body.decode(), "status": status}
        with lock, open(sys.argv[1], "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        if status == "hang":
            time.sleep(60)
            return
        self.send_response(int(status))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
