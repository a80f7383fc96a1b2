#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# alone: makes thousands of cgroups
"""Cgroups natively: values beside those of cgroupfs (tests/helpers/cgroupdiff.c), a thousand made and removed
a second, who polls, the bound on rows and its `other`, filters."""
import os
import subprocess
import threading
import time

from lib import BUILD, DATA, KEY, MORE, TOP, Moted, Rows, cgroup_root, check, run, skip, spawn

NAME = f"mote-it-{os.getpid()}"
CHURN = f"churn-{os.getpid()}-"
RATE = 1000
SECONDS = float(os.environ.get("CHURN", "4"))


class Group:
    """A cgroup of our own, and what is below it: gone at the end."""

    def __init__(self, *below):
        self.path = os.path.join(ROOT, NAME, *below)
        os.makedirs(self.path, exist_ok=True)
        self.name = self.path[len(ROOT):]

    def read(self, name):
        with open(os.path.join(self.path, name), encoding="ascii") as file:
            return file.read()


def remove(path):
    for folder, _, _ in os.walk(path, topdown=False):
        for _ in range(50):
            try:
                os.rmdir(folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.02)


def differ():
    for source in ("files", "iterator"):
        ran = subprocess.run([os.path.join(BUILD, "tests/helpers/cgroupdiff"), os.path.join(BUILD, "moted"), source,
                              "here", "120"], capture_output=True, text=True, timeout=100, check=False)
        if "no fentry" in ran.stdout:
            continue
        lines = [line for line in ran.stdout.splitlines() if line.startswith(("ok", "not ok"))]
        check(f"{source}: as cgroupfs says, in {len(lines)} checks", ran.returncode == 0 and len(lines) >= 5,
              ran.stdout + ran.stderr)


def table(client, name):
    """A row of the table stream, as of now; no table of that name: {}"""
    client.send("poll table")
    rows = Rows(client)
    while True:
        frame = client.wait(lambda f: f.type == DATA and f.name == "table")
        rows.take(frame)
        if not frame.flags & MORE:
            return rows.row("table", name) or {}


def churn_for(seconds, made):
    """Makes and removes cgroups at RATE; counts those in made[0]."""
    began = time.monotonic()
    while (past := time.monotonic() - began) < seconds:
        while made[0] < past * RATE:
            path = os.path.join(ROOT, NAME, f"{CHURN}{made[0]}")
            os.mkdir(path)
            os.rmdir(path)
            made[0] += 1
        time.sleep(0.002)


def descriptors(moted):
    """Those that do not come and go with the host's processes."""
    return {fd for fd, what in moted.fds().items() if not what.startswith("/proc/")}


def churn(what, *args, config=None):
    Group()
    moted = Moted(*args, config=config)
    client = moted.client("subscribe cgroup,cgroup_event interval=250ms")
    other = moted.client()
    list(client.frames(1))
    before, fill = descriptors(moted), table(other, "cgroups").get("fill")
    made, kinds, ids = [0], {"created": 0, "removed": 0}, set()
    worker = threading.Thread(target=churn_for, args=(SECONDS, made))
    worker.start()
    until = time.monotonic() + SECONDS + 60
    stream = next(s for s in client.streams.values() if s.name == "cgroup_event")
    quiet = time.monotonic()
    while time.monotonic() < until and (worker.is_alive() or time.monotonic() < quiet + 2):
        frame = client.frame(0.2)
        if not frame or frame.type != DATA or frame.name != "cgroup_event":
            continue
        for row in map(stream.dict, frame.rows):
            if row["name"].startswith(CHURN):
                kinds[row["type"]] += 1
                ids.add(row["id"])
                quiet = time.monotonic()
    worker.join()
    dropped = table(other, "cgroup_event_buffer").get("dropped")
    check(f"{what}: {made[0]} made in {SECONDS} s, {kinds['created']} + {kinds['removed']} told of, {dropped} dropped",
          made[0] >= RATE * SECONDS * 0.5 and sum(kinds.values()) + dropped == 2 * made[0], (made, kinds, dropped))
    list(client.frames(1))
    check(f"{what}: no more descriptors than before", descriptors(moted) == before, (before, moted.fds()))
    check(f"{what}: no more rows than before", table(other, "cgroups").get("fill") == fill,
          (fill, table(other, "cgroups")))
    lines = [line for line in moted.log().splitlines() if "cgroup" in line and ": files" not in line and
             "cgroup_events: " not in line]
    check(f"{what}: not a line in the log", not lines, "\n".join(lines))
    client.close()
    other.close()
    check(f"{what}: moted ends with 0", moted.stop() == 0, moted.log())
    remove(os.path.join(ROOT, NAME))


def collections(client):
    client.send("poll self")
    frame = client.wait(lambda f: f.type == DATA and f.name == "self")
    stream = client.streams[frame.stream]
    return stream.dict(frame.rows[0])["mote_cgroup_collections_total"]


