"""What is installed without the Debian package: by `make install`, and by unpacking the archive."""
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile

from tools import ROOT, expect, frames, get, push, run, stripped, toolchain_libraries, wait_for

PREFIX = "/opt/earshot-test"


def files(root):
    """All files below a folder: {path: mode}."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = os.lstat(path).st_mode & 0o7777
    return found


def make(target, root, binary):
    return subprocess.run(
        ["make", "--no-print-directory", "-C", ROOT, target, f"DESTDIR={root}", f"PREFIX={PREFIX}"], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=120, env={**os.environ, "EARSHOT_BINARY": binary})


def make_install(binary):
    """`make install` puts every file in its place, keeps settings that are there, and `make uninstall` takes all but these away."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "root")
        binary = stripped(binary, folder)
        # Somebody else's files, in folders of ours.
        for other in [f"{PREFIX}/share/man/man1/other.1.gz", f"{PREFIX}/bin/other", "/etc/earshot/fullchain.pem"]:
            os.makedirs(os.path.dirname(root + other), exist_ok=True)
            with open(root + other, "w", encoding="utf-8") as file:
                file.write("not ours\n")
        before = files(root)
        done = make("install", root, binary)
        expect(done.returncode == 0, f"make install: {done.stderr[-600:]}")
        installed = files(root)
        own = PREFIX.lstrip("/")
        wanted = {
            f"{own}/bin/earshot": 0o755, f"{own}/lib/systemd/system/earshot.service": 0o644, f"{own}/share/man/man1/earshot.1.gz": 0o644,
            f"{own}/share/man/man1/earshot-rooms.1.gz": 0o644, f"{own}/share/bash-completion/completions/earshot": 0o644,
            f"{own}/share/zsh/site-functions/_earshot": 0o644, f"{own}/share/fish/vendor_completions.d/earshot.fish": 0o644,
            f"{own}/share/doc/earshot/README.md": 0o644, f"{own}/share/doc/earshot/docs/operations.md": 0o644,
            f"{own}/share/doc/earshot/docs/operations/install.md": 0o644,
            f"{own}/share/doc/earshot/deploy/earshot.socket": 0o644}
        for path, mode in wanted.items():
            expect(installed.get(path) == mode, f"{path} has the mode {mode:o}: {installed.get(path)}")
        strange = [path for path, mode in installed.items() if path not in before and mode & 0o022]
        expect(not strange, f"others may write {strange}")
        program = os.path.join(root, own, "bin/earshot")
        said = run([program, "--version"]).strip()
        expect(re.fullmatch(r"earshot \d+\.\d+\.\d+\S*", said) and said in done.stderr, f"{said!r} is what was installed: {done.stderr}")
        with open(os.path.join(root, own, "lib/systemd/system/earshot.service"), encoding="utf-8") as file:
            unit = file.read()
        starts = re.findall(r"^ExecStart=(\S+)", unit, re.M)
        expect(starts == [f"{PREFIX}/bin/earshot"] and "/usr/bin/earshot" not in unit, f"the unit starts {starts}")
        settings = os.path.join(root, "etc/earshot/earshot.yaml")
        run([program, "config", "check", "--config", settings])
        with open(settings, "w", encoding="utf-8") as file:
            file.write("log: {level: debug}\n")
        done = make("install", root, binary)
        with open(settings, encoding="utf-8") as file:
            expect(file.read() == "log: {level: debug}\n" and "stays as it is" in done.stderr, f"settings stay at a second install: {done.stderr}")
        expect(files(root) == installed, "a second install changes no file's place or mode")
        done = make("uninstall", root, binary)
        expect(done.returncode == 0, f"make uninstall: {done.stderr[-600:]}")
        left = set(files(root))
        strange = left ^ {*before, "etc/earshot/earshot.yaml"}
        expect(not strange, f"left, or lost, by make uninstall: {sorted(strange)}")
        folders = glob.glob(f"{root}/{own}/**/earshot*", recursive=True)
        expect(not folders, f"left by make uninstall: {folders}")


