#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# example.py [SOCKET [REQUEST]]: print mote's frames with nothing but python3-msgpack.
# SOCKET may also be a file that `mote dump --raw` recorded.
import os, socket, stat, struct, sys
import msgpack

path = sys.argv[1] if len(sys.argv) > 1 else "/run/mote.sock"
request = sys.argv[2] if len(sys.argv) > 2 else "subscribe all"
if stat.S_ISSOCK(os.stat(path).st_mode):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.sendall(request.encode() + b"\n")
    frames = connection.makefile("rb")
else:
    frames = open(path, "rb")

streams = {}
while len(header := frames.read(32)) == 32:
    magic, version, kind, flags, length, stream, sequence, time = struct.unpack("<4sBBHIIQQ", header)
    assert magic == b"mote" and version == 1, "these are not mote's frames"
    body = msgpack.unpackb(frames.read(length), unicode_errors="surrogateescape", strict_map_key=False)
    if kind == 1:  # hello
        print("hello:", body["mote"], "on", body["host"])
        for ident, name, help_, interval, fields in body["streams"]:
            streams[ident] = name, [f[0] for f in fields], [f[0] for f in fields if f[2] == "key"]
    elif kind == 2:  # data
        (interval, rows, ended, totals), (name, fields, keys) = body, streams[stream]
        for what, names, records in ("", fields, rows), (" ended", keys, ended), (" totals", fields, [totals] if totals else []):
            for record in records:
                print(f"{name}{what}:", ", ".join(f"{n}: {v}" for n, v in zip(names, record) if v is not None))
    elif kind == 3:  # dropped
        print("dropped: frames: %d, bytes: %d" % tuple(body[:2]))
    elif kind == 4:  # reply
        print("reply: code: %d, text: %s" % tuple(body[:2]))