def polling():
    moted = Moted(config={"cgroup": {"freshness": "1s"}})
    clients = [moted.client() for _ in range(11)]
    watch = moted.client()
    before = collections(watch)
    for client in clients:
        client.send("poll cgroup")
    got = [client.wait(lambda f: f.type == DATA and f.name == "cgroup", 10) for client in clients]
    check("11 who poll at once all have a keyframe with rows", all(f and f.flags & KEY and f.rows for f in got), got)
    after = collections(watch)
    check(f"what they have was collected once ({after - before})", after - before == 1)
    time.sleep(2.5)
    check("nothing is collected when nobody asks", collections(watch) == after, (after, collections(watch)))
    clients[0].send("poll cgroup")
    clients[0].wait(lambda f: f.type == DATA and f.name == "cgroup", 10)
    check("who polls later has it collected anew", collections(watch) == after + 1, (after, collections(watch)))
    check("moted ends with 0", moted.stop() == 0, moted.log())


def rows_of(moted, field="path"):
    """{path: row}"""
    client = moted.client("poll cgroup")
    rows = Rows(client)
    while True:
        frame = client.wait(lambda f: f.type == DATA and f.name == "cgroup", 10)
        rows.take(frame)
        if not frame.flags & MORE:
            break
    stream = client.streams[frame.stream]
    client.close()
    return {row[field]: row for row in map(stream.dict, rows.rows["cgroup"].values())}


def bounded():
    """More cgroups than rows: those that find none are summed, and counted."""
    groups = [Group("many", f"m{i}") for i in range(40)]
    # exec comes after: the memory is of the cgroup it is in then
    sleepers = [spawn("sh", "-c", f"echo 0 >{group.path}/cgroup.procs && exec sleep 1000") for group in groups]
    time.sleep(0.5)
    moted = Moted(config={"tables": {"cgroups": 24}, "cgroup": {"source": "files"}})
    rows = rows_of(moted)
    client = moted.client()
    fill = table(client, "cgroups")
    check("24 rows and one for the others", len(rows) == 25 and "other" in rows, sorted(rows))
    check(f"and the rest is counted ({fill['dropped']})", fill["size"] == fill["fill"] == 24 and fill["dropped"] >= 20,
          fill)
    if os.path.exists(os.path.join(groups[0].path, "memory.stat")):
        def anon(group):
            words = dict(line.split() for line in group.read("memory.stat").splitlines())
            return int(words.get("total_rss", words.get("anon")))
        missing = [group for group in groups if group.name not in rows]
        want, got = sum(map(anon, missing)), rows["other"]["anon"]
        check(f"`other` is the sum of the {len(missing)} that have no row, and of what is not ours", got >= want > 0,
              (got, want))
    check("moted ends with 0", moted.stop() == 0, moted.log())
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()
    remove(os.path.join(ROOT, NAME))


