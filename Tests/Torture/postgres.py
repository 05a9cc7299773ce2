"""A PostgreSQL of a kind's own, by scripts/postgres.sh; it waits for its disk."""

import json
import os
import subprocess
import urllib.parse

from tools import HERE

SCRIPT = os.path.join(HERE, "..", "..", "scripts", "postgres.sh")


class Database:
    """Owned by the kind that started it; it ends with this process at the latest."""

    def __init__(self, folder):
        self.folder = folder
        self.url = self._call("start", owner=str(os.getpid())).strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._call("stop")

    def kill(self):
        self._call("kill")

    def again(self):
        self._call("again")

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

    def _call(self, verb, owner=""):
        done = subprocess.run(
            [SCRIPT, verb, self.folder], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "EARSHOT_POSTGRES_OWNER": owner})
        if done.returncode:
            raise RuntimeError(f"postgres.sh {verb}: {done.stderr.strip()}")
        return done.stdout
