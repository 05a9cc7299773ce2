"""Programs that the suite needs beyond Debian's packages, and those that are missing on this machine."""

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
        folder = os.path.join(tempfile.gettempdir(), f"earshot-fixtures-{os.getuid()}", "imageio-ffmpeg")
        pattern = os.path.join(folder, "imageio_ffmpeg", "binaries", "ffmpeg-*")
        if not glob.glob(pattern):
            partial = f"{folder}.{os.getpid()}"
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", partial, "imageio-ffmpeg==0.8.1"]
            subprocess.run(install, check=True, timeout=180, stderr=subprocess.PIPE)
            try:
                os.rename(partial, folder)
            except OSError:
                # Another process was first.
                shutil.rmtree(partial)
        return glob.glob(pattern)[0]
