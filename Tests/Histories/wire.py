"""HTTP/1.1 over one kept connection, as little of it as the API needs: quick enough for sixteen clients in one process."""

import json
import socket


class Lost(Exception):
    """The call went out and its answer did not come: it may have been carried out."""


class NotSent(Exception):
    """There was no connection: nothing was asked."""


class Answer:
    """One answer: `body` is what its JSON says, None when it has none."""

    __slots__ = ("status", "headers", "body")

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body


class Connection:
    """A connection to the API of one run of the server. Owned by one thread."""

    def __init__(self, port, token, source="127.0.0.1", seconds=30):
        try:
            self.socket = socket.create_connection(("127.0.0.1", port), seconds, source_address=(source, 0))
        except OSError as error:
            raise NotSent(str(error)) from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self.rest = b""

    def close(self):
        self.socket.close()

    def send(self, method, path, body=None, headers=None):
        """Raises Lost: part of it may have arrived."""
        lines = [f"{method} {path} HTTP/1.1\r\n{self.head}"]
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
            lines.append(f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n")
        lines += [f"{name}: {value}\r\n" for name, value in (headers or {}).items()]
        try:
            self.socket.sendall("".join(lines).encode() + b"\r\n" + data)
        except OSError as error:
            raise Lost(str(error)) from None

    def receive(self):
        """The answer to what was sent. Raises Lost when the connection ends before it is whole."""
        try:
            return self._receive()
        except OSError as error:
            raise Lost(str(error)) from None

    def _receive(self):
        buffer = self.rest
        while (end := buffer.find(b"\r\n\r\n")) < 0:
            buffer += self._more()
        lines = buffer[:end].decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status = int(lines[0].split(" ", 2)[1])
        length = headers.get("content-length", "0" if status in (204, 304) else None)
        if length is None:
            raise ValueError(f"an answer without Content-Length: {lines[0]}, {headers}")
        need = end + 4 + int(length)
        while len(buffer) < need:
            buffer += self._more()
        self.rest = buffer[need:]
        text = buffer[end + 4 : need]
        is_json = headers.get("content-type", "").startswith("application/json")
        return Answer(status, headers, json.loads(text) if is_json else None)

    def _more(self):
        data = self.socket.recv(262_144)
        if not data:
            raise Lost("the connection was closed")
        return data

    def ask(self, method, path, body=None, headers=None):
        self.send(method, path, body, headers)
        return self.receive()
