"""The hosts and the processes of proverq on them. A process that ends is started again, as an init system would."""
import glob
import json
import os
import re
import signal
import threading
import time

from world import NETWORK, ROOT, children, end, on_host, signal_quietly

RESTART_S = 0.7
CLOCK_OFF = {"LD_PRELOAD": (glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1") + [""])[0], "FAKETIME": "+1h",
             "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
             "FAKETIME_FORCE_MONOTONIC_FIX": "0"}  # that one is for older C libraries; with newer ones waits would not wait
PROVER = ["--device", "cpu", "--threads", "1"]
FINALIZER = ["--webhook-http", "--webhook-allow", f"{NETWORK}.0/24", "--webhook-timeout", "2s"]


class Unit:
    """One process that is to run: `serve` with its children, or a prover or finalizer by itself."""

    def __init__(self, host, command, options=(), environment=None, faulty=False):
        self.host, self.command, self.name = host, command, f"{host}-{command}"
        self.options, self.environment = list(options), dict(environment or {})
        self.program = str(ROOT / "build" / ("proverq-faults" if faulty else "proverq"))
        self.process, self.ended_at, self.starts, self.is_wanted = None, 0, 0, True

    def roles(self):
        return ["supervisor", "prover", "finalizer"] if self.command == "serve" else [self.command]

    def pid(self, role):
        """Of the process that has this role now, else None."""
        if self.process is None or self.process.poll() is not None:
            return None
        if self.command != "serve" or role == "supervisor":
            return self.process.pid
        for pid, words in children(self.process.pid).items():
            if role in words:
                return pid
        return None


class Hosts:
    def __init__(self, network, timeline, conninfo, log_folder, common):
        self.network, self.timeline, self.conninfo, self.log_folder = network, timeline, conninfo, log_folder
        self.common = common  # options of all provers and finalizers
        self.units, self._ending = [], threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def add(self, unit):
        self.network.add(unit.host)
        self.units.append(unit)
        return unit

    def start(self):
        self._keeper.start()

    def _begin(self, unit):
        options = (PROVER if unit.command != "finalizer" else []) + (FINALIZER if unit.command != "prover" else [])
        if unit.command == "finalizer":
            common = [word for pair in zip(self.common[::2], self.common[1::2]) if pair[0] != "--lease" for word in pair]
        else:
            common = self.common
        environment = {"PROVERQ_DATABASE": self.conninfo, "PROVERQ_CACHE_DIR": f"/mnt/cache-{unit.host}", **unit.environment}
        unit.process = on_host(unit.host, [unit.program, unit.command, *options, *common, "--log-format", "json", *unit.options],
                               environment, f"{self.log_folder}/{unit.name}.log")
        unit.starts += 1

    def _keep(self):
        while not self._ending.wait(0.1):
            for unit in self.units:
                if unit.process is not None and unit.process.poll() is not None:
                    self.timeline.note(f"{unit.name} ended with status {unit.process.returncode}")
                    unit.process, unit.ended_at = None, time.monotonic()
                if unit.process is None and unit.is_wanted and time.monotonic() - unit.ended_at > RESTART_S and not self._ending.is_set():
                    self._begin(unit)

    def signal(self, unit, role, number):
        """Whether somebody was there to get it."""
        pid = unit.pid(role)
        return pid is not None and signal_quietly(pid, number)

    def wake_all(self):
        """Whoever was stopped goes on; every host can be reached."""
        for unit in self.units:
            self.network.join(unit.host)
            for role in unit.roles():
                self.signal(unit, role, signal.SIGCONT)

    def stop(self):
        self._ending.set()
        self._keeper.join()
        for unit in self.units:
            if unit.process is not None:
                signal_quietly(unit.process.pid, signal.SIGTERM)
        for unit in self.units:
            if unit.process is not None:
                end(unit.process, signal.SIGTERM)
                unit.process = None


def log_lines(folder):
    """Every line that a process of proverq wrote: (log, fields). A line may be cut off by the process's death."""
    for path in sorted(glob.glob(f"{folder}/*.log")):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("{"):
                    try:
                        yield os.path.basename(path), json.loads(line)
                    except ValueError:
                        yield os.path.basename(path), {"msg": "", "cut": re.sub(r"\s+", " ", line)}
