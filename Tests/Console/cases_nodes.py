"""The nodes of a cluster, on a PostgreSQL of its own."""
import contextlib
import os
import subprocess

from looks import case, opened, told, visit
from server import Device, Server, wait_for

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "postgres.sh")
PANEL = "[...document.querySelectorAll('section')].find((each) => each.querySelector('h2')?.textContent === 'Nodes')"


@contextlib.contextmanager
def database(folder):
    """Its URL."""
    environment = {**os.environ, "EARSHOT_POSTGRES_FAST": "1", "EARSHOT_POSTGRES_OWNER": str(os.getpid())}
    started = subprocess.run([SCRIPT, "start", folder], capture_output=True, text=True, env=environment, timeout=120, check=True)
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([SCRIPT, "stop", folder], capture_output=True, timeout=60, check=False)


def node(server, name, url, token=None):
    """A server of its own; `token`: what another node has made, which is good at all."""
    folder = os.path.join(server.folder, name)
    os.makedirs(os.path.join(folder, "data"), mode=0o700)
    if token:
        with open(os.path.join(folder, "data", "admin-token"), "w", encoding="utf-8") as file:
            file.write(token)
    key = "a-key-of-the-cluster-for-the-console"
    return Server(server.binary, folder, settings={"EARSHOT_DATABASE_URL": url, "EARSHOT_CLUSTER_NAME": name, "EARSHOT_CLUSTER_KEY": key})


@case(expected=("WebSocket", "404", "ERR_CONNECTION_REFUSED", "503"))
def nodes(server, browser, keep):
    """Each node of a cluster is listed at any, with its pushes; one is drained from another."""
    with database(os.path.join(server.folder, "postgres")) as url, node(server, "a", url) as one, node(server, "b", url, one.token) as other:
        with Device(other, "live/cam"):
            wait_for("the push", lambda: other.is_live("cam"))
            page = opened(one, browser)
            visit(page, "#/server")
            page.wait(f"{PANEL} && !{PANEL}.hidden", "the nodes")
            page.wait(f"[...{PANEL}.querySelectorAll('tbody tr')].map((each) => each.cells[2].innerText).join() === '0,1'", "the push of the other node")
            rows = f"[...{PANEL}.querySelectorAll('tbody tr')].map((each) => each.innerText)"
            page.wait(f"{rows}.every((row) => row.includes('running')) && {rows}.filter((row) => row.includes('(keeper)')).length === 1", "both, and their keeper")
            told_rows = page.run(rows)
            assert len(told_rows) == 2 and told_rows[0].startswith("a (this one)") and told_rows[1].startswith("b"), told_rows
            keep(page)
            page.click("Drain", within=f"{PANEL}.querySelectorAll('tbody tr')[1]")
            page.wait("Boolean(document.querySelector('dialog[open]'))", "the question")
            keep(page, "nodes-drain")
            page.click("Drain", within="document.querySelector('dialog[open]')")
            told(page, "Began to end the server")
            wait_for("the drain", lambda: other.api("server")["drain"] is not None)
            assert one.api("server")["drain"] is None
        page.wait(f"/gone|lost/.test([...{PANEL}.querySelectorAll('tbody tr')][1].innerText)", "its end", 60)
        keep(page, "nodes-gone")
