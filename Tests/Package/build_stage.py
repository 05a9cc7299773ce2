"""The first stage of deploy/Dockerfile without a container engine: its commands in a clean Debian, with this machine's Swift toolchain in the place
of the image's. Only the compiler does not run: a program that was built before is packed in its stead."""
import fnmatch
import json
import os
import shlex
import shutil
import subprocess
import time

from image import stage
from tools import ROOT, expect, run

# What the image swift:6.3-bookworm brings beside the toolchain, as its own Dockerfile lists it, as far as the commands need it.
IMAGE_PACKAGES = ["git", "libcurl4", "libedit2", "libncurses6", "libpython3.11", "libsqlite3-0", "libxml2", "tzdata", "ca-certificates"]


def toolchain():
    """The folder above usr/bin/swift; None when it is part of the system and cannot be lent."""
    swift = shutil.which("swift")
    folder = os.path.dirname(os.path.realpath(swift)).removesuffix("/usr/bin") if swift else ""
    return folder if folder and os.path.isdir(f"{folder}/usr/lib/swift") else None


def mirrors():
    """Folders that git takes here in the place of addresses: {folder: addresses}. Without such settings it fetches from the addresses."""
    found = {}
    words = ["git", "config", "--get-regexp", r"^url\..*\.insteadof$"]
    for line in subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines():
        name, address = line.split(None, 1)
        folder = name[len("url."):-len(".insteadof")]
        if os.path.isdir(folder):
            found.setdefault(folder, []).append(address)
    return found


def ignored():
    with open(os.path.join(ROOT, ".dockerignore"), encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def is_ignored(path, patterns):
    """Whether .dockerignore leaves the path itself out: patterns begin at the root, `**/` stands for any folders."""
    for pattern in patterns:
        if fnmatch.fnmatch(path, pattern) and path.count("/") == pattern.count("/"):
            return True
        if pattern.startswith("**/") and fnmatch.fnmatch(os.path.basename(path), pattern[3:]):
            return True
    return False


def copy(source, target):
    """COPY of a context: what a clean clone has, its history included, but for what .dockerignore leaves out."""
    patterns = ignored()
    base = source if os.path.isdir(os.path.join(ROOT, source)) else os.path.dirname(source) or "."
    for path in run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "--", source]).splitlines():
        parts = path.split("/")
        outer = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if any(is_ignored(part, patterns) for part in outer) or not os.path.exists(os.path.join(ROOT, path)):
            continue
        to = os.path.join(target, os.path.relpath(path, base))
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.join(ROOT, path), to)
    if source == "." and not is_ignored(".git", patterns):
        run(["git", "clone", "--quiet", "--no-checkout", "--depth", "1", f"file://{ROOT}", f"{target}/clone"])
        shutil.move(f"{target}/clone/.git", f"{target}/.git")
        os.rmdir(f"{target}/clone")


def check(debian, binary, folder, say):
    """Runs the stage's instructions one after the other. Its last one makes the package, which is to have the program in it."""
    lent = toolchain()
    if not lent:
        say("the Dockerfile's first stage was not tried: there is no Swift toolchain in a folder of its own here")
        return
    begin = time.monotonic()
    made = type(debian).__new__(type(debian))
    made.root = os.path.join(folder, "build")
    run(["cp", "-a", debian.root, made.root], 300)
    made.run("apt-get", "-q", "update")
    made.apt("install", *IMAGE_PACKAGES)
    # As in the image.
    made.run("sh", "-c", "rm -rf /var/lib/apt/lists/*")
    shutil.copy(binary, made.path("/usr/local/bin/earshot-built"))
    directory, shell = "/", ["/bin/sh", "-c"]
    environment = {"PATH": f"{lent}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "EARSHOT_BINARY": "/usr/local/bin/earshot-built",
                   "DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
    with open(made.path("/etc/gitconfig"), "w", encoding="utf-8") as file:
        for folder_of_mirrors, addresses in mirrors().items():
            file.write(f'[url "{folder_of_mirrors}"]\n' + "".join(f"\tinsteadOf = {address}\n" for address in addresses))
    lent_folders = [lent, *mirrors()]
    for path in lent_folders:
        os.makedirs(made.path(path), exist_ok=True)
    binds = "".join(f"mount --bind {path} {made.path(path)} && " for path in lent_folders)
    inside = f"{binds}mount -t proc proc {made.root}/proc && exec chroot \"$@\""
    for word, text in stage(0):
        if word == "WORKDIR":
            directory = text
            os.makedirs(made.path(directory), exist_ok=True)
        elif word == "SHELL":
            shell = json.loads(text)
        elif word == "COPY":
            source, target = text.split()
            copy(source, os.path.normpath(os.path.join(made.path(directory), target)) + "/")
        elif word == "RUN":
            start = time.monotonic()
            words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside, "sh", made.root,
                     *shell, f"cd {shlex.quote(directory)} && {text}"]
            run(words, 1200, env=environment)
            say(f"the Dockerfile's first stage: {text[:60]}… took {time.monotonic() - start:.0f} s")
        else:
            expect(False, f"the check knows the instruction {word}")
    names = run(["dpkg-deb", "-c", made.path("/out/earshot.deb")])
    for name in ["./usr/bin/earshot", "./lib/systemd/system/earshot.service", "./etc/earshot/earshot.yaml"]:
        expect(f" {name}\n" in names, f"{name} is in the package that the image would install")
    # The history is in the context, so that the version says which commit it is of.
    version = run(["dpkg-deb", "-f", made.path("/out/earshot.deb"), "Version"]).strip()
    commit = run(["git", "-C", ROOT, "rev-parse", "--short=8", "HEAD"]).strip()
    expect("~" not in version or version.endswith(f".{commit}"), f"the version {version} names the commit {commit}")
    shutil.rmtree(made.root)
    say(f"the Dockerfile's first stage: every command but the compiler's, in {time.monotonic() - begin:.0f} s")
