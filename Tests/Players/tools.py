"""Programs that the suite needs beyond Debian's packages, and those that are missing on this machine."""

import functools
import glob
import os
import shutil
import subprocess
import sys
import tempfile


class Tools:
    """Where the programs are."""

    def __init__(self):
        self.current_ffmpeg = self._current_ffmpeg()

    def _current_ffmpeg(self):
        """An ffmpeg that speaks Enhanced RTMP, which Debian's does not: PyPI's imageio-ffmpeg brings a static one. Kept where the tests keep it."""
        folder = _packages("imageio-ffmpeg", "imageio-ffmpeg==0.8.1")
        return glob.glob(os.path.join(folder, "imageio_ffmpeg", "binaries", "ffmpeg-*"))[0]

    @functools.cached_property
    def aiortc(self):
        """The folder with aiortc, for PYTHONPATH: the one that Tests/Apps has, with the same packages."""
        return _packages("aiortc-1.16.0", "aiortc==1.16.0", "websockets==15.0.1", "numpy")

    @functools.cached_property
    def libdatachannel(self):
        """The command of a Python that has libdatachannel. Throws where there is none."""
        package = _packages("libdatachannel-2026.1.0", "libdatachannel-py==2026.1.0", options=("--python-version", "3.13", "--only-binary", ":all:", "--no-deps", "--ignore-requires-python"))
        # Some managers of versions have a command for each, there or not.
        own = shutil.which("python3.13")
        if own and subprocess.run([own, "-c", ""], capture_output=True).returncode == 0:
            return ["env", f"PYTHONPATH={package}", "PYTHONDONTWRITEBYTECODE=1", "python3.13"]
        return _debian_13(package)


def _debian_13(package):
    """Python 3.13 out of the next Debian's packages, with its own C library, which nothing else sees."""
    names = ["python3.13-minimal", "libpython3.13-minimal", "libpython3.13-stdlib", "libc6", "libstdc++6", "libgcc-s1", "zlib1g", "libffi8", "libexpat1"]

    def fill(folder):
        for part in ("state/lists/partial", "cache/archives/partial", "debs"):
            os.makedirs(os.path.join(folder, part))
        with open(os.path.join(folder, "sources.list"), "w", encoding="utf-8") as file:
            file.write("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main\n")
        with open(os.path.join(folder, "status"), "w", encoding="utf-8"):
            pass
        places = {"Dir::State": "state", "Dir::Cache": "cache", "Dir::Etc::SourceList": "sources.list", "Dir::State::status": "status"}
        options = [word for name, part in places.items() for word in ("-o", f"{name}={os.path.join(folder, part)}")]
        options += ["-o", "Dir::Etc::SourceParts=-", "-o", "APT::Sandbox::User="]
        debs = os.path.join(folder, "debs")
        for words in (["update"], ["download", *names]):
            subprocess.run(["apt-get", "-q", *options, *words], check=True, timeout=300, cwd=debs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for deb in glob.glob(os.path.join(debs, "*.deb")):
            subprocess.run(["dpkg-deb", "-x", deb, os.path.join(folder, "root")], check=True)
        for part in ("state", "cache", "debs"):
            shutil.rmtree(os.path.join(folder, part))

    usr = os.path.join(_kept("python-3.13", fill), "root", "usr")
    libraries = glob.glob(os.path.join(usr, "lib", "*-linux-gnu"))[0]
    loader = glob.glob(os.path.join(libraries, "ld-linux-*"))[0]
    environment = [f"PYTHONHOME={usr}", f"PYTHONPATH={package}", "PYTHONDONTWRITEBYTECODE=1"]
    return ["env", *environment, loader, "--library-path", libraries, os.path.join(usr, "bin", "python3.13")]


def _packages(name, *requirements, options=()):
    """The folder with these requirements from PyPI."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options, *requirements]
    return _kept(name, lambda folder: subprocess.run([*install, "--target", folder], check=True, timeout=300, stderr=subprocess.PIPE))


def _kept(name, fill):
    """A folder, filled once and kept where the tests keep such things."""
    folder = os.path.join(tempfile.gettempdir(), f"earshot-fixtures-{os.getuid()}", name)
    if not os.path.isdir(folder):
        partial = f"{folder}.{os.getpid()}"
        try:
            fill(partial)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        try:
            os.rename(partial, folder)
        except OSError:
            # Another process was first.
            shutil.rmtree(partial)
    return folder
