#!/usr/bin/python3
"""A complete MCP server for chio run --mcp: one session, one tool, one call, which goes out on descriptor 8.

It speaks the plain stdio transport, a line of JSON a message, and nothing but the standard library. What it
answers is checked against the request and the broker's key; the outcome of the run is the broker's record.
"""

import json
import socket
import sys

VERSION = "2025-11-25"
TOOL = {"name": "file-issue", "description": "Files one issue.", "inputSchema": {"type": "object"}}


def exactly(stream, count):
    received = bytearray()
    while len(received) < count:
        piece = stream.recv(count - len(received))
        if not piece:
            sys.exit(75)
        received += piece
    return bytes(received)


def submit():
    """The exact frame, once. The arguments of the call say the same; this copy needs no encoding."""
    stream = socket.socket(fileno=8)
    with open("/run/chio/request.frame", "rb") as source:
        stream.sendall(source.read())
    answer = json.loads(exactly(stream, int.from_bytes(exactly(stream, 4), "big")))
    if not answer["accepted"]:
        sys.exit(answer["errorCode"])
    return json.loads(bytes(answer["response"]))


def result_of(method):
    if method == "initialize":
        server = {"name": "file-issue", "version": "1"}
        return {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [], "structuredContent": submit(), "isError": False}
    sys.exit(f"no place for {method!r}")


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result_of(message["method"])}
        print(json.dumps(answer), flush=True)
