# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The measurements of bench/run: each returns what goes into bench.json."""
import concurrent.futures
import json
import os
import signal
import statistics
import subprocess
import time

import agent
import facts
from agent import Failure, Floor, Moted, sleepers

WINDOW = 3  # ticks


def windows(ns):
    """Minimum and median, in us, of the means of windows of ticks; fewer ticks are one each."""
    size = WINDOW if len(ns) >= 2 * WINDOW else 1
    means = [statistics.fmean(ns[i:i + size]) / 1000 for i in range(0, len(ns) - size + 1, size)]
    return {"min": round(min(means), 1), "median": round(statistics.median(means), 1),
            "windows": len(means)}


def frames(result, ticks):
    changed, key = result["changed"], result["key"]
    return {"key_bytes": key["bytes"], "key_rows": key["rows"], "key_frames": key["frames"],
            "changed_bytes": round(changed["bytes"] / ticks),
            "changed_rows": round(changed["rows"] / ticks, 1),
            "changed_frames": round(changed["frames"] / ticks, 1),
            "ended": round(changed["ended"] / ticks, 1),
            "events": round(changed["events"] / ticks, 1)}


def cost(build, name, ticks, n=0, streams=agent.PROCESSES, floors=("wake", "files", "pooled", "open"),
         forks=0, awake_ms=0):
    """moted with one subscriber and, in the same ticks at other phases of the second, the floor."""
    config = agent.LARGE if n > 3000 else ""
    with sleepers(build, n, forks, awake_ms), Moted(build, config) as moted:
        moted.settle(n)
        row = {"name": name, "sleepers": n, "forks": forks, "awake_ms": awake_ms,
               "streams": streams, "processes": facts.processes()}
        floor = {}
        with moted.subscribe(1000, 3, ticks, streams) as subscriber:
            subscriber.wait_warm()
            running = [(mode, Floor(build, mode, ticks - 1, 200 + 180 * i))
                       for i, mode in enumerate(floors)]
            try:
                for mode, program in running:
                    program.__enter__()
                result = subscriber.result()
                for mode, program in running:
                    floor[mode] = windows(program.result())
            finally:
                for mode, program in running:
                    program.__exit__()
        row.update(moted_us=windows(result["cpu_ns"]), floor_us=floor,
                   delay_us={key: round(value / 1000) for key, value in result["delay_ns"].items()},
                   faults=result["faults"], ticks=ticks, frames=frames(result, ticks))
        if n == 1000 and not awake_ms:
            row["memory_kib"] = facts.memory(moted.pid)
            row["bpf_maps"] = list(moted.maps.values())
    return row


def memory(build):
    """What moted takes in both modes, beside the same processes, with network streams watched."""
    found = {}
    for mode in ("standard", "minimal"):
        with Moted(build, f"[mote]\nmode = {mode}\n") as moted:
            moted.settle(1000)
            with moted.subscribe(1000, 1, 3, agent.NETWORK) as subscriber:
                subscriber.result()
            found[mode] = {"memory_kib": facts.memory(moted.pid), "bpf_maps": list(moted.maps.values())}
    return found


def counts(build, ticks):
    """Enters, allocations and faults a tick, with every stream, in steady state."""
    with Moted(build, count_alloc=build + "/bench/count_alloc.so") as moted:
        moted.settle(1000)
        with moted.subscribe(1000, 3, ticks, agent.ALL) as subscriber:
            subscriber.wait_warm()
            before = moted.allocations()
            result = subscriber.result()
            allocations = moted.allocations() - before
        if not moted.allocations():
            raise Failure("the allocations of moted were not counted")
    return {"ticks": ticks, "enters": result["self"]["waits"], "self_ticks": result["self"]["ticks"],
            "overruns": result["self"]["overruns"], "late": result["self"]["late"],
            "allocations": allocations, "faults": result["faults"]}


