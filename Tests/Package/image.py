"""The last stage of deploy/Dockerfile without a container engine: its commands in a clean Debian, its server as its user."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

from tools import ROOT, Failed, expect, get, run, wait_for


def stage(number=-1):
    """The instructions of a stage, by default the last one: (word, text) each, continued lines joined."""
    with open(os.path.join(ROOT, "deploy", "Dockerfile"), encoding="utf-8") as file:
        lines = [line for line in file.read().replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    starts = [index for index, line in enumerate(lines) if line.startswith("FROM ")]
    begin = starts[number]
    end = min([start for start in starts if start > begin], default=len(lines))
    return [tuple(line.split(None, 1)) for line in lines[begin + 1:end]]


def check(debian, deb, folder, say):
    """Installs the package as the Dockerfile says, then starts what it starts."""
    image = type(debian).__new__(type(debian))
    image.root = os.path.join(folder, "image")
    run(["cp", "-a", debian.root, image.root], 300)
    for word, text in stage():
        if word == "COPY":
            shutil.copy(deb, image.path(text.split()[-1]))
        elif word == "RUN":
            image.run("sh", "-c", text)
    expect(not os.path.exists(image.path("/tmp/earshot.deb")), "the package is not left in the image")
    user = dict(stage())["USER"]
    status = os.stat(image.path("/var/lib/earshot"))
    expect(user == f"{status.st_uid}:{status.st_gid}", f"the data's folder belongs to {status.st_uid}:{status.st_gid}, the user is {user}")
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, os.path.join(ROOT, "Tests/Package"), "image", image.root]
    done = subprocess.run(words, check=False, timeout=120, stdin=subprocess.DEVNULL)
    expect(done.returncode == 0, "the image's server could be used: the lines above say what failed")
    shutil.rmtree(image.root)
    say(f"the Dockerfile's last stage: installs, starts as {user}, answers")


def use(arguments):
    """In the namespaces: what a container engine would start, and its health check."""
    root = arguments[0]
    instructions = dict(stage())
    run(["mount", "-t", "proc", "proc", f"{root}/proc"])
    run(["ip", "link", "set", "lo", "up"])
    environment = shlex.split(instructions["ENV"])
    under = ["chroot", f"--userspec={instructions['USER']}", root, "/usr/bin/env", "-i", "-C", instructions["WORKDIR"], "PATH=/usr/bin:/bin", *environment]
    log = tempfile.TemporaryFile("w+")
    server = subprocess.Popen([*under, *json.loads(instructions["ENTRYPOINT"]), *json.loads(instructions["CMD"])], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for("/readyz", lambda: server.poll() is not None or get("http://127.0.0.1:8080/readyz")[0] == 200)
        log.seek(0)
        expect(server.poll() is None, f"the server ended: {log.read()[-800:]}")
        with open("/proc/net/tcp", encoding="utf-8") as file:
            open_ports = {line.split()[1] for line in file.readlines()[1:] if line.split()[3] == "0A"}
        expect({"00000000:078F", "00000000:1F90"} <= open_ports, f"1935 and 8080 are open to all: {open_ports}")
        health = json.loads(re.search(r"CMD (\[.*\])", instructions["HEALTHCHECK"])[1])
        if not re.search(rf"^ *{health[1]} ", run([*under, "earshot", "--help"]), re.M):
            print(f"package: this program has no `{' '.join(health)}`: the health check was not tried", flush=True)
        else:
            run([*under, *health])
            server.send_signal(signal.SIGSTOP)
            sick = subprocess.run(["timeout", "-k", "1", "10", *under, *health], capture_output=True, check=False).returncode
            server.send_signal(signal.SIGCONT)
            expect(sick != 0, "the health check fails when nobody answers")
        server.send_signal(signal.SIGTERM)
        expect(server.wait(10) == 0, "it ends well")
    except Failed as error:
        sys.exit(f"package: image: {error}")
    finally:
        server.kill()
