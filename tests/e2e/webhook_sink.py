#!/usr/bin/env python3
"""A receiver of webhooks for many endpoints that takes load: webhook_sink.py SECRETS OUT PORT

SECRETS has a line for each endpoint: path, kind, secret. A path answers as its kind says: `ok` with 204, `500`, `hang` (reads and
never answers) or `close` (reads and closes the connection). OUT gets a line for each request: when it had come (microseconds
since 1970), path, webhook-id, 1 for a right signature or 0, the job's number. PORT 0: any. Prints its port. Keeps connections open.
"""
import asyncio
import base64
import hashlib
import hmac
import json
import signal
import sys
import time

ANSWERS = {"ok": b"HTTP/1.1 204 No Content\r\n\r\n", "500": b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops"}
endpoints = {}


class Sink(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self, out):
        self.out, self.data, self.transport = out, b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head, *lines = self.data[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            size = end + 4 + int(headers.get("content-length", 0))
            if len(self.data) < size:
                return
            body, self.data = self.data[end + 4:size], self.data[size:]
            self.request(head.split(" ")[1], headers, body)

    def request(self, path, headers, body):
        now = time.time_ns() // 1000
        kind, key = endpoints.get(path, ("500", b""))
        signed = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
        right = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        is_right = right in headers.get("webhook-signature", "").split(" ")
        job = json.loads(body)["data"].get("job", 0)
        self.out.write(f"{now}|{path}|{headers.get('webhook-id')}|{int(is_right)}|{job}\n")
        if kind in ANSWERS:
            self.transport.write(ANSWERS[kind])
        elif kind == "close":
            self.transport.close()


async def main():
    with open(sys.argv[1], encoding="ascii") as file:
        for line in file:
            path, kind, secret = line.split()
            endpoints[path] = kind, base64.b64decode(secret.removeprefix("whsec_"))
    with open(sys.argv[2], "w", encoding="ascii") as out:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        server = await loop.create_server(lambda: Sink(out), "127.0.0.1", int(sys.argv[3]), backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        while not stop.is_set():
            out.flush()
            try:
                await asyncio.wait_for(stop.wait(), 0.5)
            except asyncio.TimeoutError:
                pass


asyncio.run(main())
