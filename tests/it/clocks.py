#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Clocks and CPUs that move (P5 to P7). A step of the wall clock and a suspend (by a stand-in for
clock_gettime(), tests/preload/step_clock.c) mark one gap each, leave the schedule alone and corrupt no
rate. A CPU that goes away and comes back is seen to, and no counter of any CPU falls."""
import os
import subprocess

from lib import DATA, GAP, KEY, MS, TOP, Moted, Rows, check, room, run, skip, work_dir

ONLINE = "/sys/devices/system/cpu/cpu1/online"


def stand_in(work):
    path = os.path.join(work, "step.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path,
                    os.path.join(TOP, "tests/preload/step_clock.c")], check=True)
    return path


class Watch:
    """One moted and the updates of its cpu and self streams."""

    def __init__(self, streams="cpu,self,process", **more):
        self.moted = Moted(config=room(), **more)
        self.client = self.moted.client(f"subscribe {streams} interval=200ms")
        self.rows, self.updates = Rows(self.client), []
        self.streams = {s.name: s for s in self.client.streams.values()}

    def watch(self, seconds):
        """The updates of the next seconds: (frame, {stream: rows}) each."""
        found = []
        for frame in self.client.frames(seconds):
            if frame.type != DATA:
                continue
            self.rows.take(frame)
            if not frame.flags & KEY:
                found.append((frame, dict(self.rows.rows[frame.name])))
        self.updates += found
        return found

    def gaps(self):
        return self.rows.row("self")["mote_gaps_total"]


def gap_frames(updates, name):
    """The updates with GAP; one may be several frames."""
    return sorted({frame.sequence for frame, _ in updates if frame.name == name and frame.flags & GAP})


def busy(stream, row):
    return sum(row[stream.fields.index(f)] for f in ("user", "nice", "system", "irq", "softirq", "steal"))


def fastest(watch, updates):
    """The highest and lowest rate of busy CPU time that header times give, in CPUs, of ticks on schedule."""
    stream, last, rates = watch.streams["cpu"], None, []
    for frame, rows in updates:
        if frame.name != "cpu" or frame.time % (200 * MS):
            last = None if frame.name == "cpu" else last
            continue
        now = frame.time, busy(stream, rows["total",])
        if last:
            rates.append((now[1] - last[1]) / (now[0] - last[0]))
        last = now
    return max(rates), min(rates)


def disturbed(updates):
    """Whether the machine was too busy for the schedule, which makes gaps of its own."""
    times = [f.time for f, _ in updates if f.name == "cpu"]
    return any(abs(b - a - 200 * MS) > 50 * MS for a, b in zip(times, times[1:]))


def step(watch, what, path, seconds):
    """A clock moves; one gap is marked and nothing else happens."""
    for attempt in range(1, 5):
        before, quiet = watch.gaps(), watch.watch(1)
        write(path, str(seconds * attempt))
        updates = watch.watch(2)
        if not disturbed(quiet + updates):
            break
    for name in ("cpu", "process"):
        marked = gap_frames(updates, name)
        check(f"{what}: one update of {name} has GAP", len(marked) == 1, f"{marked} of {len(updates)}")
    check(f"{what}: mote_gaps_total grows by one", watch.gaps() == before + 1, f"{before} {watch.gaps()}")
    check(f"{what}: there was no gap before", not gap_frames(quiet, "cpu"), gap_frames(quiet, "cpu"))
    times = [f.time for f, _ in updates if f.name == "cpu"]
    steps = [b - a for a, b in zip(times, times[1:])]
    check(f"{what}: the schedule goes on at 200 ms", len(times) >= 8 and abs(sorted(steps)[len(steps) // 2] - 200 * MS) < 10 * MS,
          steps)


def write(path, text):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(path + ".new", path)


def steps():
    work = work_dir()
    real, boot = os.path.join(work, "real"), os.path.join(work, "boot")
    watch = Watch(env={"LD_PRELOAD": stand_in(work), "MOTE_STEP_REALTIME": real, "MOTE_STEP_BOOTTIME": boot})
    watch.watch(1.5)
    step(watch, "the wall clock steps by an hour", real, 3600)
    step(watch, "it steps back by more than a day", real, -86400)
    step(watch, "a suspend of ten minutes", boot, 600)
    cpus = os.cpu_count()
    high, low = fastest(watch, watch.updates)
    # /proc/stat counts in ticks of 10 ms; 200 ms are 20 of them.
    check(f"no rate that header times give exceeds what {cpus} CPUs can do, and none is negative",
          low >= 0 and high <= cpus * 1.15, f"{low} to {high}")
    check("ends in order", watch.moted.stop() == 0, watch.moted.log())


def small_steps():
    """Slew and steps that a clock is disciplined with are no gap."""
    work = work_dir()
    watch = Watch(streams="cpu,self", env={"LD_PRELOAD": stand_in(work)})
    updates = watch.watch(3)
    if disturbed(updates):
        updates = watch.watch(3)
    check("clocks that do not step mark no gap", not gap_frames(updates, "cpu"), gap_frames(updates, "cpu"))
    watch.moted.stop()


def set_online(value):
    with open(ONLINE, "w", encoding="ascii") as file:
        file.write(value)


def cpu_goes_and_comes():
    name = "a CPU that goes away and comes back"
    try:
        set_online("0")
    except OSError as error:
        skip(name, f"CPU 1 cannot be taken offline: {error.strerror}")
        return
    try:
        with open("/proc/stat", encoding="ascii") as file:
            if any(line.startswith("cpu1 ") for line in file):
                skip(name, "CPU 1 cannot be taken offline: it stays")
                return
        watch = Watch(streams="cpu")
        stream = watch.streams["cpu"]
        watch.watch(1.2)
        check("moted starts while a CPU is offline", watch.updates and ("0",) in watch.rows.rows["cpu"])
        online = watch.rows.row("cpu", "total")["online"]
        one = watch.rows.row("cpu", "1")
        check("it is not counted, and not shown as online", online == os.cpu_count() and (not one or one["online"] == 0), one)
        set_online("1")
        watch.watch(1.5)
        one = watch.rows.row("cpu", "1")
        check("it is there when it is back", one and one["online"] == 1
              and watch.rows.row("cpu", "total")["online"] == online + 1, one)
        set_online("0")
        watch.watch(1.5)
        set_online("1")
        watch.watch(1.5)
        fell = falls(stream, watch.updates)
        check("no counter of a CPU or of the total fell meanwhile", not fell, fell[:5])
        high, low = fastest(watch, watch.updates)
        check("no rate of the total exceeds capacity", low >= 0 and high <= (online + 1) * 1.15, f"{low} {high}")
        watch.moted.stop()
    finally:
        set_online("1")


def falls(stream, updates):
    last, fell = {}, []
    for frame, rows in updates:
        for key, row in rows.items():
            before = last.get(key, row)
            fell += [(frame.sequence, key, stream.fields[i], before[i], row[i]) for i in stream.counters
                     if None not in (before[i], row[i]) and row[i] < before[i]]
            last[key] = row
    return fell


def main():
    steps()
    small_steps()
    if os.geteuid() != 0:
        skip("a CPU that goes away and comes back", "needs root")
        return
    cpu_goes_and_comes()


run(main)
