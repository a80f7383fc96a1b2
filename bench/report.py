#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""bench/report.py BENCH.JSON: docs/PERFORMANCE.md on standard output, from what bench/run found."""
import json
import sys


def us(value):
    """A time in us, as people read it."""
    return f"{value / 1000:.2f} ms" if value >= 1000 else f"{value:.0f} us"


def pair(figure):
    return f"{us(figure['min'])} / {us(figure['median'])}" if figure else "-"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def number(value):
    return f"{value:,.0f}"


def cost_table(data):
    rows = []
    for row in data["cost"]:
        floor, moted = row["floor_us"], row["moted_us"]
        rows.append([row["name"], row["processes"], pair(moted), pair(floor.get("files")),
                     pair(floor.get("pooled")), pair(floor.get("open")),
                     f"{moted['min'] / floor['pooled']['min']:.2f} / "
                     f"{moted['median'] / floor['pooled']['median']:.2f}"])
    return table(["", "processes", "moted", "floor: host files", "floor: and pooled stat",
                  "floor: and open, read, close", "moted / pooled"], rows)


def frame_table(data):
    return table(["", "keyframe", "rows", "changed a tick", "rows", "frames", "ended", "events",
                  "delay: median", "p99", "faults a tick"],
                 [[row["name"], number(row["frames"]["key_bytes"]), number(row["frames"]["key_rows"]),
                   number(row["frames"]["changed_bytes"]), row["frames"]["changed_rows"],
                   row["frames"]["changed_frames"], row["frames"]["ended"],
                   row["frames"]["events"],
                   us(row["delay_us"]["median"]), us(row["delay_us"]["p99"]),
                   f"{row['faults'] / row['ticks']:.2f}"] for row in data["cost"]])


def interval_table(data):
    return table(["interval", "ticks", "CPU a tick", "of a CPU", "delay: median", "p99",
                  "changed bytes a tick"],
                 [[f"{row['ms'] / 1000:g} s", row["ticks"], pair(row["moted_us"]),
                   f"{row['moted_us']['median'] / row['ms'] / 10:.4f} %",
                   us(row["delay_us"]["median"]), us(row["delay_us"]["p99"]),
                   number(row["frames"]["changed_bytes"])] for row in data["intervals"]])


def encode_table(data):
    encode = data["encode"]

    def line(name, msgpack, json_, show):
        return [name, show(msgpack), show(json_), f"{json_ / msgpack:.1f}" if msgpack else "-"]

    def per_row(key, part):
        return encode[key][part] / encode["rows"]

    def ns(value):
        return f"{value:.0f} ns"
    rows = [line(f"{verb} a row, {part}", per_row(f"msgpack_{verb}", f"{part}_ns"),
                 per_row(f"json_{verb}", f"{part}_ns"), ns)
            for verb in ("encode", "decode") for part in ("min", "median")]
    rows.append(line("bytes a row", encode["msgpack_bytes"] / encode["rows"],
                     encode["json_bytes"] / encode["rows"], lambda v: f"{v:.0f}"))
    rows += [line(f"allocations, {verb} of {encode['rows']} rows",
                  encode[f"msgpack_{verb}"]["allocations"], encode[f"json_{verb}"]["allocations"],
                  number) for verb in ("encode", "decode")]
    return table([f"{encode['fields']} fields a row", "MessagePack", "JSON", "JSON / MessagePack"],
                 rows)


def drain_table(data):
    rows = [[number(row["changed"]), f"{row['slots_ns'] / 1000:.1f} us",
             f"{row['batch_ns'] / 1000:.1f} us", f"{row['batch_ns'] / row['slots_ns']:.0f}"]
            for row in data["drain"]]
    return table(["changed of 8,192 keys", "slots", "LOOKUP_AND_DELETE_BATCH", "batch / slots"],
                 rows)


def memory_table(data):
    modes = [data["memory"][mode] for mode in ("standard", "minimal")]
    names = (("without_bpf", "PSS without mapped BPF pages"), ("libraries", "of it: libraries"),
             ("program", "of it: the program"), ("heap", "of it: heap"), ("other", "of it: other"),
             ("bpf", "PSS of mapped BPF pages"))
    rows = [[text] + [f"{number(mode['memory_kib'][key])} KiB" for mode in modes]
            for key, text in names]
    rows.append(["BPF maps, charged"] +
                [f"{number(sum(m['bytes'] for m in mode['bpf_maps']) / 1024)} KiB in {len(mode['bpf_maps'])}"
                 for mode in modes])
    return table(["1,000 sleepers, default tables", "standard", "minimal"], rows)


