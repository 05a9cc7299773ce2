"""A package's life in a clean Debian: installed, started by the unit's command, used, upgraded, removed, purged.

The Debian is a folder that mmdebstrap fills from the mirrors of this machine's apt. Its daemons do not start: policy-rc.d answers 101 and
notes who asked. The server runs in a network namespace of its own, so that its default ports are free and nobody else reaches it.
"""
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import booted
import build_stage
import image
from tools import ROOT, Failed, Manager, expect, frames, get, push, run, toolchain_libraries, wait_for

POLICY = "#!/bin/sh\necho \"$@\" >>/var/tmp/asked-to-start\nexit 101\n"
# Paths that the system itself changes, or that are apt's and dpkg's own.
KEPT = re.compile(r"^(/proc|/sys|/dev|/run|/tmp|/var/(cache|log|lib/(apt|dpkg|systemd)|tmp)|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|"
                  r"/etc/ld\.so\.cache|/etc/\.pwd\.lock|/root/)")


def say(text):
    print(f"package: {text}", flush=True)


class Debian:
    """A clean Debian in a folder."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "debian")
        codename = re.search(r"^VERSION_CODENAME=(\w+)", open("/etc/os-release", encoding="utf-8").read(), re.M)[1]
        run(["mmdebstrap", "--quiet", "--variant=minbase", codename, self.root], patience=900)
        policy = os.path.join(self.root, "usr/sbin/policy-rc.d")
        with open(policy, "w", encoding="utf-8") as file:
            file.write(POLICY)
        os.chmod(policy, 0o755)
        shutil.copy("/etc/resolv.conf", os.path.join(self.root, "etc/resolv.conf"))

    def path(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def run(self, *words, patience=600):
        """A command inside, with processes and mounts of its own, as root."""
        inside = "mount -t proc proc /proc && mount -t devpts devpts /dev/pts 2>/dev/null; exec \"$@\""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}
        return run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "chroot", self.root, "/bin/sh", "-c", inside, "sh", *words],
                   patience, env=environment)

    def apt(self, *words):
        return self.run("apt-get", "-q", "-y", "-o", "Dpkg::Options::=--force-confold", "--no-install-recommends", *words)

    def files(self):
        out = run(["find", self.root, "-xdev", "-printf", "/%P\n"])
        return {line for line in out.splitlines() if not KEPT.match(line)}

    def owner(self, path):
        status = os.stat(self.path(path))
        names = {}
        for kind in ["passwd", "group"]:
            with open(self.path(f"/etc/{kind}"), encoding="utf-8") as file:
                names[kind] = {int(line.split(":")[2]): line.split(":")[0] for line in file}
        return f"{names['passwd'].get(status.st_uid)}:{names['group'].get(status.st_gid)} {status.st_mode & 0o7777:o}"

    def processes(self):
        found = []
        for link in glob.glob("/proc/[0-9]*/root"):
            try:
                if os.readlink(link).startswith(self.root):
                    found.append(open(link[:-4] + "comm", encoding="utf-8").read().strip())
            except OSError:
                pass
        return found


def lend_toolchain(debian, deb, folder):
    """Puts the toolchain's libraries in, at the same paths, for a program that was built to be debugged."""
    run(["sh", "-c", 'dpkg-deb --fsys-tarfile "$0" | tar -x -C "$1" ./usr/bin/earshot', deb, folder])
    for path in toolchain_libraries(f"{folder}/usr/bin/earshot"):
        os.makedirs(os.path.dirname(debian.path(path)), exist_ok=True)
        shutil.copy(path, debian.path(path))


