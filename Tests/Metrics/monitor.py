"""A real Prometheus on a free port of 127.0.0.1, and what the files in deploy/ ask of it."""
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ALERTS = os.path.join(ROOT, "deploy", "prometheus", "alerts.yaml")
DASHBOARD = os.path.join(ROOT, "deploy", "grafana", "earshot.json")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def promtool(*arguments, text=None, folder=None):
    """Runs promtool and returns what it prints; raises when it finds a mistake."""
    done = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        raise AssertionError(f"promtool {' '.join(arguments)}: {said[-1500:]}")
    return said


def alerts():
    """The alert rules as (name, expression)."""
    with open(ALERTS, encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"- alert: (\w+)\n\s+expr: (?:\|\n\s+)?(.+)\n", text)
    assert len(found) == text.count("- alert:"), "an alert whose expression was not found"
    return found


def panels():
    """The dashboard's queries as (title, expression), with its variables filled in."""
    with open(DASHBOARD, encoding="utf-8") as file:
        dashboard = json.load(file)
    found = []
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", "1m").replace("$job", "earshot").replace("$instance", ".+")
            found.append((panel["title"], query))
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            series = re.fullmatch(r"label_values\((.+), \w+\)", variable["definition"])[1]
            found.append((f"variable {variable['name']}", series.replace("$job", "earshot")))
    return found


def names(expression):
    """The metrics that an expression is about."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    bare = re.sub(r"(by|without|on|ignoring) *\([^)]*\)", "", bare)
    return set(re.findall(r"\b(?:earshot|process)_\w+|\bup\b", bare))


def quick(text):
    """The alert rules for a test: what takes minutes there takes seconds, and a delivery is old after five. What each compares stays."""
    text = re.sub(r"\[\d+m\]", "[15s]", text)
    text = text.replace("earshot_webhook_oldest_age_seconds > 300", "earshot_webhook_oldest_age_seconds > 5")
    return re.sub(r"( +for: )\S+", r"\g<1>3s", text)


class Prometheus:
    """Scrapes `servers` (triples of a name, an address and its token) every second, by rules made quick; or, `as_shipped`, by the rules and intervals of
    deploy/prometheus."""

    def __init__(self, folder, servers, as_shipped=False):
        self.folder, self.port = os.path.join(folder, "as-shipped" if as_shipped else "quick"), free_port()
        os.makedirs(self.folder, exist_ok=True)
        folder, interval = self.folder, "15s" if as_shipped else "1s"
        shutil.rmtree(os.path.join(folder, "tsdb"), ignore_errors=True)
        with open(ALERTS, encoding="utf-8") as file, open(os.path.join(folder, "alerts.yaml"), "w", encoding="utf-8") as out:
            out.write(file.read() if as_shipped else quick(file.read()))
        jobs = []
        for name, address, token in servers:
            jobs.append({
                "job_name": f"earshot-{name}", "authorization": {"credentials": token},
                "static_configs": [{"targets": [address], "labels": {"instance": name, "job": "earshot"}}]})
        with open(os.path.join(folder, "prometheus.yaml"), "w", encoding="utf-8") as out:
            # JSON is YAML.
            json.dump({"global": {"scrape_interval": interval, "scrape_timeout": "1s", "evaluation_interval": interval},
                       "rule_files": ["alerts.yaml"], "scrape_configs": jobs}, out)
        os.chmod(os.path.join(folder, "prometheus.yaml"), 0o600)
        with open(os.path.join(folder, "prometheus.log"), "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/tsdb",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                    return self
            except OSError:
                time.sleep(0.1)
        with open(os.path.join(self.folder, "prometheus.log"), encoding="utf-8", errors="replace") as file:
            raise RuntimeError(f"Prometheus did not start: {file.read()[-800:]}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _get(self, path, **query):
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query.get('query', path)}: {error.read().decode(errors='replace')[:300]}") from None

    def query(self, expression):
        return self._get("query", query=expression)["result"]

    def value(self, expression):
        """The first value; None without any."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def known(self):
        """The names of all metrics that were scraped."""
        return set(self._get("label/__name__/values"))

    def firing(self):
        """(alert, server) of all that fire."""
        return {(each["labels"]["alertname"], each["labels"].get("instance")) for each in self._get("alerts")["alerts"] if each["state"] == "firing"}
