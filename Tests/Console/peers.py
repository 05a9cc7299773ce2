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
    """Plays a stream over HTTP-FLV and reads a few bytes of it a second. When the server has had enough of it, it comes back."""

    def __init__(self, address, path, bytes_per_second, agent="slow-viewer"):
        self.place, self.path, self.rate, self.agent = address.rsplit(":", 1), path, bytes_per_second, agent
        self.is_over = False
        self.socket = self._connect()
        threading.Thread(target=self._read, daemon=True).start()

    def _connect(self):
        host, port = self.place
        peer = socket.socket()
        # Before connecting: the window that is offered follows from it.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect((host, int(port)))
        peer.sendall(f"GET {self.path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: {self.agent}\r\n\r\n".encode())
        return peer

    def _read(self):
        while not self.is_over:
            with contextlib.suppress(OSError):
                while data := self.socket.recv(max(1, self.rate // 10)):
                    time.sleep(len(data) / self.rate)
            if self.is_over:
                return
            time.sleep(1)
            with contextlib.suppress(OSError):
                self.socket.close()
                self.socket = self._connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
