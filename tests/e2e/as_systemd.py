#!/usr/bin/env python3
"""Plays systemd: as_systemd.py UNIT WATCHDOG_SECONDS COMMAND ...

Runs the command with what the unit file says of system calls, write-and-execute memory and new privileges, and with a socket
for its notifications, which are printed, a line each; started by root, as the user nobody. SIGTERM is passed on; the exit status is the command's.
"""
import ctypes
import os
import platform
import pwd
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile

ALLOW, EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000
LOAD, JUMP_EQUAL, JUMP_BITS, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
PROT_WRITE, PROT_EXEC = 2, 4
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[platform.machine()]


def setting(unit, name):
    return re.findall(rf"^{name}=(.*)$", unit, re.MULTILINE)


def numbers():
    text = subprocess.run(["gcc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", text)}


def expand(words):
    """Names of system calls of groups (@system-service) and single ones."""
    names = set()
    for word in words:
        if not word.startswith("@"):
            names.add(word)
            continue
        text = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True).stdout
        members = re.findall(r"^    (?:\x1b\[0m)?([@\w-]+)$", text, re.MULTILINE)  # systemd 255 resets a colour that it did not set
        names |= expand(members)
    return names


def allowed(unit):
    names = set()
    for line in setting(unit, "SystemCallFilter"):
        if line.startswith("~"):
            names -= expand(line[1:].split())
        else:
            names |= expand(line.split())
    known = numbers()
    return sorted(known[name] for name in names if name in known), known


def program(unit):
    """The filter, in BPF: (code, jump if true, jump if false, constant)."""
    calls, known = allowed(unit)
    code = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, ARCH), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    if setting(unit, "MemoryDenyWriteExecute") == ["yes"]:
        both = PROT_WRITE | PROT_EXEC
        code += [(JUMP_EQUAL, 0, 5, known["mmap"]), (LOAD, 0, 0, 32), (AND, 0, 0, both), (JUMP_EQUAL, 0, 1, both), (RETURN, 0, 0, EPERM), (LOAD, 0, 0, 0)]
        code += [(JUMP_EQUAL, 0, 4, known["mprotect"]), (LOAD, 0, 0, 32), (JUMP_BITS, 0, 1, PROT_EXEC), (RETURN, 0, 0, EPERM), (LOAD, 0, 0, 0)]
    for call in calls:
        code += [(JUMP_EQUAL, 0, 1, call), (RETURN, 0, 0, ALLOW)]
    return code + [(RETURN, 0, 0, EPERM)]


def confine(code):
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
    libc = ctypes.CDLL(None, use_errno=True)
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in code)
    buffer = ctypes.create_string_buffer(packed)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    p = Program(len(code), ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(p), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter is refused")


def main():
    unit = open(sys.argv[1], encoding="utf-8").read()
    code = program(unit)
    folder = tempfile.mkdtemp(prefix="proverq-notify-")
    path = os.path.join(folder, "socket")
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(path)
    os.chmod(folder, 0o711)
    os.chmod(path, 0o777)
    environment = dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC=str(int(float(sys.argv[2]) * 1e6)))
    child = subprocess.Popen(sys.argv[3:], env=environment, preexec_fn=lambda: confine(code))
    signal.signal(signal.SIGTERM, lambda number, frame: child.send_signal(number))
    notices.settimeout(0.2)
    is_over = False
    while not is_over:
        is_over = child.poll() is not None  # what it said before its end is still to be read
        try:
            while True:
                print(notices.recv(4096).decode(), flush=True)
        except TimeoutError:
            pass
    os.unlink(path)
    os.rmdir(folder)
    sys.exit(child.returncode if child.returncode >= 0 else 128 - child.returncode)


main()
