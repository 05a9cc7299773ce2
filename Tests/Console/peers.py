"""Peers that are not well: a narrow way to the server, and a viewer that reads too slowly."""
import contextlib
import socket
import threading
import time


class NarrowWay:
    """A TCP proxy that lets this many bits per second through to the server; back they pass at once."""

    def __init__(self, target, bits_per_second):
        host, port = target.rsplit(":", 1)
        self.target, self.rate = (host, int(port)), bits_per_second / 8
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.sockets = [self.listener]
        self._spawn(self._accept)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @staticmethod
    def _spawn(function, *arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.target)
                self.sockets += [near, far]
                self._spawn(self._carry, near, far, self.rate)
                self._spawn(self._carry, far, near, None)

    @staticmethod
    def _carry(source, sink, rate):
        """Bytes pass when the rate allows: what was late is not made up for."""
        free = time.monotonic()
        with contextlib.suppress(OSError):
            while data := source.recv(2048):
                sink.sendall(data)
                if rate:
                    free = max(free, time.monotonic()) + len(data) / rate
                    time.sleep(max(0, free - time.monotonic()))
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


class SlowViewer:
    """Plays a stream over HTTP-FLV and reads a few bytes of it a second."""

    def __init__(self, address, path, bytes_per_second, agent="slow-viewer"):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        # Before connecting: the window that is offered follows from it.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect((host, int(port)))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: {agent}\r\n\r\n".encode())
        self.count = 0
        self.rate = bytes_per_second
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(OSError):
            while data := self.socket.recv(max(1, self.rate // 10)):
                self.count += len(data)
                time.sleep(len(data) / self.rate)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
