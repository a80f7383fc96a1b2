#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""clients/example.py, which is not ours to decode with, reads every type of frame from a moted:
hello, data with rows, ended keys and totals, dropped, and reply."""
import os
import re
import subprocess
import time

from lib import DATA, TOP, Moted, Rows, check, run, spawn

EXAMPLE = os.path.join(TOP, "clients/example.py")


def main():
    with open(EXAMPLE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    check("the example has under 40 lines", len(lines) < 40, len(lines))

    moted = Moted(config={"socket": {"queue": 32768, "frame": 4096, "arena": 131072}})
    watch = moted.client("subscribe self interval=200ms")
    rows = Rows(watch)
    example = spawn(EXAMPLE, moted.path, "subscribe process,event,load,cpu interval=50ms",
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, PYTHONUNBUFFERED="1"))
    # Nobody reads its output, so it stops reading, so frames are dropped for it.
    lost, until = 0, time.monotonic() + 40
    while not lost and time.monotonic() < until:
        subprocess.run(["true"], check=True)
        for frame in watch.frames(0.1):
            rows.take(frame)
        lost = rows.row("self")["mote_frames_dropped_total"] if rows.rows["self"] else 0
    check("frames were dropped for it", lost >= 1, lost)

    wanted = {
        "hello": r"hello: \S+ on \{.*'hostname': ",
        "reply": r"reply: code: 0, text: ok$",
        "rows": r"process: pid: \d+, start: \d+, .*\bcomm: ",
        "values": r"load: load1: [\d.]+, ",
        "lists": r"process: .*argv: \['",
        "ended keys": r"process ended: pid: \d+, start: \d+$",
        "totals": r"process totals: .*\butime: \d+",
        "events": r"event: type: exit, time: \d+, pid: \d+",
        "dropped": r"dropped: frames: \d+, bytes: \d+$",
    }
    found, last, until = {}, b"", time.monotonic() + 20
    while len(found) < len(wanted) and time.monotonic() < until:
        subprocess.run(["true"], check=True)
        last = example.stdout.readline()
        if not last:
            break
        text = last.decode("utf-8", "surrogateescape").rstrip("\n")
        for name, pattern in wanted.items():
            if name not in found and re.match(pattern, text):
                found[name] = text
    still = example.poll()
    example.kill()
    error = example.stderr.read().decode()
    for name in wanted:
        check(f"it shows {name}", name in found, (last, error))
    dropped = [int(n) for n in re.findall(r"\d+", found.get("dropped", "0 0"))]
    check("what it is told that it lost is what moted says, or less", dropped[0] >= 1 and dropped[1] >= 0, dropped)
    check("it did not fail", still is None and not error, (still, error))

    frame = moted.client("poll load").wait(lambda f: f.type == DATA)
    once = subprocess.Popen([EXAMPLE, moted.path, "no such thing"], stdout=subprocess.PIPE,
                            env=dict(os.environ, PYTHONUNBUFFERED="1"), text=True)
    text = once.stdout.readline() + once.stdout.readline()
    once.kill()
    check("a refusal is shown with its code", frame and re.search(r"^reply: code: 22, text: .*subscribe", text, re.M), text)
    check("moted ends with 0", moted.stop() == 0, moted.log())
    example.wait()
    once.wait()


run(main)
