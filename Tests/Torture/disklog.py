"""Replays the log that shims/disk.c writes: what a disk may hold when the power fails after a given record.

The model is that of journaling file systems (ext4, XFS). What was written to a file before a completed fsync of it is on the disk. Of what was
written later each write may be there, be absent, or be torn at sectors. Changes of names happen in order: those before any completed fsync
are there, and of the later ones a prefix.
"""

import dataclasses
import os
import struct

_HEADER = struct.Struct("<IIQQQII")
_MAGIC = 0x45415253
OPENED, WRITTEN, TRUNCATED, SYNC_BEGAN, SYNC_ENDED, RENAMED, UNLINKED, LINKED, FAILED = range(1, 10)


@dataclasses.dataclass(frozen=True)
class Record:
    """One change. A value."""

    # The server's start that it belongs to: handles and numbers begin anew with each.
    start: int
    number: int
    kind: int
    # CLOCK_MONOTONIC, nanoseconds.
    time: int
    handle: int
    offset: int
    extra: int
    data: bytes


def read(paths):
    """All records of one start after another. Raises ValueError for a log that is none."""
    records = []
    for start, path in enumerate(paths):
        with open(path, "rb") as file:
            content = file.read()
        position = number = 0
        while position < len(content):
            if len(content) - position < _HEADER.size:
                break
            magic, kind, time, handle, offset, length, extra = _HEADER.unpack_from(content, position)
            if magic != _MAGIC:
                raise ValueError(f"{path} holds no record at {position}")
            position += _HEADER.size
            # The server was killed while its last record was being written.
            if position + length > len(content):
                break
            records.append(Record(start, number, kind, time, handle, offset, extra, content[position : position + length]))
            position += length
            number += 1
    return records


class _File:
    def __init__(self):
        self.durable = bytearray()
        # (position in the log, size or None, offset, data)
        self.pending = []

    @staticmethod
    def apply(content, size, offset, data):
        if size is not None:
            if size <= len(content):
                del content[size:]
            else:
                content.extend(bytes(size - len(content)))
            return
        if offset > len(content):
            content.extend(bytes(offset - len(content)))
        content[offset : offset + len(data)] = data

    def sync(self, before):
        rest = []
        for change in self.pending:
            if change[0] < before:
                self.apply(self.durable, *change[1:])
            else:
                rest.append(change)
        self.pending = rest


class Disk:
    """The disk's content: what is there for certain, and what may be. Reads the log's records in order, each once."""

    def __init__(self, root):
        self.root = root
        self.position = 0
        self._handles = {}
        self._files = []
        # As the running server sees them, and as they are on the disk for certain.
        self._names = {}
        self._durable = {}
        self._pending = []
        # Where in the log each sync began.
        self._began = {}

    def _rename(self, change, names):
        _, kind, first, second = change
        if kind == OPENED:
            names[first] = second
        elif kind == RENAMED:
            if first in names:
                names[second] = names.pop(first)
        elif kind == LINKED:
            if first in names:
                names[second] = names[first]
        else:
            names.pop(first, None)

    def _name(self, kind, first, second=None):
        change = (self.position, kind, first, second)
        self._rename(change, self._names)
        self._pending.append(change)

    def take(self, record):
        """One record more has happened."""
        self.position += 1
        key = (record.start, record.handle)
        if record.kind == OPENED:
            path = record.data.decode()
            if path not in self._names:
                # Folders, too: their syncs count.
                self._files.append(_File())
                self._name(OPENED, path, self._files[-1])
            self._handles[key] = self._names[path]
            if record.extra:
                self._names[path].pending.append((self.position, 0, 0, b""))
        elif record.kind == WRITTEN:
            self._handles[key].pending.append((self.position, None, record.offset, record.data))
        elif record.kind == TRUNCATED:
            self._handles[key].pending.append((self.position, record.offset, 0, b""))
        elif record.kind == SYNC_BEGAN:
            self._began[record.start, record.number] = self.position
        elif record.kind == SYNC_ENDED:
            before = self._began.pop((record.start, record.offset))
            self._handles[key].sync(before)
            for change in self._pending:
                if change[0] < before:
                    self._rename(change, self._durable)
            self._pending = [change for change in self._pending if change[0] >= before]
        elif record.kind in (RENAMED, LINKED):
            first, second = record.data.split(b"\0")
            self._name(record.kind, first.decode(), second.decode())
        elif record.kind == UNLINKED:
            self._name(UNLINKED, record.data.decode())

    def durable(self, ending):
        """The files with this ending that are on the disk for certain, and what is in them: (path below the root, bytes)."""
        return [(self._below(path), bytes(file.durable)) for path, file in self._durable.items() if path.endswith(ending)]

    def _below(self, path):
        return os.path.relpath(path, self.root)

    def lose_power(self, random, folder, mapped=()):
        """Writes into a new folder what the disk holds when the power fails now, in one of many ways. `mapped` are files that are not written
        but mapped, which the system has put on the disk whenever it liked: (path below the root, bytes)."""
        names = dict(self._durable)
        for change in self._pending[: random.randint(0, len(self._pending))]:
            self._rename(change, names)
        os.makedirs(folder, 0o700)
        survival = random.choice((0, 0.5, 0.5, 0.9, 1))
        for path, file in names.items():
            # SQLite's index of its log is mapped, and not written.
            if os.path.isdir(path) or path.endswith("-shm"):
                continue
            target = os.path.join(folder, self._below(path))
            os.makedirs(os.path.dirname(target), 0o700, exist_ok=True)
            with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                out.write(self._content(file, random, survival))
        for path, content in mapped:
            with open(os.path.join(folder, path), "wb") as out:
                out.write(content)

    def _content(self, file, random, survival):
        content = bytearray(file.durable)
        for _, size, offset, data in file.pending:
            if size is not None:
                if random.random() < survival:
                    _File.apply(content, size, 0, b"")
                continue
            if random.random() < survival:
                _File.apply(content, None, offset, data)
                continue
            fate = random.random()
            if fate < 0.4:
                continue
            if fate < 0.7 and offset + len(data) > len(content):
                # The file has grown, and what it should hold has not come.
                _File.apply(content, offset + len(data), 0, b"")
            self._tear(content, offset, data, random)
        return content

    @staticmethod
    def _tear(content, offset, data, random):
        """Each sector by itself is written or not."""
        sector = random.choice((512, 4096))
        share = random.random()
        at = 0
        while at < len(data):
            end = min(len(data), (offset + at) // sector * sector + sector - offset)
            if random.random() < share:
                _File.apply(content, None, offset + at, data[at:end])
            at = end
