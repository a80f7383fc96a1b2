#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Fields are absent only where docs/AVAILABILITY.md says so: moted in every tier that this host has,
what its hello frame names as absent and what its rows lack, compared with the table. vmtests/availability
does the same on other kernels."""
import copy
import os
import socket
import subprocess
import threading
import time

from absence import Seen, faults, misfits, never_seen, table, unknown
from lib import DATA, Moted, check, run, skip

UID = 65534
# In front of moted: it may make its socket, and is found where the user may look.
PREPARE = 'd=${3%/*}; chown {uid} "$d" && cp "$1" "$d/moted" && chmod 755 "$d/moted" && shift && ' \
          'exec setpriv --reuid={uid} --regid={uid} --clear-groups "$d/moted" "$@"'.replace("{uid}", str(UID))
# And nobody but root may open these.
MASKED = ("stat", "meminfo", "vmstat", "loadavg", "diskstats", "pressure/cpu")
MASK = 'm=${3%/*}/mask; : >"$m"; chmod 600 "$m"; for f in ' + " ".join(MASKED) + \
       '; do [ ! -e /proc/$f ] || mount --bind "$m" /proc/$f; done; '
SECONDS = 1.6  # at least; PATIENCE at most, until all streams have had rows
PATIENCE = 10
MINIMAL = {"mode": "minimal", "process": "iterator", "network": "bpf"}

# name, arguments, configuration, tiers that it must be in
TIERS = (
    ("as it is", (), {}, {"process": "iterator", "events": "tracepoint", "mode": "standard", "network": "bpf"}),
    ("engine = sync", ("--engine", "sync"), {}, {"process": "iterator", "events": "tracepoint"}),
    ("mode = minimal", ("--mode", "minimal"), {}, MINIMAL),
    ("source = proc", (), {"process": {"source": "proc"}}, {"process": "proc", "events": "tracepoint"}),
    ("events = tp_btf", (), {"process": {"events": "tp_btf"}}, {"process": "iterator", "events": "tp_btf"}),
    ("events = connector", (), {"process": {"events": "connector"}}, {"process": "iterator", "events": "connector"}),
    ("events = off", (), {"process": {"events": "off"}}, {"process": "iterator", "events": "none"}),
    ("probes = none", ("--probes", "none"), {}, {"process": "proc", "network": "none"}),
    ("an ordinary user", (), {}, {"process": "proc", "network": "none"}),
    ("files masked", (), {}, {"process": "proc"}),
)
WITHOUT_BPF = ("probes = none", "an ordinary user", "files masked")
WRAPS = {"an ordinary user": ("sh", "-c", PREPARE, "sh"),
         "files masked": ("unshare", "-m", "sh", "-c", MASK + PREPARE, "sh")}
INIT_PID_NS = "pid:[4026531836]"


class Counts:
    """How many rows of a stream came, and in how many each field was nil."""

    def __init__(self, fields):
        self.fields, self.rows, self.nil = fields, 0, [0] * len(fields)

    def take(self, rows):
        self.rows += len(rows)
        for row in rows:
            for i, value in enumerate(row):
                self.nil[i] += value is None

    def state(self):
        return {field: "given" if not nil else "nil" if nil == self.rows else "some"
                for field, nil in zip(self.fields, self.nil)}


def no_bpf():
    """Why the tiers with BPF cannot be had here, or "". What is had but does not work must fail."""
    if os.readlink("/proc/self/ns/pid") != INIT_PID_NS:
        return "in a pid namespace of its own"
    return "" if os.access("/sys/kernel/btf/vmlinux", os.R_OK) else "the kernel has no BTF"


def births(done):
    """Forks, execs and exits until then, and connections."""
    server, held = socket.create_server(("127.0.0.1", 0)), []
    while not done.wait(0.05):
        subprocess.run(["true"], check=True)
        held.append((socket.create_connection(server.getsockname()), server.accept()[0]))
        held[-1][0].sendall(b"x")
        if len(held) > 4:
            for one in held.pop(0):
                one.close()


def collect(client, counts):
    """Takes rows until every stream that is not absent has had some; a host may have no disk."""
    wanted = set(counts) - {stream for stream, field, _ in client.hello["absent"] if field == "*"} - {"disk"}
    began = time.monotonic()
    while True:
        frame = client.frame(0.1)
        if frame and frame.type == DATA:
            counts[frame.name].take(frame.rows)
        took = time.monotonic() - began
        if took > PATIENCE or took > SECONDS and all(counts[name].rows for name in wanted):
            return


def watch(name, args, config):
    """(what this moted said, its streams' fields, the engine)"""
    moted = Moted(*args, config=config, wrap=WRAPS.get(name, ()))
    client = moted.client("subscribe all interval=500ms")
    counts = {stream.name: Counts(stream.fields) for stream in client.streams.values()}
    done = threading.Event()
    busy = threading.Thread(target=births, args=(done,))
    busy.start()
    try:
        collect(client, counts)
    finally:
        done.set()
        busy.join()
    hello = client.hello
    seen = Seen(name, hello["host"]["kernel"], hello["mode"], {t: choice for t, choice, _ in hello["tiers"]},
                {(stream, field): reason for stream, field, reason in hello["absent"]})
    for stream, count in counts.items():
        seen.add(stream, count.rows, count.state())
    check(f"{name}: ends in order", moted.stop() == 0, moted.log())
    return seen, {stream.name: stream.fields for stream in client.streams.values()}, hello["engine"]


def names_of(path, separator):
    with open(path, encoding="ascii") as file:
        return [line.partition(separator)[0] for line in file]


def can_fail(lines, seen):
    """What the comparison is for is found: a copy of what was seen with one thing wrong."""
    for what, change, want in (
            ("a field that all rows lack", lambda s: s.state["memory"].update(MemTotal="nil"), "MemTotal: nil in all"),
            ("a field that some rows lack", lambda s: s.state["cpu"].update(user="some"), "user: nil in some"),
            ("a text that all rows lack", lambda s: s.state["process"].update(argv="nil"), "argv: nil in all"),
            ("a stream without rows", lambda s: s.rows.update(vm=0), "vm: no rows"),
            ("an absent field that is not in the table", lambda s: s.absent.update({("cpu", "user"): "x"}),
             "user: absent here, and not in"),
            ("an absence without a reason", lambda s: s.absent.update({("pressure", "*"): ""}), "without a reason"),
            ("an absent field that rows have", lambda s: s.absent.update({("cpu", "idle"): "x"}), "rows have it"),
            ("an absence that hello does not name", lambda s: s.tiers.update(process="proc"), "hello does not"),
            ("a field that the kernel cannot have", lambda s: setattr(s, "kernel", (5, 10)),
             "SecPageTables: the table")):
        wrong = copy.deepcopy(seen)
        change(wrong)
        found = faults(lines, wrong)
        check(f"the comparison finds {what}", any(want in fault for fault in found), found)


def compare(lines, seen, tiers):
    check(f"{seen.name}: is in the tier that is meant", tiers.items() <= seen.tiers.items(), seen.tiers)
    found = faults(lines, seen)
    check(f"{seen.name}: {len(seen.absent)} absent, {sum(seen.rows.values())} rows: as the table says", not found,
          "\n".join(found))
    found = misfits(seen, "memory", names_of("/proc/meminfo", ":")) + misfits(seen, "vm", names_of("/proc/vmstat", " "))
    check(f"{seen.name}: memory and vm have what the kernel's text has", not found, "\n".join(found))


def same(a, b):
    """An engine makes no difference: the same is absent, and nil in all rows."""
    def nil(seen):
        return {(stream, field) for stream, fields in seen.state.items() for field in fields
                if seen.rows[stream] and fields[field] == "nil"}
    check("both engines leave the same out", a.absent == b.absent and nil(a) == nil(b), nil(a) ^ nil(b))


def main():
    if os.geteuid() != 0:
        skip("availability", "needs root")
        return
    lines, seens, engines, why = table(), {}, {}, no_bpf()
    for name, args, config, tiers in TIERS:
        if why and name not in WITHOUT_BPF:
            skip(name, why)
            continue
        seen, schema, engines[name] = watch(name, args, config)
        if not seens:
            found = unknown(lines, schema)
            check("every name in the table is a stream's or a field's", not found, found)
        seens[name] = seen
        compare(lines, seen, tiers)
    found = never_seen(lines, seens.values())
    check("what is nil in some rows was seen", not found, "\n".join(found))
    if not why:
        check("engine = sync is in use", engines["engine = sync"] == "sync", engines)
        same(seens["as it is"], seens["engine = sync"])
        can_fail(lines, seens["as it is"])
    masked = seens["files masked"].absent
    check("masked files: what comes from them is absent, all of it",
          {s for s, f in masked if f == "*"} >= {"cpu", "kernel", "memory", "vm", "load", "disk"}, masked)


run(main)
