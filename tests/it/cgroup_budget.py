#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: makes cgroups, and measures when frames come
"""Files of cgroupfs that take longer than [cgroup] budget: ticks do not wait for them, other streams come in time,
who polls has all rows all the same, and late ticks are counted."""
import os
import subprocess
import tempfile
import time

from lib import DATA, MORE, TOP, Moted, Rows, cgroup_root, check, run, skip

NAME = f"mote-budget-{os.getpid()}"
GROUPS = 150


def poll(client, stream):
    """All rows of it, as dictionaries, and how long that took."""
    began = time.monotonic()
    client.send(f"poll {stream}")
    rows = Rows(client)
    while True:
        frame = client.wait(lambda f: f.type == DATA and f.name == stream, 30)
        rows.take(frame)
        if not frame.flags & MORE:
            break
    return list(map(client.streams[frame.stream].dict, rows.rows[stream].values())), time.monotonic() - began


def late(client):
    return poll(client, "self")[0][0]["mote_cgroup_late_total"]


def gaps(client, seconds):
    """The longest times between frames of the stream cpu, the longest first."""
    times = [time.monotonic()]
    for frame in client.frames(seconds):
        if frame.type == DATA and frame.name == "cpu":
            times.append(time.monotonic())
    return sorted((b - a for a, b in zip(times, times[1:])), reverse=True)


def one_slow(library, work):
    """A cgroup whose file takes 2 s each time, in the engine whose calls a test can make slow."""
    on = os.path.join(work, "slow")
    moted = Moted("--engine", "sync", config={"cgroup": {"source": "files", "descriptors": 0, "slow": "1h"}},
                  env={"LD_PRELOAD": library, "MOTE_SLOW_OPEN": f"{NAME}/g7/memory.", "MOTE_SLOW_WHILE": on})
    other = moted.client()
    rows, _ = poll(other, "cgroup")
    check("with nothing slow all have values, and no tick is late", late(other) == 0 and
          all(row["memory_current"] is not None for row in rows if NAME in row["path"]), late(other))
    client = moted.client("subscribe cpu,cgroup interval=200ms")
    list(client.frames(1))
    with open(on, "w", encoding="ascii"):
        longest = gaps(client, 12)
        check(f"one tick is late, the others are not ({longest[0]:.2f} s, {longest[1]:.2f} s)",
              longest[0] > 1 and longest[1] < 0.9, longest[:5])
        count = late(other)
        check(f"those that do not wait are counted ({count})", 10 < count < 100, count)
        rows, took = poll(other, "cgroup")
        check(f"who polls waits for all ({took:.1f} s)", sum(f"/{NAME}/g" in row["path"] for row in rows) == GROUPS,
              rows)
    lines = [line for line in moted.log().splitlines() if "ticks do not wait" in line]
    check("a line says so, once", len(lines) == 1, moted.log())
    os.unlink(on)
    check("moted ends with 0", moted.stop() == 0, moted.log())


def small_budget():
    """A budget that any host's cgroups exceed, with the ring where it is to be had."""
    moted = Moted(config={"cgroup": {"source": "files", "budget": "1ms"}, "loop": {"base": "1ms"}})
    client = moted.client()
    for what in ("the first", "the second"):
        rows, took = poll(client, "cgroup")
        mine = [row for row in rows if f"/{NAME}/g" in row["path"]]
        check(f"1 ms: {what} poll has all values ({took:.2f} s)", len(mine) == GROUPS and
              all(None not in (row["memory_current"], row["pgfault"], row["memory_peak"], row["processes"])
                  for row in mine), mine[:3])
    watch = moted.client("subscribe cpu,cgroup interval=250ms")
    list(watch.frames(2))
    worker = subprocess.Popen(["sh", "-c", f"echo 0 >{ROOT}/{NAME}/g3/cgroup.procs && exec sleep 100"])
    rows, seen = Rows(watch), 0
    for frame in watch.frames(8):
        if frame.type != DATA or frame.name != "cgroup":
            continue
        for row in map(watch.streams[frame.stream].dict, frame.rows):
            seen = max(seen, row.get("memory_current") or 0 if row.get("path", "").endswith(f"{NAME}/g3") else 0)
        if seen:
            break
    worker.kill()
    worker.wait()
    check("what moves is told of to who subscribes", seen > 0, seen)
    check("and late ticks are counted", late(client) > 3, late(client))
    check("moted ends with 0", moted.stop() == 0, moted.log())


def main():
    if os.geteuid() != 0 or not ROOT or not os.access(ROOT, os.W_OK):
        skip("cgroups", "needs root and cgroupfs")
        return
    try:
        for i in range(GROUPS):
            os.makedirs(os.path.join(ROOT, NAME, f"g{i}"))
        small_budget()
        with tempfile.TemporaryDirectory() as work:
            library = os.path.join(work, "slow_open.so")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                            os.path.join(TOP, "tests/preload/slow_open.c")], check=True)
            one_slow(library, work)
    finally:
        for folder, _, _ in os.walk(os.path.join(ROOT, NAME), topdown=False):
            os.rmdir(folder)


ROOT = cgroup_root()
run(main)
