#!/usr/bin/env python3
"""Files one issue through descriptor 8 and reports, a line of JSON each, what this cage lets it do.

A tool needs nothing of this project: the exact request lies in /run/chio/request.frame, the stream is
descriptor 8, the answer is four length bytes (big endian) and as many bytes of JSON.
"""

import json
import os
import socket
import sys

STREAM = 8
FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "vsock": 40}


def report(name, value):
    print(json.dumps({"name": name, "value": value}), flush=True)


def own_descriptors():
    """Asked one by one: to list a folder would need a descriptor of its own."""
    return [descriptor for descriptor in range(256) if is_open(descriptor)]


def is_open(descriptor):
    try:
        os.fstat(descriptor)
        return True
    except OSError:
        return False


def socket_attempts():
    answers = {}
    for name, family in FAMILIES.items():
        try:
            socket.socket(family, socket.SOCK_STREAM if name != "netlink" else socket.SOCK_RAW).close()
            answers[name] = "opened"
        except OSError as error:
            answers[name] = error.strerror
    return answers


def places_with(needle):
    """Where a secret would lie if it had leaked: environments, arguments, readable files of ours."""
    found = []
    for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
        for part in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{part}", "rb") as source:
                    if needle in source.read():
                        found.append(f"/proc/{pid}/{part}")
            except OSError:
                continue
    for folder in ("/run", "/tmp", "/etc"):
        for directory, _, names in os.walk(folder):
            for name in names:
                found += [name] if holds(os.path.join(directory, name), needle) else []
    return found


def holds(path, needle):
    try:
        with open(path, "rb") as source:
            return needle in source.read(16 * 1024 * 1024)
    except OSError:
        return False


def read_exactly(count):
    received = b""
    while len(received) < count:
        piece = os.read(STREAM, count - len(received))
        if not piece:
            raise EOFError("the stream ended without a whole response")
        received += piece
    return received


def write_all(frame):
    while frame:
        frame = frame[os.write(STREAM, frame) :]


def submit():
    with open("/run/chio/request.frame", "rb") as source:
        write_all(source.read())
    response = json.loads(read_exactly(int.from_bytes(read_exactly(4), "big")))
    if not response["accepted"]:
        return {"accepted": False, "code": response["errorCode"]}
    answer = json.loads(bytes(response["response"]))
    return {"accepted": True, "status": answer["status"], "body": bytes(answer["body"]).decode()}


def submit_again():
    try:
        return submit()
    except (EOFError, OSError) as error:
        return f"refused: {error.strerror or 'end of stream'}" if isinstance(error, OSError) else "refused: end of stream"


def main():
    report("descriptors", own_descriptors())
    report("sockets", socket_attempts())
    # The needle is how every token of the trial begins, spelt backwards: our own argument must not match.
    report("places", places_with(sys.argv[1][::-1].encode()) if len(sys.argv) > 1 else [])
    report("response", submit())
    report("second", submit_again())


if __name__ == "__main__":
    main()