def levels():
    """Fewer rows than cgroups of many levels: `other` has each cgroup's use once, as kernel 6.1's iterator sums it."""
    unified = cgroup_root("cgroup2")
    if not unified:
        skip("levels of cgroups", "cgroup version 2 is not mounted")
        return
    paths, top = [], os.path.join(unified, NAME)
    for i in range(12):
        paths += [os.path.join(top, *f"a{i}/b/c/d".split("/")[:n]) for n in range(1, 5)]
    for path in paths:
        os.makedirs(path, exist_ok=True)
    sleepers = [spawn("sh", "-c", f"echo 0 >{path}/cgroup.procs && exec sleep 1000") for path in paths]
    time.sleep(0.5)
    moted = Moted(config={"tables": {"cgroups": 16},
                          "cgroup": {"source": "iterator", "include": f"/{NAME}/*", "listing": "1s"}})
    rows = rows_of(moted)
    other = rows["other"]
    missing = [path for path in paths if path[len(unified):] not in rows]
    tops = [path for path in missing if os.path.dirname(path) not in missing]

    def usage(path):
        with open(os.path.join(path, "cpu.stat"), encoding="ascii") as file:
            words = dict(line.split() for line in file)
        return [int(words[name]) for name in ("usage_usec", "user_usec", "system_usec")]
    want = list(map(sum, zip(*map(usage, tops))))
    got = [other[name] // 1000 for name in ("cpu_usage", "cpu_user", "cpu_system")]
    check(f"{len(missing)} without a row, below {len(tops)}: their threads", len(missing) == len(paths) - 16 and
          other["threads"] == len(missing), (other, missing))
    check("and their CPU time, once", abs(got[0] - want[0]) <= len(tops) and
          abs(got[1] + got[2] - got[0]) <= 2 * len(tops), (got, want))
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()
    for path in {os.path.dirname(os.path.dirname(os.path.dirname(path))) for path in paths if path[-1] == "d"}:
        if path not in missing:
            remove(path)
    for _ in range(15):
        time.sleep(0.6)
        rows = rows_of(moted)
        if len(rows) == 17:
            break
    check("a line says that there were too few, once", moted.log().count("raise [tables] cgroups") == 1, moted.log())
    check("rows that become free are given to those that had none", len(rows) == 17 and
          any(path[len(unified):] in rows for path in missing), sorted(rows))
    check("moted ends with 0", moted.stop() == 0, moted.log())
    remove(top)


def filtered():
    for name in ("a/x", "a/y", "b/z/deep"):
        Group(*name.split("/"))
    moted = Moted(config={"cgroup": {"include": f"/{NAME}", "exclude": "*/y", "depth": 3}})
    paths = set(rows_of(moted))
    base = f"/{NAME}"
    check("include, exclude and depth", paths == {base, base + "/a", base + "/a/x", base + "/b", base + "/b/z"}, paths)
    late = Group("b", "late")
    gone = os.path.join(ROOT, NAME, "a", "x")
    os.rmdir(gone)
    time.sleep(1.2)
    paths = set(rows_of(moted))
    check("one that is new has a row, one that is gone has none", late.name in paths and base + "/a/x" not in paths,
          paths)
    check("moted ends with 0", moted.stop() == 0, moted.log())
    remove(os.path.join(ROOT, NAME))


def event_rows(client, n):
    """Of the stream cgroup_event, until there are n of this test's cgroups, or for 5 s."""
    rows = []
    for frame in client.frames(5):
        if frame.type == DATA and frame.name == "cgroup_event":
            rows += [row for row in map(client.streams[frame.stream].dict, frame.rows) if NAME in str(row)]
        if len(rows) >= n:
            break
    return rows


def events_alone():
    """Who subscribes to cgroup_event and nothing else has paths, too."""
    unified = cgroup_root("cgroup2")
    for source, root in (("iterator", unified), ("files", ROOT)):
        if not root:
            skip(f"{source}: events alone", "cgroup version 2 is not mounted")
            continue
        moted = Moted(config={"cgroup": {"source": source}})
        client = moted.client("subscribe cgroup_event interval=200ms")
        list(client.frames(0.5))
        path = os.path.join(root, NAME, "pod", "container")
        os.makedirs(path)
        rows = event_rows(client, 3)
        remove(os.path.join(root, NAME, "pod"))
        rows += event_rows(client, 2)
        gone = [row["path"] for row in rows if row["type"] == "removed"]
        check(f"{source}: also of what is gone with what it was in", gone == [f"/{NAME}/pod/container", f"/{NAME}/pod"],
              rows)
        got = [row["path"] for row in rows if row["type"] == "created"]
        check(f"{source}: events alone have paths", f"/{NAME}/pod" in got and f"/{NAME}/pod/container" in got,
              rows)
        check("moted ends with 0", moted.stop() == 0, moted.log())
        remove(os.path.join(root, NAME))


def namespaced():
    """In a cgroup namespace, as a container has it, the root of the walk is not that of the hierarchy."""
    unified = cgroup_root("cgroup2")
    if not unified:
        skip("a cgroup namespace", "cgroup version 2 is not mounted")
        return
    outer = os.path.join(unified, NAME)
    os.makedirs(os.path.join(outer, "inner", "deep"), exist_ok=True)
    join = f'echo 0 >{outer}/cgroup.procs && exec unshare -C -m '
    mount = f"sh -c 'umount {unified} && mount -t cgroup2 none {unified} && exec \"$@\"' sh "
    for what, more, top in (("its own mount", mount, "/"), ("the mount of the host", "", f"/{NAME}")):
        moted = Moted(config={"cgroup": {"source": "iterator"}}, wrap=("sh", "-c", f'{join}{more}"$@"', "sh"))
        rows = rows_of(moted)
        base = top.rstrip("/")
        want = {top, f"{base}/inner", f"{base}/inner/deep"}
        check(f"in a cgroup namespace with {what} the rows are those of the mount", want <= set(rows) and
              (more == "" or want == set(rows)), sorted(rows))
        mine = rows.get(top) or {}
        check(f"with {what}: where it begins has the use of its processes", (mine.get("cpu_usage") or 0) > 0 and
              mine.get("cpu_user") is not None and mine.get("threads", 0) > 0, mine)
        check("moted ends with 0", moted.stop() == 0, moted.log())
    remove(outer)


def main():
    if os.geteuid() != 0 or not ROOT or not os.access(ROOT, os.W_OK):
        skip("cgroups", "needs root and cgroupfs")
        return
    try:
        differ()
        churn("BPF")
        churn("inotify", "--probes", "none")
        polling()
        bounded()
        levels()
        filtered()
        events_alone()
        namespaced()
    finally:
        for root in {ROOT, cgroup_root("cgroup2") or ROOT}:
            remove(os.path.join(root, NAME))


ROOT = cgroup_root()
run(main)