def unpacked(binary, folder):
    """Packs the archive, and unpacks it. Returns its folder."""
    dist = os.path.join(folder, "dist")
    environment = {**os.environ, "EARSHOT_BINARY": stripped(binary, folder), "EARSHOT_DIST": dist}
    run([os.path.join(ROOT, "scripts/archive.sh")], 120, env=environment)
    made = os.listdir(dist)
    expect(len(made) == 1 and re.fullmatch(r"earshot-.+-linux-\w+\.tar\.gz", made[0]), f"one archive is made: {made}")
    elsewhere = os.path.join(folder, "a place with spaces")
    os.mkdir(elsewhere)
    run(["tar", "xzf", os.path.join(dist, made[0]), "-C", elsewhere])
    top = os.listdir(elsewhere)
    expect(top == [made[0][:-len(".tar.gz")]], f"it unpacks into one folder of its name: {top}")
    return os.path.join(elsewhere, top[0])


def archive(binary):
    """The archive runs where it is unpacked: `./run` serves, a stream is pushed and played, data lies beside it, SIGTERM ends it."""
    with tempfile.TemporaryDirectory() as folder:
        place = unpacked(binary, folder)
        before = set(os.listdir(place))
        expect({"run", "bin", "earshot.yaml", "README.md", "LICENSE", "docs", "deploy"} <= before, f"what is in it: {before}")
        missing_library(place)
        log = os.path.join(folder, "log")
        with open(log, "wb") as out:
            server = subprocess.Popen(
                [f"{place}/run", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/")
        said = lambda: open(log, encoding="utf-8", errors="replace").read()
        try:
            wait_for("the banner", lambda: server.poll() is not None or "Stop with Ctrl-C." in said())
            expect(server.poll() is None, f"the server ended: {said()[-600:]}")
            rtmp, http = re.search(r"rtmp://[^/\s]+", said())[0], re.search(r"http://[^/\s]+", said())[0]
            with push(f"{rtmp}/live/cam1"):
                wait_for("the stream", lambda: "event=room.live" in said())
                for url in [f"{rtmp}/live/cam1", f"{http}/live/cam1.m3u8"]:
                    expect(frames(url) >= 25, f"pictures of {url}")
            expect(get(f"{http}/readyz")[0] == 200, "it is ready")
            server.send_signal(signal.SIGTERM)
            expect(server.wait(15) == 0, f"it ends well: {server.returncode}")
        finally:
            server.kill()
            server.wait()
        new = set(os.listdir(place)) - before
        expect(new == {"earshot-data"}, f"its data lies in earshot-data beside it, and nothing else: {new}")
        expect(os.path.exists(f"{place}/earshot-data/admin-token"), "the first token is in its data")


def missing_library(place):
    """`run` names a library that is missing, and the Debian package that brings it; its list has the package of every library."""
    with open(f"{place}/run", encoding="utf-8") as file:
        listed = set(re.search(r"apt-get install ([^\"]*)", file.read())[1].split())
    with tempfile.TemporaryDirectory() as folder:
        fake = os.path.join(folder, "ldd")
        with open(fake, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nprintf '\\t%s\\n' "
                       "'libqrencode.so.4 => not found' 'libc.so.6 => /lib/libc.so.6 (0x1)' 'librtmp.so.1 => not found'\n")
        os.chmod(fake, 0o755)
        done = subprocess.run(
            [f"{place}/run", "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=20,
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    expect(done.returncode == 1 and "lacks libqrencode.so.4 librtmp.so.1." in done.stderr, f"what is missing: {done.returncode} {done.stderr!r}")
    expect("libqrencode4" in done.stderr and "librtmp1" in done.stderr, f"the packages to install: {done.stderr!r}")
    if not shutil.which("dpkg-query"):
        return
    needed = re.findall(r"NEEDED\s+(\S+)", run(["objdump", "-p", f"{place}/bin/earshot"]))
    # Every Debian has the first ones.
    known = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"} | with_dependencies(listed)
    of_toolchain = {os.path.basename(path) for path in toolchain_libraries(f"{place}/bin/earshot")}
    for library in set(needed) - of_toolchain:
        owners = set(re.findall(r"^([^:\s]+)", run(["dpkg-query", "-S", f"*/{library}"]), re.M))
        expect(owners & known, f"{library} is in the list of run: it comes with {sorted(owners)}")


def with_dependencies(names):
    """The packages, what they depend on, and so on."""
    known, new = set(), set(names)
    while new:
        known |= new
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Depends}, ", *new], capture_output=True, text=True, check=False)
        new = {re.split(r"[ (:|]", part.strip())[0] for part in done.stdout.split(",") if part.strip()} - known
    return known


CHECKS = [make_install, archive]
