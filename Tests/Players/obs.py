"""OBS Studio as a device: it films a screen on which the clock is painted, and streams to a server and a stream key."""

import json
import os
import subprocess
import sys
import time

from processes import Process
from screens import HEIGHT, WIDTH, Screen

HERE = os.path.dirname(os.path.abspath(__file__))


class OBSPublisher:
    """Streams until it is stopped, with the settings that OBS has at first but for the picture's size."""

    def __init__(self, shape, url, folder, tools, label="obs"):
        self.shape, self.folder = shape, folder
        server, _, key = url.rpartition("/")
        config = os.path.join(folder, "obs-config")
        # Two screens: one with OBS's own window, and one that it films.
        self.screens = [Screen(folder, "obs-window", 1024, 600)]
        self.processes = []
        try:
            filmed = Screen(folder, "obs-filmed")
            self.screens.append(filmed)
            log = os.path.join(folder, "obs-clock.log")
            self.processes.append(Process([sys.executable, os.path.join(HERE, "xclock.py"), filmed.display, WIDTH, HEIGHT, 30], log))
            self._configure(os.path.join(config, "obs-studio"), server, key, filmed.display)
            runtime = os.path.join(folder, "obs-runtime")
            os.makedirs(runtime, mode=0o700, exist_ok=True)
            command = ["env", f"DISPLAY={self.screens[0].display}", f"HOME={config}", f"XDG_CONFIG_HOME={config}", f"XDG_RUNTIME_DIR={runtime}"]
            command += ["LIBGL_ALWAYS_SOFTWARE=1", "QT_QPA_PLATFORM=xcb", "obs", "--multi", "--verbose", "--startstreaming"]
            command += ["--profile", "Players", "--collection", "Players"]
            self.begin = time.time()
            self.processes.append(Process(command, os.path.join(folder, "obs.log")))
        except BaseException:
            self.stop()
            raise

    def _options(self):
        """The line for x264's options, as a user writes them."""
        return f"UseAdvanced=true\nx264Settings={' '.join(self.shape.video_arguments)}\n" if self.shape.video_arguments else ""

    def _configure(self, folder, server, key, display):
        """The files that OBS's settings and scenes stand in, and a tone: silence is a fault of a stream."""
        tone = os.path.join(folder, "tone.wav")
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "sine=frequency=440:duration=20", tone], check=True)
        files = {
            "global.ini": "[General]\nFirstRun=true\nEnableAutoUpdates=false\nOpenStatsOnStartup=false\n"
            "[Basic]\nProfile=Players\nProfileDir=Players\nSceneCollection=Players\nSceneCollectionFile=Players\n",
            "basic/profiles/Players/basic.ini": "[General]\nName=Players\n[Output]\nMode=Simple\nDelayEnable=false\n"
            f"[SimpleOutput]\nVBitrate=1500\nABitrate=96\nStreamEncoder=x264\nPreset=veryfast\n{self._options()}"
            f"[Video]\nBaseCX={WIDTH}\nBaseCY={HEIGHT}\nOutputCX={WIDTH}\nOutputCY={HEIGHT}\nFPSType=0\nFPSCommon=30\n",
            "basic/profiles/Players/service.json": json.dumps(
                {"type": "rtmp_custom", "settings": {"server": server, "key": key, "use_auth": False, "bwtest": False}}
            ),
            "basic/scenes/Players.json": json.dumps(
                {
                    "name": "Players",
                    "current_scene": "Scene",
                    "current_program_scene": "Scene",
                    "scene_order": [{"name": "Scene"}],
                    "sources": [
                        {"id": "scene", "name": "Scene", "settings": {"id_counter": 2, "items": [{"name": name, "id": number, "visible": True} for number, name in enumerate(("Clock", "Tone"), 1)]}},
                        {
                            "id": "xshm_input",
                            "name": "Clock",
                            "settings": {"advanced": True, "server": display, "screen": 0, "show_cursor": False},
                        },
                        {"id": "ffmpeg_source", "name": "Tone", "settings": {"local_file": tone, "is_local_file": True, "looping": True}},
                    ],
                }
            ),
        }
        for name, text in files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    @property
    def is_running(self):
        return self.processes[-1].is_running

    def errors(self):
        return self.processes[-1].text()[-800:]

    def save(self, path):
        """Writes what OBS's own window shows."""
        self.screens[0].picture().save(path)

    def kill(self):
        self.stop()

    def stop(self):
        for process in reversed(self.processes):
            process.stop(grace=4)
        for screen in self.screens:
            screen.__exit__()