def next_version(deb, folder):
    """The same package with a higher version and settings that changed: what an upgrade brings."""
    tree = os.path.join(folder, "next")
    run(["dpkg-deb", "-R", deb, tree])
    control = os.path.join(tree, "DEBIAN/control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    version = re.search(r"^Version: (.*)$", text, re.M)[1]
    with open(control, "w", encoding="utf-8") as file:
        file.write(text.replace(f"Version: {version}", f"Version: {version}+next"))
    with open(os.path.join(tree, "etc/earshot/earshot.yaml"), "a", encoding="utf-8") as file:
        file.write("# A line that the next version brings.\n")
    path = os.path.join(folder, "next.deb")
    run(["dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "-b", tree, path], patience=300)
    return path, f"{version}+next"


def installed(debian, deb):
    before = debian.files()
    shutil.copy(deb, debian.path("/tmp/earshot.deb"))
    debian.run("apt-get", "-q", "update")
    begin = time.monotonic()
    debian.apt("install", *dependencies(deb))
    libraries = time.monotonic() - begin
    with_dependencies = debian.files()
    image.check(debian, deb, os.path.dirname(debian.root), say)
    begin = time.monotonic()
    debian.apt("install", "/tmp/earshot.deb")
    own = time.monotonic() - begin
    say(f"installed in {libraries + own:.0f} s: its libraries, with their download, in {libraries:.0f} s, itself in {own:.1f} s")
    expect(not debian.processes(), f"daemons run: {debian.processes()}")
    said = debian.run("earshot", "--version").strip()
    expect(re.fullmatch(r"earshot \d+\.\d+\.\d+\S*", said), said)
    expect(debian.owner("/var/lib/earshot") == "earshot:earshot 750", debian.owner("/var/lib/earshot"))
    expect(debian.owner("/etc/earshot/earshot.yaml") == "root:earshot 640", debian.owner("/etc/earshot/earshot.yaml"))
    for path in ["/usr/share/man/man1/earshot.1.gz", "/usr/share/man/man1/earshot-rooms.1.gz", "/usr/share/bash-completion/completions/earshot",
                 "/usr/share/zsh/vendor-completions/_earshot", "/usr/share/fish/vendor_completions.d/earshot.fish",
                 "/lib/systemd/system/earshot.service", "/usr/share/doc/earshot/README.md", "/usr/share/doc/earshot/copyright"]:
        expect(os.path.exists(debian.path(path)), f"{path} is installed")
    debian.run("earshot", "config", "check", "--config", "/etc/earshot/earshot.yaml")
    say(f"{said}: files, rights, user and settings are as they should be; nothing was started")
    return before, with_dependencies


def dependencies(deb):
    """Names of the packages that it depends on."""
    text = run(["dpkg-deb", "-f", deb, "Depends"])
    return [re.split(r"[ (:|]", name.strip())[0] for name in text.split(",")]


def using(debian, *expectations):
    """Starts the installed service in a network of its own, uses it, stops it."""
    words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", sys.executable, os.path.join(ROOT, "Tests/Package"), "use", debian.root]
    done = subprocess.run([*words, *expectations], check=False, timeout=180, stdin=subprocess.DEVNULL)
    expect(done.returncode == 0, "the installed server could be used: the lines above say what failed")


def use(arguments):
    """In the namespaces: the unit's command as the unit's user, a push and plays from outside of the folder, its commands inside."""
    root, port, rooms = arguments[0], arguments[1], int(arguments[2])
    run(["mount", "-t", "proc", "proc", f"{root}/proc"])
    run(["mount", "-t", "proc", "proc", "/proc"])
    run(["ip", "link", "set", "lo", "up"])
    unit = open(f"{root}/lib/systemd/system/earshot.service", encoding="utf-8").read()
    value = lambda name: re.search(rf"^{name}=(.*)$", unit, re.M)[1]
    expect(value("Type") == "notify", "the unit waits for READY")
    manager = Manager(f"{root}/run/earshot-notify")
    as_user = ["chroot", f"--userspec={value('User')}:{value('Group')}", root, "/usr/bin/env", "-i", "-C", value("WorkingDirectory"),
               "PATH=/usr/bin:/bin", "NOTIFY_SOCKET=/run/earshot-notify", "WATCHDOG_USEC=6000000"]
    log = tempfile.TemporaryFile("w+")
    begin = time.monotonic()
    server = subprocess.Popen([*as_user, *shlex.split(value("ExecStart"))], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for("READY", lambda: server.poll() is not None or "READY=1" in manager.lines())
        log.seek(0)
        expect(server.poll() is None, f"the server ended: {log.read()[-800:]}")
        say(f"ready {time.monotonic() - begin:.2f} s after its start, as {value('User')}")
        expect(get(f"http://127.0.0.1:{port}/readyz")[0] == 200, f"/readyz on port {port}")
        earshot = lambda *words: run([*as_user[:-2], "earshot", *words, "--server", f"http://127.0.0.1:{port}", "--data", "/var/lib/earshot"])
        known = json.loads(earshot("rooms", "list", "--json", "--all"))
        known = known["list"] if isinstance(known, dict) else known
        expect(len(known) == rooms, f"{rooms} rooms were kept: {known}")
        begin = time.monotonic()
        with push("rtmp://127.0.0.1:1935/live/cam1"):
            wait_for("the stream", lambda: "cam1" in earshot("streams", "list"))
            for url in ["rtmp://127.0.0.1:1935/live/cam1", f"http://127.0.0.1:{port}/live/cam1.m3u8", f"http://127.0.0.1:{port}/live/cam1.flv"]:
                expect(frames(url) >= 25, f"pictures of {url}")
            manager.wait("STATUS=1 publisher")
        say(f"pushed to and played over RTMP, HLS and FLV in {time.monotonic() - begin:.1f} s")
        expect("WATCHDOG=1" in manager.lines(), "it gives signs of life")
        begin = time.monotonic()
        server.send_signal(signal.SIGTERM)
        expect(server.wait(10) == 0, "it ends well")
        manager.wait("STOPPING=1")
        say(f"stopped in {time.monotonic() - begin:.1f} s")
    finally:
        server.kill()
        manager.close()
        os.unlink(f"{root}/run/earshot-notify")


def upgraded(debian, deb, version):
    yaml = debian.path("/etc/earshot/earshot.yaml")
    with open(yaml, encoding="utf-8") as file:
        text = file.read()
    mine = text.replace("  #listen: 127.0.0.1:8080", "  listen: 127.0.0.1:8090")
    expect(mine != text, "earshot.yaml has http.listen")
    with open(yaml, "w", encoding="utf-8") as file:
        file.write(mine)
    os.chmod(yaml, 0o600)
    os.chown(yaml, os.stat(debian.path("/var/lib/earshot")).st_uid, 0)
    shutil.copy(deb, debian.path("/tmp/next.deb"))
    debian.apt("install", "/tmp/next.deb")
    expect(debian.run("dpkg-query", "-W", "-f", "${Version}", "earshot") == version, "the new version is installed")
    with open(yaml, encoding="utf-8") as file:
        expect(file.read() == mine, "settings changed by hand stay")
    expect(debian.owner("/etc/earshot/earshot.yaml") == "earshot:root 600", "and so do their rights")
    expect(os.path.exists(yaml + ".dpkg-dist"), "the new version's settings are beside them")
    say("upgraded: the settings changed by hand, and their rights, stayed")


def removed(debian, before, with_dependencies):
    debian.apt("remove", "earshot")
    expect(not os.path.exists(debian.path("/usr/bin/earshot")), "the program is gone")
    expect(not os.path.exists(debian.path("/lib/systemd/system/earshot.service")), "the unit is gone")
    for path in ["/etc/earshot/earshot.yaml", "/var/lib/earshot/admin-token"]:
        expect(os.path.exists(debian.path(path)), f"{path} stays until the purge")
    debian.apt("purge", "earshot")
    left = debian.files() - with_dependencies
    expect(not left, f"left after the purge: {sorted(left)[:20]}")
    lost = with_dependencies - debian.files()
    expect(not lost, f"the purge took what was not its own: {sorted(lost)[:20]}")
    with open(debian.path("/etc/passwd"), encoding="utf-8") as file:
        expect("\nearshot:" in file.read(), "the user stays, as Debian advises")
    say(f"removed and purged: {len(with_dependencies - before)} files of its libraries stay for autoremove, the user stays, nothing else")


def main(arguments):
    if os.getuid() != 0:
        sys.exit("package: a clean Debian needs root (mounts, namespaces): sudo make package-test")
    whole = "--build-stage" in arguments
    debs = [word for word in arguments if word != "--build-stage"] or sorted(glob.glob(os.path.join(ROOT, "dist", "earshot_*.deb")), key=os.path.getmtime)[-1:]
    if not debs or not os.path.exists(debs[0]):
        sys.exit("package: there is no package in dist/; run make deb first, or name one")
    begin = time.monotonic()
    folder = tempfile.mkdtemp(prefix="earshot-life-")
    try:
        os.chmod(folder, 0o755)
        say(f"making a clean Debian for {os.path.basename(debs[0])}")
        debian = Debian(folder)
        say(f"made in {time.monotonic() - begin:.0f} s")
        if whole:
            run(["dpkg-deb", "-x", debs[0], os.path.join(folder, "program")])
            build_stage.check(debian, os.path.join(folder, "program/usr/bin/earshot"), folder, say)
        lend_toolchain(debian, debs[0], folder)
        before, with_dependencies = installed(debian, debs[0])
        using(debian, "8080", "0")
        deb, version = next_version(debs[0], folder)
        upgraded(debian, deb, version)
        using(debian, "8090", "1")
        removed(debian, before, with_dependencies)
        booted.check(debian, debs[0], say)
        asked = debian.path("/var/tmp/asked-to-start")
        say("asked to start, and refused: " + (open(asked, encoding="utf-8").read().replace("\n", "; ") if os.path.exists(asked) else "nothing"))
        say(f"the whole life took {time.monotonic() - begin:.0f} s")
    except Failed as error:
        sys.exit(f"FAILED package life: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
