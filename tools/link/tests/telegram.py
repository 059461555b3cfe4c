# SPDX-License-Identifier: LGPL-2.1-or-later
"""Talks to daemons in telegrams, written from Documentation/telegrams.rst alone.

telegram.py ADDRESS until STATE [ADDRESS...]: wait until the daemon is in this state, and then others.
telegram.py ADDRESS paths SETTINGS: what a detector's ways to its receivers need, and carry.
telegram.py ADDRESS run SETTINGS FOLDER: a whole run of a detector; each telegram becomes a file.
"""
import socket
import struct
import sys
import xml.etree.ElementTree as ET

SPACE = "urn:rashpa:1"


class Daemon:
    """A link to a daemon; .unasked keeps telegrams that answer no request."""

    def __init__(self, path, seconds=60, source=None):
        """path: a UNIX socket, or (HOST, PORT). source: our address, with plain TCP."""
        self.socket = socket.socket(socket.AF_UNIX if isinstance(path, str) else socket.AF_INET)
        self.socket.settimeout(seconds)
        if source:
            self.socket.bind(source)
        self.socket.connect(path)
        self.number = 0
        self.unasked = []
        self.folder = None
        self.kept = 0

    def keep(self, text):
        if self.folder:
            self.kept += 1
            with open(f"{self.folder}/{self.kept:03}.xml", "wb") as file:
                file.write(text)
        return text

    def send_bytes(self, text):
        self.keep(text)
        self.socket.sendall(struct.pack(">I", len(text)) + text)

    def _read(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive(self):
        """The next telegram: its root."""
        return ET.fromstring(self.keep(self._read(struct.unpack(">I", self._read(4))[0])))

    def send(self, content):
        self.number += 1
        self.send_bytes(f'<telegram xmlns="{SPACE}" version="1.0" id="{self.number}">{content}'
                        "</telegram>".encode())
        return self.number

    def ask(self, content):
        """The answer: an element."""
        return self.answer(self.send(content))

    def ask_nothing(self, content):
        """The next telegram, which need not name what it answers."""
        self.send(content)
        return self.receive()[0]

    def answer(self, number):
        """To the telegram of this number."""
        while True:
            telegram = self.receive()
            if telegram.get("re") == str(number):
                return telegram[0]
            self.unasked.append(telegram[0])

    def wait(self, name):
        """The next telegram of this name that answers no request."""
        while True:
            for i, element in enumerate(self.unasked):
                if kind(element) == name:
                    return self.unasked.pop(i)
            self.unasked.append(self.receive()[0])


def kind(element):
    return element.tag.removeprefix("{" + SPACE + "}")


def counts(element):
    return {c.get("name"): int(c.text) for c in element if kind(c) == "count"}


def whole_run(daemon, settings, folder):
    daemon.folder = folder
    for content in ('<hello name="client" role="leader" interval="0.2"/>',
                    '<configure experiment="client" run="1">'
                    f"<detector>{settings}</detector></configure>", "<arm/>", "<start/>"):
        answer = daemon.ask(content)
        if kind(answer) == "error":
            sys.exit(f"{content}: {answer.text}")
    ended = daemon.wait("ended")
    print(ended.get("outcome"), counts(ended).get("images"))
    daemon.ask("<reset/>")
    daemon.ask("<bye/>")


def paths(daemon, settings):
    for content in ('<hello name="client" role="leader"/>',
                    '<configure experiment="client" run="1">'
                    f"<detector>{settings}</detector></configure>"):
        answer = daemon.ask(content)
        if kind(answer) == "error":
            sys.exit(f"{content}: {answer.text}")
    print(*(f'{p.get("needs")}/{p.get("carries")}' for p in daemon.ask("<get-status/>")
            if kind(p) == "path"))
    daemon.ask("<reset/>")
    daemon.ask("<bye/>")


def until(daemon, state):
    daemon.ask('<hello name="test" role="observer" interval="0.1"/>')
    while daemon.wait("status").get("state") != state:
        pass


def main():
    daemon = Daemon(sys.argv[1])
    if sys.argv[2] == "paths":
        paths(daemon, sys.argv[3])
        return
    if sys.argv[2] == "run":
        whole_run(daemon, *sys.argv[3:])
        return
    until(daemon, sys.argv[3])
    for address in sys.argv[4:]:
        until(Daemon(address), sys.argv[3])


if __name__ == "__main__":
    main()
