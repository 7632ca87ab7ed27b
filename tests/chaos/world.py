"""The stage: hosts that are network namespaces on one bridge, processes on them, and a timeline of what was done to both.

All is inside the namespaces that run.sh made, so it ends with the driver.
"""
import glob
import os
import pathlib
import signal
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETWORK = "10.77.0"  # nobody else's: the namespace has no other network
DRIVER = f"{NETWORK}.254"


def command(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done


class Timeline:
    """What was done when, for people and for the verdict."""

    def __init__(self, path):
        self._file, self._lock, self._start = open(path, "w", encoding="utf-8"), threading.Lock(), time.monotonic()

    def note(self, text):
        with self._lock:
            print(f"{time.monotonic() - self._start:8.3f}  {text}", file=self._file, flush=True)

    def close(self):
        self._file.close()


class Network:
    """Hosts by name, each with an address of its own on the bridge."""

    def __init__(self):
        command("mkdir", "-p", "/run/netns")
        command("mount", "-t", "tmpfs", "netns", "/run/netns")
        command("ip", "link", "set", "lo", "up")
        command("ip", "link", "add", "bridge", "type", "bridge")
        command("ip", "address", "add", f"{DRIVER}/24", "dev", "bridge")
        command("ip", "link", "set", "bridge", "up")
        self.addresses = {}

    def add(self, host):
        if host in self.addresses:
            return self.addresses[host]
        address = f"{NETWORK}.{len(self.addresses) + 1}"
        command("ip", "netns", "add", host)
        command("ip", "link", "add", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", host)
        command("ip", "link", "set", f"to-{host}", "master", "bridge", "up")
        for words in (["address", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
            command("ip", "-n", host, *words)
        self.addresses[host] = address
        return address

    @staticmethod
    def cut(host):
        """As when a cable is pulled: nothing arrives, and nobody is told."""
        command("ip", "link", "set", f"to-{host}", "down")

    @staticmethod
    def join(host):
        command("ip", "link", "set", f"to-{host}", "up")


def on_host(host, words, environment, log):
    """Starts a process on a host, as the leader of a session of its own, so that a signal can reach all its children."""
    with open(log, "ab") as out:
        return subprocess.Popen(["nsenter", f"--net=/run/netns/{host}", *words], env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=out, start_new_session=True)


def end(process, number=signal.SIGKILL):
    """Sends a signal and waits for the process; kills it when it does not end by itself."""
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def children(pid):
    """Of a process: pid and command line."""
    found = {}
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as file:
                for child in file.read().split():
                    with open(f"/proc/{child}/cmdline", encoding="utf-8") as line:
                        found[int(child)] = line.read().split("\0")
        except OSError:
            pass  # it ended meanwhile
    return found


def signal_quietly(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False
