"""A network of a kind's own: places with an address each, behind a hub that can lose what one of them sends to another."""

import contextlib
import ctypes
import os
import subprocess

from tools import NotHere

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


def _enter(descriptor):
    """Brings this thread into a namespace; threads and processes that it starts are there, too."""
    if _libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")


def _current():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _ip(*lines, under=()):
    done = subprocess.run([*under, "ip", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        raise RuntimeError(f"ip: {done.stderr.strip()}")


class Place:
    """One machine's view of the network. Commands go in by `under`."""

    def __init__(self, number, descriptor):
        self.number, self.descriptor = number, descriptor
        self.address = f"10.77.{number}.2"
        self.gateway = f"10.77.{number}.1"
        # The command keeps its process id.
        self.under = ("nsenter", f"--net=/proc/{os.getpid()}/fd/{descriptor}", "--")


class Network:
    """The hub, where this thread is meanwhile, and the places. No namespace has a name: they go with their last process, after kill -9 too."""

    # The hub's address, of clients and webhooks, and everybody's.
    HUB = "10.77.0.1"
    ALL = "10.77.0.0/16"

    def __init__(self, count):
        self._home = _current()
        self._hub = None
        self.places = []
        try:
            self._build(count)
        except FileNotFoundError:
            # A program that is not installed.
            self.close()
            raise
        except (OSError, RuntimeError) as why:
            self.close()
            raise NotHere(f"no network of its own can be made: {why}") from why

    def _build(self, count):
        for number in range(1, count + 1):
            self.places.append(Place(number, self._make()))
        hub = self._make()
        _enter(hub)
        self._hub = hub
        with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="ascii") as file:
            file.write("1")
        _ip("link set lo up", f"addr add {self.HUB}/32 dev lo")
        for place in self.places:
            self._join(place)
        # The kernel may know no such rules.
        with self.cut(both_ways(self.places[:1], self.places[1:])):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._hub is not None:
            _enter(self._home)
        for descriptor in (self._home, self._hub, *(place.descriptor for place in self.places)):
            if descriptor is not None:
                os.close(descriptor)

    def _make(self):
        """A new namespace's descriptor."""
        if _libc.unshare(_CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"unshare: {os.strerror(ctypes.get_errno())}")
        made = _current()
        _enter(self._home)
        return made

    def _join(self, place):
        link, far = f"hub{place.number}", f"far{place.number}"
        _ip(
            f"link add {link} type veth peer name {far}",
            f"link set {far} netns /proc/{os.getpid()}/fd/{place.descriptor}",
            f"addr add {place.gateway}/30 dev {link}",
            f"link set {link} up",
            # A client is the same one wherever it connects to.
            f"route replace 10.77.{place.number}.0/30 dev {link} src {self.HUB}")
        _ip(
            "link set lo up",
            f"addr add {place.address}/30 dev {far}",
            f"link set {far} up",
            f"route add default via {place.gateway}", under=place.under)

    @contextlib.contextmanager
    def cut(self, ways):
        """Loses all packets from one place to another, without a word to either, for each (from, to). By this thread only."""
        rules = [f"from {one.address} to {other.address} blackhole" for one, other in ways]
        _ip(*(f"rule add {rule}" for rule in rules))
        try:
            yield
        finally:
            _ip(*(f"rule del {rule}" for rule in rules))


def both_ways(ones, others):
    """The ways between the places of two groups."""
    return [way for one in ones for other in others for way in ((one, other), (other, one))]
