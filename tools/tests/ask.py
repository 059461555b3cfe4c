#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Asks "rashpactl top --serve" by HTTP: ask.py empty|none SOCKET. "empty": a driver without buffers; "none": no driver."""
import http.client
import socket
import sys
import time

from prometheus_client.parser import text_string_to_metric_families

kind, path = sys.argv[1:]


def connect():
    """Connect; the server may still be starting."""
    end = time.monotonic() + 60
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            s.settimeout(60)
            return s
        except OSError:
            s.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def raw(*parts):
    """Send parts of a request, and return the answer."""
    with connect() as s:
        try:
            for part in parts:
                s.sendall(part)
                time.sleep(0.01)  # one read each, as a rule
        except BrokenPipeError:
            pass
        answer = b""
        try:
            while more := s.recv(65536):
                answer += more
        except ConnectionResetError:
            pass
        return answer


def ask(method, where):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connect()
    connection.request(method, where)
    answer = connection.getresponse()
    return answer, answer.read().decode()


answer, text = ask("GET", "/metrics")
if kind == "none":
    assert answer.status == 503 and "journalctl" in text, (answer.status, text)
    sys.exit()
assert answer.status == 200 and answer.getheader("Content-Type").startswith("text/plain; version=0.0.4"), answer.headers
names = {family.name for family in text_string_to_metric_families(text)}
assert {"rashpa_build_info", "rashpa_stream_state", "rashpa_stream_stacks"} <= names, names
size = int(answer.getheader("Content-Length"))
assert size == len(text), (size, len(text))
# the same, without the text
head, body = ask("HEAD", "/metrics")
assert head.status == 200 and int(head.getheader("Content-Length")) == size and not body, (head.status, body)
assert ask("GET", "/metrics?x=y")[0].status == 200
assert ask("GET", "/other")[0].status == 404
post, _ = ask("POST", "/metrics")
assert post.status == 405 and post.getheader("Allow") == "GET, HEAD", post.headers
# requests in parts, not HTTP, too long, or empty and closed; after each, a good one is served
assert raw(b"GET /met", b"rics HTTP/1.1\r\nHost: x\r\n", b"\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
assert raw(b"\x16\x03\x01\0 \r\n\r\n").startswith(b"HTTP/1.1 400 ")
assert raw(b"GET /" + b"a" * 20000) == b""
connect().close()
# more silent connections than there are places: a request is answered before these time out
silent = [connect() for _ in range(300)]
for s in silent[::2]:
    s.send(b"GET /metrics HTTP/1.1\r\n")
for _ in range(3):
    assert ask("GET", "/metrics")[0].status == 200
assert all(s.recv(100) == b"" for s in silent), "silent connections are never closed"
# connections that send a request and never read
deaf = [connect() for _ in range(300)]
for s in deaf:
    s.send(b"GET /metrics HTTP/1.1\r\n\r\n")
assert ask("GET", "/metrics")[0].status == 200