def count_table(data):
    count, calls = data["counts"], data["system_calls"]
    rows = [["submissions (self stream)", count["enters"], count["self_ticks"],
             f"{count['enters'] / count['self_ticks']:.3f}"]]
    rows += [[name, count[name], count["ticks"], f"{count[name] / count['ticks']:.3f}"]
             for name in ("allocations", "faults", "overruns", "late")]
    rows += [[f"`{name}` (strace)", n, calls["ticks"], f"{n / calls['ticks']:.3f}"]
             for name, n in sorted(calls["calls"].items())]
    return table(["1,000 sleepers, every stream, 1 s", "seen", "ticks", "a tick"], rows)


def peer_table(data):
    moted = {row["sleepers"]: row["cpu_us"]["min"] for row in data["peers"]
             if row["agent"] == "moted"}
    return table(["agent", "version", "collects", "sleepers", "CPU a tick", "of moted's", "PSS"],
                 [[row["agent"], row["version"], row["what"], row["sleepers"], pair(row["cpu_us"]),
                   f"{row['cpu_us']['min'] / moted[row['sleepers']]:.1f}",
                   f"{row['pss_kib'] / 1024:.1f} MiB"] for row in data["peers"]])


def target_table(data):
    return table(["target", "found", "limit", ""],
                 [[target["name"], f"{target['figure']:g} {target['unit']}".strip(),
                   f"{target['limit']:g} {target['unit']}".strip(),
                   "reached" if target["reached"] else "**missed**"] for target in data["targets"]])


def target_line(target):
    return (f"{target['name']}: {target['figure']:g} {target['unit']}".rstrip() +
            f", at most {target['limit']:g}")


SECTIONS = (
    ("Targets", target_table, "What `make bench` checks; it fails if one is missed. Ratios are of minima: what else a shared "
     "machine does only ever adds."),
    ("CPU a tick", cost_table,
     "One subscriber at 1 s, CPU time of all threads and io_uring workers of moted by its process "
     "clock; minimum / median of windows of 3 ticks. The floor programs only read, and neither "
     "parse nor send; they run in the same seconds at other phases. Floors: the ten host files "
     "held open; with `/proc/PID/stat` of every process held open; with each opened, read and "
     "closed. `sleepers` come on top of what the machine runs anyway."),
    ("Frames and delay", frame_table,
     "Bytes of the keyframes on subscription, and of what changed. Delay: from the time in a "
     "frame's header, which is the tick's, to its receipt by the subscriber."),
    ("Interval", interval_table,
     "1,000 sleepers, host streams and processes. The slow intervals, the counts and the encoding "
     "are measured side by side, each with a moted of its own."),
    ("System calls, allocations, faults", count_table,
     "Submissions are io_uring_enter calls, counted by moted itself and by strace from outside."),
    ("Taking what changed in the kernel's counters", drain_table,
     "Slots in mapped memory against a hash of as many keys, which loses what is added while it is "
     "read; the minimum of 200 rounds in turn."),
    ("Memory", memory_table, "Proportional set size by what is mapped."),
    ("MessagePack and JSON", encode_table,
     "The same rows of the process stream, from the same memory: the supervisor's frame encoder "
     "and libmote against jansson, one object a row."),
    ("Beside other agents", peer_table,
     "Each at 1 s, one after the other in the same run, CPU of its whole process tree a tick (a "
     "scrape for exporters); minimum / median of windows. What they collect differs: the table "
     "says what."),
)


def tables(data):
    parts = []
    for title, make, _ in SECTIONS:
        if make is peer_table and not data.get("peers"):
            continue
        parts.append(f"{title}\n{make(data)}\n")
    return "\n".join(parts)


def document(data):
    host = data["host"]
    parts = ["# What moted costs\n",
             "<!-- Written by bench/report.py from what `make bench` measured. Do not edit. -->\n",
             f"Measured on {host['date']} at commit {host['commit']}, in one run of "
             f"{data['seconds'] / 60:.0f} minutes: {host['cpus']} CPUs ({host['cpu']}"
             f"{', a virtual machine' if host['virtual'] else ''}), "
             f"{host['memory_mib'] / 1024:.0f} GiB of memory, {host['system']}, Linux "
             f"{host['kernel']}, {host['processes']} processes and a load of {host['load'][0]:.1f} "
             "before the run. The machine is not reserved: compare figures of one table, not with "
             "those of other machines. `make bench` measures yours.\n"]
    for title, make, text in SECTIONS:
        if make is peer_table and not data.get("peers"):
            continue
        parts.append(f"## {title}\n\n{text}\n\n{make(data)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        print(document(json.load(file)), end="")
