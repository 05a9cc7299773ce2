"""A PostgreSQL of a kind's own, by scripts/postgres.sh; it waits for its disk. Alone, or a primary with a standby, each in a place of its own."""

import json
import os
import subprocess
import urllib.parse

from tools import HERE

SCRIPT = os.path.join(HERE, "..", "..", "scripts", "postgres.sh")
# Where each server has its own network.
PORT = 5432


class Database:
    """Owned by the kind that started it; it ends with this process at the latest."""

    def __init__(self, folder, place=None, primary=None):
        """`primary`: what it is a synchronous standby of."""
        self.folder, self.place = folder, place
        port = [str(PORT)] if place else []
        if primary:
            there = self._call("standby", primary.folder, *port, owner=str(os.getpid())).strip()
            self.url = urllib.parse.urlsplit(primary.url)._replace(netloc=f"{primary.credential}@{there}").geturl()
        else:
            self.url = self._call("start", *port, owner=str(os.getpid())).strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def credential(self):
        return urllib.parse.urlsplit(self.url).netloc.rpartition("@")[0]

    @property
    def address(self):
        return urllib.parse.urlsplit(self.url).netloc.rpartition("@")[2]

    def stop(self):
        self._call("stop")

    def kill(self):
        self._call("kill")

    def again(self):
        self._call("again")

    def promote(self):
        self._call("promote")

    def rows(self, select):
        """The rows of a SELECT, each a dictionary. Raises OSError where the database does not answer."""
        parts = urllib.parse.urlsplit(self.url)
        place = {"PGHOST": parts.hostname, "PGPORT": str(parts.port), "PGUSER": parts.username, "PGPASSWORD": parts.password}
        environment = {**os.environ, **place, "PGDATABASE": parts.path[1:], "PGCONNECT_TIMEOUT": "5"}
        command = ["psql", "-X", "-w", "-Atc", f"SELECT coalesce(json_agg(t), '[]') FROM ({select}) t"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env=environment)
        if done.returncode:
            raise OSError(f"psql: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)

    def _call(self, verb, *more, owner=""):
        listens = f"{self.place.address}/16" if self.place else ""
        done = subprocess.run(
            [*(self.place.under if self.place else ()), SCRIPT, verb, self.folder, *more],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "EARSHOT_POSTGRES_OWNER": owner, "EARSHOT_POSTGRES_LISTEN": listens})
        if done.returncode:
            raise RuntimeError(f"postgres.sh {verb}: {done.stderr.strip()}")
        return done.stdout


class Pair:
    """A primary and its synchronous standby. Changed by the round's thread only."""

    def __init__(self, folder, places):
        self.folder, self.places = folder, places
        self.primary = Database(os.path.join(folder, "1"), places[0])
        self.standby = Database(os.path.join(folder, "2"), places[1], self.primary)
        self._count = 2
        hosts = f"{self.primary.address},{self.standby.address}"
        self.url = f"postgresql://{self.primary.credential}@{hosts}/earshot?target_session_attrs=read-write"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for database in (self.standby, self.primary):
            if database:
                database.stop()

    def kill(self):
        self.primary.kill()

    def again(self):
        self.primary.again()

    def promote(self):
        """The standby becomes the primary. Returns the former one, which must not write any more."""
        former = self.primary
        self.standby.promote()
        self.primary, self.standby = self.standby, None
        return former

    def renew(self, former):
        """Makes the former primary's place the standby's, from nothing. Returns once it is synchronous."""
        former.stop()
        self._count += 1
        self.standby = Database(os.path.join(self.folder, str(self._count)), former.place, self.primary)

    def rows(self, select):
        return self.primary.rows(select)
