"""scripts/postgres.sh, which starts a scratch PostgreSQL for the tests: what it starts, and that nothing of it stays."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from tools import ROOT, expect, run, wait_for

SCRIPT = os.path.join(ROOT, "scripts", "postgres.sh")
URL = re.compile(r"postgresql://earshot:([0-9a-f]{32})@127\.0\.0\.1:(\d+)/earshot\n")
# A command for `run`: says the URL, then waits for the end of its input.
WAITS = [sys.executable, "-c", "import os, sys; print(os.environ['EARSHOT_TEST_POSTGRES'], flush=True); sys.stdin.read()"]


class Place:
    """A folder for temporary files that the server's user may pass, and in it `folder`, which only its owner may. Ends as it began: empty."""

    def __init__(self):
        self.temporary = tempfile.mkdtemp(prefix="earshot-package-")
        os.chmod(self.temporary, 0o755)
        self.folder = os.path.join(self.temporary, "own", "server")
        os.mkdir(os.path.dirname(self.folder), 0o700)
        self.environment = {**os.environ, "TMPDIR": self.temporary, "EARSHOT_POSTGRES_FAST": "1", "PGHOST": "nowhere.invalid", "LC_ALL": "C.UTF-8"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.call("stop", self.folder)
        shutil.rmtree(self.temporary, ignore_errors=True)

    def call(self, *words, **environment):
        return subprocess.run(
            [SCRIPT, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=90, env={**self.environment, **environment})

    def start(self, *more, **environment):
        done = self.call("start", self.folder, *more, **environment)
        expect(done.returncode == 0 and not done.stderr and URL.fullmatch(done.stdout), f"a URL alone: {done.returncode} {done.stdout!r} {done.stderr!r}")
        return done.stdout.strip()

    def background(self, *words):
        """`run` with its input and output as pipes, and the URL that its command has said."""
        # A shell cannot trap a signal that it was started with as ignored, as those of background jobs are.
        process = subprocess.Popen(
            ["env", "--default-signal=INT,QUIT", SCRIPT, "run", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment,
            start_new_session=True)
        return process, process.stdout.readline().strip()

    def refused(self, why, *words, **environment):
        done = self.call(*words, **environment)
        expect(done.returncode == 1 and done.stderr.count("\n") == 1 and why in done.stderr, f"{words}, {why}: {done.returncode} {done.stderr!r}")

    def nothing_is_left(self, url, patience=0.0):
        wait_for("the end of the server", lambda: not answers(url), max(patience, 0.1))
        left = lambda: [os.path.join(folder, name) for folder, folders, files in os.walk(self.temporary) for name in folders + files]
        wait_for(f"an empty {self.temporary}", lambda: left() == [os.path.dirname(self.folder)], max(patience, 0.1))


def answers(url):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(URL.fullmatch(url + "\n")[2]))) == 0


def query(url, text):
    return run(["psql", "-X", "-w", "-At", "-c", text, url]).strip()


def started_and_stopped(_):
    """The role owns its database and may make others, but is no superuser; only loopback and the socket in the folder lead in; stop removes all."""
    with Place() as place:
        url = place.start()
        said = query(url, "SELECT current_user, current_database(), getdatabaseencoding(), datcollate, rolcreatedb, rolsuper, "
                          "current_setting('server_version_num')::int >= 150000, current_setting('fsync'), current_setting('max_connections') "
                          "FROM pg_database, pg_roles WHERE datname = current_database() AND rolname = current_user")
        expect(said == "earshot|earshot|UTF8|C|t|f|t|off|400", f"who and where: {said}")
        expect(query(url, "CREATE DATABASE another") == "CREATE DATABASE", "another database")
        expect(query(url, "CREATE TABLE rooms (id text)") == "CREATE TABLE", "a table")
        password, port = URL.fullmatch(url + "\n").groups()
        done = subprocess.run(["psql", "-X", "-w", "-c", "SELECT 1", url.replace(password, "0" * 32)], capture_output=True, text=True, check=False)
        expect("password authentication failed" in done.stderr, f"another password: {done.stderr!r}")
        expect(os.path.exists(f"{place.folder}/cluster/.s.PGSQL.{port}"), "the socket is in the folder")
        place.refused("cluster exists", "start", place.folder)
        expect(place.call("stop", place.folder).returncode == 0, "it stops")
        place.nothing_is_left(url)
        place.refused("there is no server", "stop", place.folder)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            place.refused("is taken", "start", place.folder, str(taken.getsockname()[1]))
        place.refused("is no IPv4", "start", place.folder, EARSHOT_POSTGRES_LISTEN="everywhere")
        place.nothing_is_left(url)


def killed_before_stop(_):
    """stop removes a server whose first process was killed, and says nothing; then the same folder serves again."""
    with Place() as place:
        for _ in range(2):
            url = place.start()
            with open(f"{place.folder}/cluster/data/postmaster.pid", encoding="utf-8") as file:
                os.kill(int(file.readline()), signal.SIGKILL)
            done = place.call("stop", place.folder)
            expect(done.returncode == 0 and not done.stderr, f"stop of a dead one: {done.stderr!r}")
            place.nothing_is_left(url)


def ran(_):
    """run hands its input on and the command's code back; signals reach the command; nothing is left, even when run itself is killed."""
    with Place() as place:
        asks = 'echo "$EARSHOT_TEST_POSTGRES $PGHOST $LC_ALL"; psql -X -w -At -c "SELECT 6 * 7" "$EARSHOT_TEST_POSTGRES"; exit 7'
        done = place.call("run", "bash", "-c", asks)
        lines = done.stdout.splitlines()
        expect(done.returncode == 7 and not done.stderr and lines[1:] == ["42"], f"a command: {done.returncode} {done.stdout!r} {done.stderr!r}")
        url, *others = lines[0].split(" ")
        expect(others == ["nowhere.invalid", "C.UTF-8"], f"the command has its caller's environment: {others}")
        place.nothing_is_left(url)
        done = place.call("run", "/no/such/command")
        expect(done.returncode == 127, f"a command that is not there: {done.returncode} {done.stderr!r}")
        process, url = place.background(*WAITS)
        expect(query(url, "SELECT 1") == "1", "it serves while the command runs")
        process.stdin.close()
        expect(process.wait(120) == 0, f"the command's end: {process.returncode}")
        place.nothing_is_left(url)
        for number in [signal.SIGTERM, signal.SIGINT]:
            process, url = place.background(*WAITS)
            process.send_signal(number)
            expect(process.wait(120) == 128 + number, f"{number.name}: {process.returncode}")
            place.nothing_is_left(url)
        process, url = place.background(*WAITS)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        place.nothing_is_left(url, patience=15)


def owner_ended(_):
    """A server with an owner goes when this one has ended, also when nobody has asked for its end."""
    with Place() as place:
        with subprocess.Popen(["sleep", "600"]) as owner:
            url = place.start(EARSHOT_POSTGRES_OWNER=str(owner.pid))
            expect(answers(url), "it serves")
            owner.kill()
            # Not waited for: who has ended is gone for the server.
            place.nothing_is_left(url, patience=15)
        place.refused("no process", "start", place.folder, EARSHOT_POSTGRES_OWNER=str(owner.pid))


def standby_promoted(_):
    """A standby has each commit before it is answered. Promoted, it writes, and its former primary becomes its standby."""
    with Place() as place:
        slow = {"EARSHOT_POSTGRES_FAST": ""}
        url, other = place.start(**slow), place.folder + "-standby"
        password, port = URL.fullmatch(url + "\n").groups()
        try:
            done = place.call("standby", other, place.folder, **slow)
            expect(re.fullmatch(r"127\.0\.0\.1:\d+\n", done.stdout) and not done.stderr, f"an address alone: {done.stdout!r} {done.stderr!r}")
            standby = url.replace(f"127.0.0.1:{port}", done.stdout.strip())
            query(url, "CREATE TABLE rooms (id text)")
            expect(query(standby, "SELECT pg_is_in_recovery(), count(*) FROM rooms") == "t|0", "the standby has the table")
            expect(place.call("kill", other).returncode == 0, "the standby is killed")
            words = ["psql", "-X", "-w", "-c", "INSERT INTO rooms VALUES ('lonely')", url]
            with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as waits:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    waits.wait(2)
                expect(waits.returncode is None, f"a commit without the standby ended: {waits.returncode}")
                waits.send_signal(signal.SIGINT)
                said = waits.stderr.read()
                expect("canceling wait for synchronous replication" in said, f"a commit without the standby: {said!r}")
            expect(place.call("again", other).returncode == 0, "the standby is back")
            query(url, "INSERT INTO rooms VALUES ('kept')")
            for words in [("kill", place.folder), ("promote", other), ("stop", place.folder), ("standby", place.folder, other)]:
                done = place.call(*words, **slow)
                expect(done.returncode == 0, f"{words}: {done.stderr!r}")
            former = url.replace(f"127.0.0.1:{port}", done.stdout.strip())
            query(standby, "INSERT INTO rooms VALUES ('new')")
            said = query(former, "SELECT pg_is_in_recovery(), string_agg(id, ' ' ORDER BY id) FROM rooms")
            expect(said == "t|kept lonely new", f"the former primary as a standby: {said}")
            place.refused("there is no server", "standby", other + "-2", other + "-3")
        finally:
            place.call("stop", other)
        expect(place.call("stop", place.folder).returncode == 0, "both stop")
        place.nothing_is_left(url)


CHECKS = [started_and_stopped, killed_before_stop, ran, owner_ended, standby_promoted]
