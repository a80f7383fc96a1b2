#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""An ordinary user's moted (E6): with /proc as it is it sees every process, with hidepid=2 only its
own; what it cannot have is nil, never 0, and the hello frame says why. Root without BPF works too."""
import os
import subprocess
import time

from lib import DATA, KEY, MORE, Moted, Rows, check, room, run, skip, spawn

UID = 65534
# In front of moted: it may make its socket, and is found where the user may look.
PREPARE = 'd=${3%/*}; chown {uid} "$d" && cp "$1" "$d/moted" && chmod 755 "$d/moted" && shift && ' \
          'exec setpriv --reuid={uid} --regid={uid} --clear-groups "$d/moted" "$@"'.replace("{uid}", str(UID))
AS_USER = ("sh", "-c", PREPARE, "sh")
HIDDEN = ("unshare", "-m", "sh", "-c", f"mount -t proc -o hidepid=2 proc /proc && {PREPARE}", "sh")


class Seen:
    """What one moted says after a few samples."""

    def __init__(self, name, *args, wrap=()):
        self.name = name
        self.moted = Moted(*args, wrap=wrap, config=room())
        client = self.moted.client("subscribe all interval=500ms")
        self.hello, rows = client.hello, Rows(client)
        until, self.frames = time.monotonic() + 4, 0
        while time.monotonic() < until:
            frame = client.frame(max(0, until - time.monotonic()))
            if frame:
                rows.take(frame)
                self.frames += frame.type == DATA and not frame.flags & (KEY | MORE)
        self.streams = {s.name: s for s in client.streams.values()}
        self.rows = {n: [self.streams[n].dict(r) for r in rows.rows[n].values()] for n in rows.rows}
        self.processes = {r["pid"]: r for r in self.rows["process"]}
        self.absent = {}
        for stream, field, why in self.hello["absent"]:
            self.absent.setdefault(stream, {})[field] = why

    def said(self):
        """A field that no process with memory has is absent with a reason, and the other way round."""
        absent = self.absent.get("process", {})
        rows = [r for r in self.rows["process"] if r["vsize"]]
        silent = [f for f in self.streams["process"].fields
                  if all(r[f] is None for r in rows) and f not in absent and "*" not in absent]
        given = [(f, r["pid"], r[f]) for r in rows for f in absent if f != "*" and r[f] is not None]
        check(f"{self.name}: a field that nobody has is named in hello, with a reason",
              rows and not silent and all(absent.values()), f"{silent} {absent}")
        check(f"{self.name}: the {len(absent)} fields so named are nil in every row", not given, given[:5])

    def host(self):
        names = [n for n in ("cpu", "memory", "vm", "load", "kernel", "disk", "netdev") if not self.rows[n]]
        check(f"{self.name}: the host streams are there", not names and self.frames > 30, f"{names} {self.frames}")

    def own(self, pid):
        """The process of this user's is known as a whole."""
        row = self.processes.get(pid)
        absent = self.absent.get("process", {})
        check(f"{self.name}: a process of the user's own has every field but those",
              row and row["uid"] == UID and row["comm"] == "sleep" and row["argv"] == ["sleep", "97"]
              and row["vsize"] > 0 and row["rss"] > 0 and all(row[f] is not None for f in row if f not in absent),
              row)

    def stop(self):
        check(f"{self.name}: ends in order", self.moted.stop() == 0, self.moted.log())


def io_of(seen, pid, user):
    """rchar and its like of another user's process may not be read: nil, not 0."""
    row = seen.processes.get(pid)
    fields = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")
    check(f"{seen.name}: what root's process read and wrote is nil to {user}, and the rest is there",
          row and row["uid"] == 0 and all(row[f] is None for f in fields) and row["vsize"] > 0
          and row["minflt"] > 0 and row["threads"] == 1, row)


def main():
    if os.geteuid() != 0:
        skip("hidepid", "needs root")
        return
    if subprocess.run(["unshare", "-m", "mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"],
                      check=False, capture_output=True).returncode:
        skip("hidepid", "may not mount proc here")
        return
    own = spawn("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "sleep", "97").pid
    other = spawn("sleep", "98").pid

    seen = Seen("user, hidepid=2", wrap=HIDDEN)
    alien = [r for r in seen.rows["process"] if r["uid"] != UID]
    check(f"{seen.name}: it sees its own processes and no other", seen.processes and not alien
          and seen.moted.pid in seen.processes and other not in seen.processes, alien[:3])
    seen.own(own)
    seen.said()
    seen.host()
    seen.stop()

    seen = Seen("user", wrap=AS_USER)
    check(f"{seen.name}: it sees other users' processes", other in seen.processes and 1 in seen.processes
          and len({r["uid"] for r in seen.rows["process"]}) > 1, sorted(seen.processes)[:10])
    seen.own(own)
    io_of(seen, other, "others")
    seen.said()
    seen.host()
    tier = next((t for t in seen.hello["tiers"] if t[2] and "process" in t[0]), None)
    check(f"{seen.name}: the tiers say why", tier, seen.hello["tiers"])
    seen.stop()

    seen = Seen("root without BPF", "--probes", "none")
    row = seen.processes.get(other)
    check(f"{seen.name}: every process is there", row and row["uid"] == 0 and 1 in seen.processes
          and own in seen.processes and row["argv"] == ["sleep", "98"], row)
    seen.said()
    seen.host()
    seen.stop()


run(main)
