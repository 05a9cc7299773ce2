"""PyPI packages that the cases need, each set in a folder of its own that later runs find again."""
import os
import shutil
import subprocess
import sys
import tempfile


def packages(name, *requirements):
    """The folder with these requirements, for PYTHONPATH."""
    folder = os.path.join(tempfile.gettempdir(), f"earshot-fixtures-{os.getuid()}", name)
    if not os.path.isdir(folder):
        partial = f"{folder}.{os.getpid()}"
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", partial, *requirements]
        done = subprocess.run(install, timeout=300, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"pip could not install {', '.join(requirements)}: {done.stderr[-500:]}")
        try:
            os.rename(partial, folder)
        except OSError:
            # Another process was first.
            shutil.rmtree(partial)
    return folder


def python(folder, script, *arguments, timeout=180):
    """Runs a script of this folder with these packages; its output is shown when it fails."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)  # An absolute one stays.
    environment = {**os.environ, "PYTHONPATH": folder, "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"]:
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, path, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{script}: {done.stdout[-1500:]}{done.stderr[-2500:]}")
    return done.stdout


class Device:
    """An ffmpeg that pushes a test picture and a tone, in real time, until it is stopped."""

    def __init__(self, url, size="320x240"):
        self.process = subprocess.Popen(
            ["ffmpeg", "-hide_banner", "-loglevel", "error", "-re", "-f", "lavfi", "-i", f"testsrc=size={size}:rate=25", "-f", "lavfi", "-i",
             "sine=frequency=440:sample_rate=44100", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "25",
             "-b:v", "300k", "-c:a", "aac", "-t", "120", "-f", "flv", url],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def ended(self, patience=30):
        """Waits until it ends by itself; returns what it said."""
        return self.process.communicate(timeout=patience)[1]

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
