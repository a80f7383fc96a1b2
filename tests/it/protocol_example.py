#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The worked example of docs/PROTOCOL.md: its bytes, decoded with python3-msgpack and with libmote
# (mote dump), are the JSON beside them, under the schema of this tree.
import json, os, re, struct, subprocess, sys, tempfile
import msgpack

top = os.environ.get("MOTE_TOP", os.path.join(os.path.dirname(__file__), "../.."))
mote = os.path.join(os.environ.get("MOTE_BUILD", os.path.join(top, "build")), "mote")
failed = 0


def check(number, text, got, want):
    global failed
    good = got == want
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {text}")
    if not good:
        print(f"# got  {got!r}\n# want {want!r}")


def block(page, language):
    return re.search(rf"^```{language}\n(.*?)^```", page, re.M | re.S).group(1)


def schema():
    text = open(os.path.join(top, "supervisor/schema.def")).read()
    streams = []
    for ident, name, interval in re.findall(r'^STREAM\((\w+), "(\w+)", (\d+),', text, re.M):
        fields = re.findall(rf'^FIELD\({ident}, \w+, "([^"]+)", (\w+), (\w+), "([^"]*)"', text, re.M)
        streams.append([len(streams), name, "", int(interval),
                        [[n, t.lower(), k.lower(), unit, ""] for n, t, k, unit in fields]])
    return streams


def by_hand(frame, streams):
    magic, version, kind, flags, length, stream, sequence, time = struct.unpack("<4sBBHIIQQ", frame[:32])
    assert (magic, version, kind, length) == (b"mote", 1, 2, len(frame) - 32)
    name, fields = streams[stream][1], streams[stream][4]
    interval, rows, ended, totals = msgpack.unpackb(frame[32:])
    head = {"stream": name, "time": time}
    objects = [{"keyframe": {**head, "interval_ms": interval}}] if flags & 1 else []
    for row in rows:
        assert len(row) == len(fields)
        objects.append({**head, **{f[0]: v for f, v in zip(fields, row)}})
    for key in ended:
        objects.append({**head, "ended": {f[0]: v for f, v in zip([f for f in fields if f[2] == "key"], key)}})
    assert totals is None
    return objects


def main():
    page = open(os.path.join(top, "docs/PROTOCOL.md")).read()
    page = page[page.index("## Worked example"):]
    lines = [re.match(r"\s*((?:[0-9a-f]{2} ?)*)(?: |$)", line).group(1)
             for line in block(page, "hex").splitlines()]
    frame = bytes.fromhex("".join(lines))
    want = [json.loads(line) for line in block(page, "json").splitlines()]
    streams = schema()

    check(1, "the size the page says", f"{len(frame)} bytes:" in page, True)
    check(2, "python3-msgpack decodes what the page says", by_hand(frame, streams), want)
    body = msgpack.packb({"mote": "0", "streams": streams})
    hello = struct.pack("<4sBBHIIQQ", b"mote", 1, 1, 0, len(body), 0, 0, 0) + body
    with tempfile.NamedTemporaryFile() as recording:
        recording.write(hello + frame)
        recording.flush()
        dump = subprocess.run([mote, "dump", "--json", "--input", recording.name],
                              stdout=subprocess.PIPE, check=True).stdout
    check(3, "libmote decodes what the page says", dump.decode().splitlines()[1:],
          block(page, "json").splitlines())
    print("1..3")
    sys.exit(failed != 0)


main()