def system_calls(build, ticks):
    """Every system call of the loop's thread, counted by strace while one subscriber is served."""
    with Moted(build) as moted:
        moted.settle(1000)
        with moted.subscribe(1000, 3, ticks + 3, agent.ALL) as subscriber:
            subscriber.wait_warm()
            time.sleep(0.5)  # between two ticks
            out = moted.dir.name + "/strace"
            tracer = subprocess.Popen(["strace", "-c", "-o", out, "-p", str(moted.pid)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(ticks)
            tracer.send_signal(signal.SIGINT)
            tracer.wait(20)
            subscriber.result()
        calls = {}
        with open(out) as file:
            for line in file:
                words = line.split()
                if len(words) >= 5 and words[0][0].isdigit() and words[-1] != "total":
                    calls[words[-1]] = int(words[3])
    return {"ticks": ticks, "calls": calls}


def interval(build, ms, ticks, warm=1):
    """CPU and delay at one interval, of a moted of its own."""
    with Moted(build) as moted:
        moted.settle(1000)
        with moted.subscribe(ms, warm, ticks, agent.PROCESSES) as subscriber:
            result = subscriber.result()
    return {"ms": ms, "ticks": ticks, "moted_us": windows(result["cpu_ns"]),
            "delay_us": {key: round(value / 1000) for key, value in result["delay_ns"].items()},
            "frames": frames(result, ticks)}


def encode(build, rows, rounds):
    with Moted(build) as moted:
        moted.settle(1000)
        out = subprocess.run([build + "/bench/encode", moted.socket, str(rows), str(rounds)],
                             capture_output=True, text=True, check=False)
    if out.returncode:
        raise Failure(out.stderr.strip())
    return json.loads(out.stdout)


def drain(build):
    out = subprocess.run([build + "/bench/drain", "200"], capture_output=True, text=True,
                         check=False)
    if out.returncode:
        raise Failure(out.stderr.strip())
    return [json.loads(line) for line in out.stdout.splitlines()]


def side_by_side(build, quick):
    """
    What does not disturb each other: the counts, and the slow intervals, each with a moted of its
    own, while the fast intervals are measured one after the other.
    """
    slow = [(5000, 2)] if quick else [(5000, 6), (10000, 4), (30000, 1)]
    fast = [(100, 30), (250, 16), (1000, 6)] if quick else [(100, 100), (250, 40), (500, 30),
                                                            (1000, 20), (2000, 10)]
    with sleepers(build, 1000), concurrent.futures.ThreadPoolExecutor() as pool:
        modes = memory(build)  # maps are told apart by when they came: nothing else may start
        jobs = [pool.submit(interval, build, ms, ticks) for ms, ticks in slow]
        counted = pool.submit(counts, build, 12 if quick else 60)
        traced = pool.submit(system_calls, build, 8 if quick else 30)
        rows = [interval(build, ms, ticks, warm=3) for ms, ticks in fast]
        encoding = encode(build, 1000, 20 if quick else 100)
        rows += [job.result() for job in jobs]
        return rows, counted.result(), traced.result(), encoding, modes


def join_rounds(lines):
    """One row for each agent and number of sleepers, with the windows of all rounds."""
    rows = {}
    for line in lines:
        row = json.loads(line)
        first = rows.setdefault((row["agent"], row["sleepers"]), row)
        if first is not row:
            first["cpu_ms"] += row["cpu_ms"]
    return list(rows.values())


def peers(build, quick):
    env = dict(os.environ)
    if quick:
        env.update(ROUNDS="1", WINDOW="3", AGENTS="moted sadc top atop")
    out = subprocess.run([os.path.dirname(os.path.abspath(__file__)) + "/peers.sh", build], env=env,
                         stdout=subprocess.PIPE, text=True, check=False)
    rows = join_rounds(out.stdout.splitlines())
    if not rows:
        raise Failure("bench/peers.sh failed: its message is above")
    for row in rows:
        row["cpu_us"] = {"min": round(1000 * min(row["cpu_ms"]), 1),
                         "median": round(1000 * statistics.median(row["cpu_ms"]), 1),
                         "windows": len(row["cpu_ms"])}
    return rows
