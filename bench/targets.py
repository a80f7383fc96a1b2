# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The numbers to reach. Ratios are of minima: what else a shared machine does only ever adds, and it
adds to both sides, which ran in the same seconds or one after the other; medians stand beside them
in the tables."""

MIB = 1 << 20
PEERS = (  # agent, sleepers, how many times dearer than moted it must be
    ("sadc", 0, 2), ("atop", 1000, 100), ("netdata", 1000, 100), ("process-exporter", 1000, 500),
    ("top", 1000, 25))


def row_of(data, name):
    return next(row for row in data["cost"] if row["name"] == name)


def at_most(name, figure, limit, unit=""):
    """One target: what was found, and whether that is within the limit."""
    return {"name": name, "figure": round(figure, 4), "limit": limit, "unit": unit,
            "reached": figure <= limit}


def linear(data):
    """A process more must not cost more in a large table than in a small one: twice at most."""
    base, thousand = row_of(data, "0 sleepers"), row_of(data, "1000 sleepers")
    most = row_of(data, "10000 sleepers")

    def each(row):
        return ((row["moted_us"]["min"] - base["moted_us"]["min"]) /
                (row["processes"] - base["processes"]))
    return at_most("cost of one more process at 10,000, against that at 1,000",
                   each(most) / each(thousand), 2, "x")


def own(data):
    thousand = row_of(data, "1000 sleepers")
    moted, pooled = thousand["moted_us"]["min"], thousand["floor_us"]["pooled"]["min"]
    count = data["counts"]
    yield at_most("host streams and 1,000 processes, of the pooled-pread floor for the same",
                  moted / pooled, 0.2, "x")
    yield linear(data)
    yield at_most("PSS without mapped BPF pages, default tables",
                  thousand["memory_kib"]["without_bpf"] / 1024, 3, "MiB")
    if not thousand["bpf_maps"]:  # then the limit below would be kept by nothing
        yield {"name": "BPF maps, which could not be listed", "figure": -1, "limit": 10,
               "unit": "MiB", "reached": False}
    yield at_most("BPF maps", sum(m["bytes"] for m in thousand["bpf_maps"]) / MIB, 10, "MiB")
    yield at_most("submissions a tick", count["enters"] / count["self_ticks"], 1.02, "")
    others = {name: n for name, n in data["system_calls"]["calls"].items()
              if name not in ("io_uring_enter", "clock_gettime")}
    yield at_most("system calls of the loop other than io_uring_enter", sum(others.values()), 0, "")
    drained = next(row for row in data["drain"] if row["changed"] == 4000)
    yield at_most("taking 4,000 changed keys of 8,192", drained["slots_ns"] / 1000, 50, "us")
    yield at_most("allocations a tick", count["allocations"] / count["ticks"], 0, "")
    yield at_most("page faults a tick", count["faults"] / count["ticks"], 0, "")
    yield at_most("delay from sample to receipt, median, 1,000 processes at 1 s",
                  thousand["delay_us"]["median"] / 1000, 2, "ms")


def beside_peers(data):
    rows = {(row["agent"], row["sleepers"]): row["cpu_us"]["min"] for row in data["peers"]}
    for agent, n, times in PEERS:
        name = f"{'host streams and 1,000 processes' if n else 'host streams alone'}, of {agent}"
        if rows.get(("moted", n)) and rows.get((agent, n)):
            yield at_most(name, rows["moted", n] / rows[agent, n], 1 / times, "x")
        elif not data["quick"]:
            yield {"name": name + ", which did not run", "figure": -1, "limit": 1 / times,
                   "unit": "x", "reached": False}


def check(data):
    found = list(own(data))
    if data.get("peers"):
        found += beside_peers(data)
    return found
