#!/usr/bin/env python3
"""The webhook receiver of the tests: receiver.py ENDPOINTS RECORDS [--address ADDRESS] [--port PORT]

ENDPOINTS has a line for each path, `PATH ANSWER [SECRET ...]`, and is read again when it has changed. The answers:

    STATUS  this HTTP status, whatever was sent
    strict  204 to a delivery that the Standard Webhooks libraries would accept: a right signature, and a timestamp at most
            5 minutes off; 400 to any other. One in twenty of the accepted ids gets 500 the first time, as from a service
            that is being restarted.
    hang    none; the connection stays open
    close   none; the connection is closed

A request to any other path gets 404. Each request is appended to RECORDS as a line of JSON before it is answered: `received`
(microseconds since 1970), `path`, `headers` (names in lower case), `body`, `id` (the webhook-id), `signed` (whether a signature
is right by one of the path's secrets), `timely` (the timestamp), `answer` (a status, hang or close).

It listens on 127.0.0.1 and a free port unless told otherwise, prints the port, keeps connections open, and runs until it is
killed.
"""
import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import time

TOLERANCE_SECONDS = 300


class Endpoints:
    """The paths: what each answers, and the keys of its signatures."""

    def __init__(self, file):
        self.file, self.version, self.paths = file, None, {}

    def find(self, path):
        status = os.stat(self.file)
        version = status.st_ino, status.st_size, status.st_mtime_ns
        if version != self.version:
            with open(self.file, encoding="ascii") as file:
                lines = [line.split() for line in file]
            self.paths = {path: (answer, [base64.b64decode(secret.removeprefix("whsec_")) for secret in secrets])
                          for path, answer, *secrets in filter(None, lines)}
            self.version = version
        return self.paths.get(path, ("404", []))


def is_signed(keys, headers, body):
    signed = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}.".encode() + body
    right = {"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys}
    return not right.isdisjoint(headers.get("webhook-signature", "").split(" "))


def is_timely(headers):
    timestamp = headers.get("webhook-timestamp", "")
    return timestamp.isdigit() and abs(int(timestamp) - time.time()) <= TOLERANCE_SECONDS


class Receiver:
    """What all connections have in common."""

    def __init__(self, endpoints, records):
        self.endpoints, self.records, self.seen = Endpoints(endpoints), records, set()

    def receive(self, path, headers, body):
        """Records a request; returns what it is to be answered with."""
        answer, keys = self.endpoints.find(path)
        record = {"received": time.time_ns() // 1000, "path": path, "headers": headers, "body": body.decode(errors="backslashreplace"),
                  "id": headers.get("webhook-id", ""), "signed": is_signed(keys, headers, body), "timely": is_timely(headers)}
        if answer == "strict":
            answer = self.judge(record)
        record["answer"] = answer
        self.records.write(json.dumps(record) + "\n")
        self.records.flush()
        return answer

    def judge(self, record):
        is_first = record["id"] not in self.seen
        self.seen.add(record["id"])
        if not (record["signed"] and record["timely"]):
            return "400"
        return "500" if is_first and hashlib.sha256(record["id"].encode()).digest()[0] < 13 else "204"


class Connection(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self, receiver):
        self.receiver, self.data, self.transport = receiver, b"", None

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
            self.answer(self.receiver.receive(head.split(" ")[1], headers, body))

    def answer(self, answer):
        if answer == "close":
            self.transport.close()
        elif answer != "hang":
            body = b"" if answer < "300" else b"oops"
            self.transport.write(f"HTTP/1.1 {answer} \r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


async def main():
    parser = argparse.ArgumentParser(description="Receives webhooks for the tests, records them and answers as it is told to.")
    parser.add_argument("endpoints", help="file: PATH ANSWER [SECRET ...]")
    parser.add_argument("records", help="file that a line of JSON is appended to for each request")
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 (default): any free one")
    arguments = parser.parse_args()
    with open(arguments.records, "a", encoding="utf-8") as records:
        receiver = Receiver(arguments.endpoints, records)
        server = await asyncio.get_running_loop().create_server(lambda: Connection(receiver), arguments.address, arguments.port, backlog=1024)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
