#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What moted has when it is up, and what it makes of descriptors that were closed by who started it."""
import os
import signal
import subprocess
import time

from lib import BUILD, Moted, Rows, cgroup_root, check, run, skip, spawn, work_dir

MOTED, MOTE = os.path.join(BUILD, "moted"), os.path.join(BUILD, "mote")


def capabilities(pid):
    """{thread: its effective and permitted set}, workers of the ring too."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        found[fields["Name"].strip()] = fields["CapEff"].strip(), fields["CapPrm"].strip()
    return found


def no_capabilities():
    for engine in "uring", "sync":
        moted = Moted("--engine", "auto" if engine == "uring" else engine)
        moted.client("subscribe all interval=100ms\n")
        time.sleep(1)  # workers are made by then
        kept = {name: sets for name, sets in capabilities(moted.pid).items() if any(int(s, 16) for s in sets)}
        check(f"{engine}: no thread holds a capability", not kept, kept)
        check(f"{engine}: SIGTERM ends it with 0", moted.stop() == 0)


def resident(pid):
    """KiB of the program that are mapped for reading and running alone."""
    exe, kib, mine = os.readlink(f"/proc/{pid}/exe"), 0, False
    with open(f"/proc/{pid}/smaps", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if "-" in words[0]:
                mine = words[-1] == exe and words[1].startswith("r-") and words[2] != "00000000"
            elif mine and words[0] == "Rss:":
                kib += int(words[1])
    return kib


def what_the_start_ran():
    """Its code and constants are a megabyte, most of it BPF objects; see supervisor/start.ld."""
    most = 208 + os.sysconf("SC_PAGESIZE") // 64
    for options in (), ("--engine", "sync"), ("--probes", "none"):
        moted = Moted(*options)
        client = moted.client("subscribe all interval=100ms\n")
        client.send("poll all")
        for _ in client.frames(1):
            pass
        kib = resident(moted.pid)
        check(f"{' '.join(options) or 'default'}: what the start alone needs is gone, {kib} KiB are left", 100 < kib < most)
        moted.stop()


def closed_descriptors():
    moted = Moted(wrap=("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-'))
    fds = moted.fds()
    check("closed: 0, 1 and 2 are nothing else", [fds.get(fd) for fd in range(3)] == ["/dev/null"] * 3, fds)
    for command in "dump --frames 1", "stats", "schema":
        done = subprocess.run(f"'{MOTE}' {command} --socket '{moted.path}' >&-", shell=True, capture_output=True,
                              timeout=20, check=False)
        check(f"closed: mote {command} says so", done.returncode == 1 and b"cannot write the output" in done.stderr, done)
    moted.stop()


def full_output():
    for command in "--help", "--version", "--check", "--check --json":
        done = subprocess.run(f"'{MOTED}' {command} >/dev/full", shell=True, capture_output=True, timeout=20, check=False)
        check(f"full: moted {command} says so", done.returncode == 1 and done.stderr.count(b"\n") == 1, done)


def signals():
    moted = Moted()
    moted.process.send_signal(signal.SIGHUP)
    check("SIGHUP: ends with 0, the socket is gone", moted.process.wait(10) == 0 and not os.path.exists(moted.path))
    moted = Moted(wrap=("nohup",))
    moted.process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    check("SIGHUP, ignored: nothing ends", moted.process.poll() is None)
    for _ in range(3):  # right after the socket is there
        path = os.path.join(work_dir(), "s")
        process = spawn(MOTED, "--socket", path)
        until = time.monotonic() + 20
        while not os.path.exists(path) and time.monotonic() < until:
            pass
        process.terminate()
        check("SIGTERM at start: ends with 0, the socket is gone", process.wait(10) == 0 and not os.path.exists(path))


def says(moted, tier):
    """Whether one line of its log says what of this is left out for want of descriptors."""
    lines = [line for line in moted.log().splitlines() if line.startswith(f"moted: {tier}: ")]
    return len(lines) == 1 and "LimitNOFILE" in lines[0]


def cgroups_with_few():
    """Below 128 there are none; with some more all are there, but their files are not kept open."""
    moted = Moted(wrap=("prlimit", "--nofile=100:100"))
    check("few open files: one line says that there are no cgroups", says(moted, "cgroups"), moted.log())
    moted.stop()
    root, name = cgroup_root(), f"mote-it-{os.getpid()}-"
    if os.geteuid() != 0 or not root or not os.access(root, os.W_OK):
        skip("few open files: cgroups", "needs root and cgroupfs")
        return
    made = [os.path.join(root, f"{name}{i}") for i in range(40)]
    try:
        for path in made:
            os.mkdir(path)
        for limit in 140, 300, 600:
            cgroups_read(limit, "/" + name, len(made))
    finally:
        for path in filter(os.path.isdir, made):
            os.rmdir(path)


def cgroups_read(limit, prefix, count):
    moted = Moted("--probes", "none", wrap=("prlimit", f"--nofile={limit}:{limit}"))
    client = moted.client("subscribe cgroup,self interval=100ms")
    rows = Rows(client)
    for frame in client.frames(2):
        rows.take(frame)
    stream = client.streams[client.ids["cgroup"]]
    found = [row for row in map(stream.dict, rows.rows["cgroup"].values()) if (row["path"] or "").startswith(prefix)]
    errors, fds = rows.row("self")["mote_read_errors_total"], moted.fds()
    check(f"{limit} open files: all cgroups are there and no read failed; {len(fds)} are open", len(found) == count and
          all(row["memory_current"] is not None or row["cpu_usage"] is not None for row in found) and errors == 0 and len(fds) < limit - 16,
          (len(found), found[:1], errors, len(fds)))
    check(f"{limit} open files: one line says that not all of cgroupfs is kept open", says(moted, "cgroup_files"),
          moted.log())
    moted.stop()


def few_descriptors():
    moted = Moted("--probes", "none", wrap=("prlimit", "--nofile=300:300"))
    check("few open files: one line says that the table is smaller", says(moted, "process_table"), moted.log())
    moted.stop()
    done = subprocess.run(["prlimit", "--nofile=20:20", MOTED, "--socket", os.path.join(work_dir(), "s")],
                          capture_output=True, timeout=20, check=False)
    check("hardly any open files: ends with 1 and says what to do",
          done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"LimitNOFILE" in done.stderr, done)
    cgroups_with_few()


def main():
    no_capabilities()
    what_the_start_ran()
    closed_descriptors()
    full_output()
    signals()
    few_descriptors()


run(main)
