# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The table of docs/AVAILABILITY.md, and what differs between it and what a moted says and sends.
No test of its own: tests/it/availability.py and vmtests/availability use it."""
import os
import re

TOP = os.path.abspath(os.environ.get("MOTE_TOP", os.path.join(os.path.dirname(__file__), "../..")))
PAGE = os.path.join(TOP, "docs/AVAILABILITY.md")
COLUMNS = ["tier", "stream", "fields", "kernels", "how", "why"]
HOWS = ("hello", "hello?", "nil", "nil?", "some", "some?")
TIERS = {"process": ("iterator", "proc"), "executable": ("none",), "mode": ("minimal",),
         "events": ("tracepoint", "tp_btf", "connector", "none"), "network": ("bpf", "none"), "file": ("bpf", "none"),
         "cgroups": ("iterator", "files", "files_v1", "none")}


def release(text):
    """(major, minor) of a kernel's release."""
    return tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", text).groups())


class Line:
    """A line of the table, for one stream. ValueError if it is not understood."""

    def __init__(self, stream, cells):
        self.text = f"{cells['tier']} | {stream} | {cells['fields'][:60]} | {cells['kernels']} | {cells['how']}"
        self.stream, self.fields = stream, cells["fields"].split()
        self.how, self.sure = cells["how"].rstrip("?"), not cells["how"].endswith("?")
        words = [] if cells["tier"] == "all" else [word.partition("=")[::2] for word in cells["tier"].split()]
        self.tiers = dict(words)
        limit = re.fullmatch(r"all|(<|>=) (\d+\.\d+)", cells["kernels"])
        if not limit or cells["how"] not in HOWS or not cells["why"] or not self.fields:
            raise ValueError(f"{PAGE}: not understood: {cells}")
        if any(choice not in TIERS.get(tier, ()) for tier, choice in words):
            raise ValueError(f"{PAGE}: no such tier: {cells['tier']}")
        self.before, self.limit = limit[1] == "<", limit[2] and release(limit[2])

    def holds(self, seen):
        """Whether it is about the tiers and the kernel of this moted."""
        kernel = self.limit is None or (seen.kernel < self.limit) == self.before
        return kernel and all(seen.tiers.get(tier) == choice for tier, choice in self.tiers.items())


def table():
    """The lines of the page's last table."""
    lines, inside = [], False
    with open(PAGE, encoding="utf-8") as page:
        for text in page:
            cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
            if cells == COLUMNS:
                inside = True
            elif inside and text.startswith("|") and not text.startswith("|---"):
                if len(cells) != len(COLUMNS):
                    raise ValueError(f"{PAGE}: {len(cells)} columns: {text}")
                cells = dict(zip(COLUMNS, cells))
                lines += [Line(stream, cells) for stream in cells["stream"].split()]
    if len(lines) < 40:
        raise ValueError(f"{PAGE}: {len(lines)} lines are too few: not the table")
    return lines


class Seen:
    """What a moted said: `hello` is as decoded from its JSON or frame; `absent` {(stream, field): reason};
    `rows` {stream: how many}; `state` {stream: {field: "given", "some" or "nil"}}."""

    def __init__(self, name, kernel, mode, tiers, absent):
        self.name, self.kernel, self.absent = name, release(kernel), absent
        self.rows, self.state = {}, {}
        iterator = tiers.get("task_iterator") in ("list", "iter/task")
        self.tiers = {"process": "iterator" if iterator else "proc", "mode": mode,
                      "events": tiers.get("process_events", "none"), "executable": tiers.get("executable", "none"),
                      "cgroups": {"iter/cgroup": "iterator"}.get(tiers.get("cgroups"), tiers.get("cgroups", "none")),
                      "network": "none" if tiers.get("network", "none") == "none" else "bpf",
                      "file": "none" if tiers.get("file", "none") == "none" else "bpf"}

    def add(self, stream, rows, state):
        self.rows[stream], self.state[stream] = rows, state

    def named(self, stream, field):
        return (stream, field) in self.absent or (stream, "*") in self.absent


def stream_faults(lines, seen, stream):
    """Of a stream with rows: nil where the table or hello does not say so, and the other way round."""
    for field, state in seen.state[stream].items():
        allowed = [line for line in lines if line.stream == stream and field in line.fields and line.how != "hello"]
        if seen.named(stream, field):
            if state != "nil":
                yield f"{stream} {field}: hello says it is absent, rows have it"
            continue
        if state == "nil" and not any(line.how == "nil" for line in allowed):
            yield f"{stream} {field}: nil in all {seen.rows[stream]} rows, and not in hello's absent nor in the table"
        if state == "some" and not allowed:
            yield f"{stream} {field}: nil in some of {seen.rows[stream]} rows, and not in the table"
        if state != "nil" and any(line.how == "nil" and line.sure for line in allowed):
            yield f"{stream} {field}: the table says nil, rows have it"


def faults(lines, seen):
    """What the table does not allow, or says and is not so."""
    lines = [line for line in lines if line.holds(seen)]
    found = []
    for (stream, field), reason in seen.absent.items():
        if not reason.strip():
            found.append(f"{stream} {field}: absent without a reason")
        if not any(line.how == "hello" and line.stream == stream and field in line.fields for line in lines):
            found.append(f"{stream} {field}: absent here, and not in the table: {reason}")
    for line in lines:
        found += [f"{line.stream} {field}: the table says absent, hello does not" for field in line.fields
                  if line.how == "hello" and line.sure and not seen.named(line.stream, field)]
    for stream, rows in seen.rows.items():
        if rows:
            found += stream_faults(lines, seen, stream)
        elif not seen.named(stream, "*") and not any(
                line.stream == stream and line.fields == ["*"] and line.how == "nil" for line in lines):
            found.append(f"{stream}: no rows, and not in hello's absent nor in the table")
    return found


def never_seen(lines, seens):
    """Lines that say `some`, of tiers that were seen, but all rows had the field."""
    found = []
    for line in lines:
        about = [seen for seen in seens if line.holds(seen) and seen.rows.get(line.stream)]
        if line.how == "some" and line.sure and about:
            found += [f"{line.stream} {field}: the table says nil in some rows ({line.text}), all have it"
                      for field in line.fields if not any(
                          seen.state[line.stream].get(field) != "given" or seen.named(line.stream, field)
                          for seen in about)]
    return found


def misfits(seen, stream, names):
    """Of memory and vm, whose fields are the kernel's names: nil is what its text does not have."""
    return [f"{stream} {field}: {state} in rows, {'in' if field in names else 'not in'} the kernel's text"
            for field, state in seen.state.get(stream, {}).items()
            if seen.rows[stream] and (state == "given") != (field in names)]


def unknown(lines, schema):
    """Names that no stream has; `schema`: {stream: fields}."""
    return [f"{line.stream} {field}" for line in lines for field in line.fields
            if line.stream not in schema or field not in schema[line.stream] + ["*"]]
