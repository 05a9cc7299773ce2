"""nginx as a reverse proxy, on a port of its own on 127.0.0.1, as the author's guide sets it."""
import os
import shutil
import socket
import subprocess

import guide
from server import wait_for

# The address by which all clients of the proxy go.
CLIENT = "192.0.2.7"


class Nginx:
    """Hands everything on, WebSockets too, with the name that the client used and its address."""

    def __init__(self, server):
        self.folder = os.path.join(server.folder, "nginx")
        os.makedirs(self.folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        path = os.path.join(self.folder, "nginx.conf")
        # As from a client elsewhere: one of this machine counts as unknown behind a proxy.
        settings = guide.here(guide.blocks("mesh.md", "nginx")[0], server)
        assert "$proxy_add_x_forwarded_for" in settings
        settings = settings.replace("$proxy_add_x_forwarded_for", CLIENT)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""daemon off;
master_process off;
pid {self.folder}/pid;
error_log {self.folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {self.folder}/body;
    proxy_temp_path {self.folder}/proxy;
    fastcgi_temp_path {self.folder}/fastcgi;
    uwsgi_temp_path {self.folder}/uwsgi;
    scgi_temp_path {self.folder}/scgi;
    map $http_upgrade $connection_upgrade {{ default upgrade; "" close; }}
    server {{
        listen 127.0.0.1:{self.port};
{settings}    }}
}}
""")
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        with open(os.path.join(self.folder, "out.log"), "wb") as out:
            self.process = subprocess.Popen([program, "-p", self.folder, "-c", path], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

        def answers():
            if self.process.poll() is not None:
                with open(os.path.join(self.folder, "out.log"), encoding="utf-8") as file:
                    raise RuntimeError(f"nginx ended: {file.read()[-500:]}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_for("nginx", answers, patience=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
