"""Cases: the page, the queries, a healthy server, and ills."""
import http.client
import http.server
import os
import signal
import threading
import time
import urllib.error
import urllib.request

from certificate import certificate
from monitor import ROOT, Prometheus, alerts, names, panels, promtool
from peers import SlowViewer
from server import Device, Server, wait_for
from standstill import Standstill

CASES = []
# Of nodes that share a registry; a server that is alone has none of them.
OF_CLUSTERS = {f"earshot_cluster_{name}" for name in ("nodes", "keeper", "signal_lag_seconds", "lease_seconds", "clock_ahead_seconds")}


def case(function):
    CASES.append(function)
    return function


def scrape(server):
    request = urllib.request.Request(f"http://{server.http}/metrics", headers={"Authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def started(binary, folder, name, days=90, **settings):
    place = os.path.join(folder, name)
    os.makedirs(place)
    everything = {**certificate(place, days), "EARSHOT_METRICS_STREAMS": "live/shown-*", **{f"EARSHOT_{key}": value for key, value in settings.items()}}
    return Server(binary, place, settings=everything)


class Viewer:
    """Plays over HTTP-FLV and reads all that comes."""

    def __init__(self, server, path):
        self.answer = urllib.request.urlopen(f"http://{server.http}{path}", timeout=30)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while self.answer.read(1 << 14):
                pass
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass

    def close(self):
        self.answer.fp.raw._sock.shutdown(2)  # noqa: SLF001: nothing else ends a read on another thread.


class BackEnd:
    """Takes webhooks on a free port of 127.0.0.1."""

    def __init__(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802: the library's name
                self.rfile.read(int(self.headers["Content-Length"]))
                owner.deliveries += 1
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.deliveries = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/deliveries"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@case
def files(binary, folder):
    """The rules in deploy/ are valid, and each alert fires when it should, by promtool's clock."""
    place = os.path.join(ROOT, "deploy", "prometheus")
    promtool("check", "rules", os.path.join(place, "alerts.yaml"))
    promtool("test", "rules", "alerts.test.yaml", folder=place)
    with open(os.path.join(place, "alerts.test.yaml"), encoding="utf-8") as file:
        tested = file.read()
    untested = [name for name, _ in alerts() if f'alertname="{name}"' not in tested]
    assert not untested, f"alerts.test.yaml never sees these fire: {untested}"
    with open(os.path.join(ROOT, "docs", "operations", "watching.md"), encoding="utf-8") as file:
        text = file.read()
    unexplained = [name for name, _ in alerts() if f"`{name}`" not in text]
    assert not unexplained, f"docs/operations/watching.md does not say what to do at {unexplained}"
    # The example names a file with a token.
    for name in ("prometheus.yaml", "alerts.yaml"):
        with open(os.path.join(place, name), encoding="utf-8") as file, open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(file.read())
    with open(os.path.join(folder, "earshot-token"), "w", encoding="utf-8") as out:
        out.write("earshot_none\n")
    promtool("check", "config", "prometheus.yaml", folder=folder)


@case
def queries(binary, folder):
    """Every query of alerts and dashboard is understood, and the metrics that it is about exist."""
    # Only a target has a series of what waits for it.
    with (started(binary, folder, "well", WEBHOOKS_URLS="http://127.0.0.1:9/") as server, Device(server, "live/shown-one", audio="sine"),
          Device(server, "live/two", audio="sine")):
        wait_for("the pushes", lambda: server.is_live("shown-one") and server.is_live("two"))
        viewers = [Viewer(server, f"/live/{name}.{form}") for name in ("shown-one", "two") for form in ("flv", "mp4")]
        with Prometheus(folder, [("well", server.http, server.token)]) as prometheus:
            page = scrape(server)
            said = promtool("check", "metrics", text=page)
            assert not said, said
            wait_for("a scrape with streams", lambda: prometheus.value("earshot_stream_live") == 1)
            wait_for("bytes", lambda: (prometheus.value('rate(earshot_sent_bytes_total{protocol="http-flv"}[5s])') or 0) > 0)
            known, asked = prometheus.known(), panels() + alerts()
            assert len(asked) > 80, len(asked)
            for title, query in asked:
                prometheus.query(query)
                missing = names(query) - known - OF_CLUSTERS
                assert names(query) and not missing, f"{title}: {query}: no metric {sorted(missing)}"
            # A panel that shows nothing beside running streams asks for the wrong labels.
            quiet = [title for title, query in panels() if " > 0" not in query and "topk" not in query and not prometheus.query(query)]
            assert quiet in ([], ["Apps now"]), quiet
        for viewer in viewers:
            viewer.close()


@case
def silence(binary, folder):
    """No alert fires, by the rules as shipped or made quick, while a server works as it should, for a minute (EARSHOT_HEALTHY_SECONDS, an hour in
    `make soak`): devices stay, or come and go; viewers, talk, recordings, webhooks, and calls with a right token."""
    seconds = float(os.environ.get("EARSHOT_HEALTHY_SECONDS", "60"))
    with BackEnd() as back_end, started(
            binary, folder, "well", WEBHOOKS_URLS=back_end.url, OUTBOUND_ALLOW_PRIVATE="127.0.0.0/8", RECORDING_APPS="live",
            RECORDING_RETENTION="2m") as server, Device(server, "live/shown-one", audio="sine"), Device(server, "live/two", audio="sine"):
        wait_for("the pushes", lambda: server.is_live("shown-one") and server.is_live("two"))
        lasting = [Viewer(server, f"/live/{name}.{form}") for name in ("shown-one", "two") for form in ("flv", "mp4")]
        targets = [("well", server.http, server.token)]
        with Device(server, "talk/two/ann", source=None, audio="sine=330"), Prometheus(folder, targets) as quick, Prometheus(
                folder, targets, as_shipped=True) as shipped:
            end, rounds, told, machine = time.monotonic() + seconds, 0, time.monotonic(), Standstill()
            while time.monotonic() < end:
                rounds += 1
                name = f"guest-{rounds % 4}"
                with Device(server, f"live/{name}", audio="sine"):
                    wait_for("a guest's push", lambda name=name: server.is_live(name))
                    viewers = [Viewer(server, f"/live/{name}.flv"), Viewer(server, "/live/two.flv")]
                    stay = time.monotonic() + min(20, seconds / 4)
                    while time.monotonic() < stay:
                        fired = quick.firing() | shipped.firing()
                        assert not fired, f"after {seconds - (end - time.monotonic()):.0f} s: {fired}"
                        server.api("rooms?pageSize=50")
                        time.sleep(1)
                    for viewer in viewers:
                        viewer.close()
                if time.monotonic() - told > 300:
                    told = time.monotonic()
                    print(f"       {(seconds - (end - told)) / 60:.0f} minutes without an alert", flush=True)
            assert quick.value(f"max_over_time(scrape_duration_seconds[{int(seconds)}s])") < 0.5 + machine.longest
            for one in (quick, shipped):
                ever = one.query(f'count by (alertname) (count_over_time(ALERTS{{alertstate="firing"}}[{int(seconds) + 60}s]))')
                assert not ever, ever
            assert back_end.deliveries > rounds, f"{back_end.deliveries} webhooks came of {rounds} pushes"
            page = scrape(server)
            print(f"       {rounds} guests, {back_end.deliveries} webhooks, {number(page, 'process_cpu_seconds_total') / seconds:.1%} of a core")
        for viewer in lasting:
            viewer.close()


@case
def hasty(binary, folder):
    """A scrape every 10 ms, for ten seconds, holds nobody up."""
    with started(binary, folder, "well") as server, Device(server, "live/shown-one", audio="sine"):
        wait_for("the push", lambda: server.is_live("shown-one"))
        viewer = Viewer(server, "/live/shown-one.flv")
        took, lags, cpu, began = [], [], None, time.monotonic()
        while time.monotonic() - began < 10 or len(took) < 200:
            start = time.monotonic()
            page = scrape(server)
            took.append(time.monotonic() - start)
            lags.append(number(page, "earshot_loop_lag_seconds"))
            cpu = cpu or number(page, "process_cpu_seconds_total")
            time.sleep(max(0, 0.01 - took[-1]))
        seconds = time.monotonic() - began
        share = (number(page, "process_cpu_seconds_total") - cpu) / seconds
        # A machine may stand still for a moment; what scrapes hold up is late most of the time.
        half, late = sorted(took)[len(took) // 2], sorted(lags)[len(lags) // 2]
        print(f"       {len(took)} scrapes in {seconds:.0f} s, half within {half * 1000:.1f} ms, {share:.0%} of a core, a loop {late * 1000:.0f} ms late")
        assert late < 0.1 and half < 0.04, (len(took), late, half)
        assert number(page, 'earshot_closed_total{reason="too_slow"}') == 0
        viewer.close()


def number(page, name):
    return next(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(f"{name} "))


@case
def ills(binary, folder):
    """Planted ills fire their alerts, and those of no other server."""
    free = os.statvfs(folder)
    short = free.f_bavail * free.f_frsize * 2 // 3
    sick = started(
        binary, folder, "sick", days=5, DATA_MIN_FREE=str(short), WEBHOOKS_URLS="http://127.0.0.1:9/none", OUTBOUND_ALLOW_PRIVATE="127.0.0.0/8",
        LIMITS_VIEWERS_PER_STREAM="1")
    late = started(binary, folder, "late")
    slow = started(binary, folder, "slow", RELAY_MAX_BEHIND="60s", RELAY_SKIP_BEHIND="50s")
    well = started(binary, folder, "well")
    servers = [("sick", sick), ("late", late), ("slow", slow), ("well", well)]
    picture = "color=c=red:size=320x180:rate=25,noise=alls=60:allf=t"
    with sick, late, slow, well, Device(sick, "live/one"), Device(slow, "live/one", source=picture), Device(well, "live/one"), Prometheus(
            folder, [(name, server.http, server.token) for name, server in servers]) as prometheus:
        for _, server in (servers[0], servers[2], servers[3]):
            wait_for("the push", lambda server=server: server.is_live("one"))
        expected = {("EarshotDiskLow", "sick"), ("EarshotWebhooksWait", "sick"), ("EarshotCertificateEnds", "sick"), ("EarshotLimitsHit", "sick"),
                    ("EarshotTokensGuessed", "well"), ("EarshotLoopsLag", "late"), ("EarshotViewersBehind", "slow"), ("EarshotDown", "late")}
        # Prometheus does not see a counter rise before the first scrape.
        wait_for("the first scrapes", lambda: (prometheus.value("count(up == 1)") or 0) == len(servers))
        seen, stop = set(), threading.Event()
        first = Viewer(sick, "/live/one.flv")
        with SlowViewer(slow.http, "/live/one.flv", 500):
            threads = [threading.Thread(target=work, args=(stop, server)) for work, server in ((refused, sick), (guess, well), (stagger, late))]
            for thread in threads:
                thread.start()
            try:
                def all_but_down():
                    seen.update(prometheus.firing())
                    return expected - {("EarshotDown", "late")} <= seen
                try:
                    wait_for("the alerts", all_but_down, 150)
                except TimeoutError:
                    raise AssertionError(f"did not fire: {sorted(expected - seen)}; fired: {sorted(seen)}") from None
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
        late.process.kill()
        late.process.wait()
        wait_for("the alert", lambda: ("EarshotDown", "late") in prometheus.firing())
        seen.update(prometheus.firing())
        # A stopped process misses scrapes, a slow stream may be judged bad, and wrong tokens are refused by a limit.
        allowed = expected | {("EarshotOverloaded", "late"), ("EarshotStreamsBad", "slow"), ("EarshotRecordingsDiskLow", "sick")}
        assert seen <= allowed, f"fired, too: {sorted(seen - allowed)}"
        print(f"       fired: {', '.join(sorted(f'{alert[7:]} ({server})' for alert, server in seen))}")
        first.close()


def refused(stop, server):
    """Viewers beyond the limit."""
    while not stop.wait(1):
        try:
            urllib.request.urlopen(f"http://{server.http}/live/one.flv", timeout=10).close()
        except urllib.error.HTTPError:
            pass


def guess(stop, server):
    """Wrong tokens, a few hundred in all."""
    for _ in range(400):
        if stop.wait(0.01):
            return
        request = urllib.request.Request(f"http://{server.http}/api/v1/rooms", headers={"Authorization": "Bearer earshot_wrong"})
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except urllib.error.HTTPError:
            pass


def stagger(stop, server):
    """Stops the process for most of the time, as a machine with too much to do."""
    while not stop.is_set():
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.35)
        server.process.send_signal(signal.SIGCONT)
        time.sleep(0.15)
