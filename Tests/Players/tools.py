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


def _packages(name, *requirements):
    """The folder with these requirements from PyPI. Kept where the tests keep such things."""
    folder = os.path.join(tempfile.gettempdir(), f"earshot-fixtures-{os.getuid()}", name)
    if not os.path.isdir(folder):
        partial = f"{folder}.{os.getpid()}"
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", partial, *requirements]
        subprocess.run(install, check=True, timeout=300, stderr=subprocess.PIPE)
        try:
            os.rename(partial, folder)
        except OSError:
            # Another process was first.
            shutil.rmtree(partial)
    return folder
