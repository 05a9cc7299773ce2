"""Many pushes of one small clip by a few ffmpegs, which only copy."""
import os
import subprocess

from server import wait_for


class Pushes:
    """Streams live/s0, live/s1 and so on: H.264 of 320 × 180, 25 frames and 200 kbit a second, a keyframe every two seconds, AAC."""

    def __init__(self, server, folder, count):
        clip = os.path.join(folder, "clip.flv")
        subprocess.run(
            ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-f", "lavfi", "-i", "sine", "-t", "20", "-c:v", "libx264",
             "-preset", "veryfast", "-tune", "zerolatency", "-b:v", "200k", "-g", "50", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "32k", clip], check=True)
        self.log = open(os.path.join(folder, "ffmpeg.log"), "wb")
        # An ffmpeg opens its outputs one after another, and sends when all are open: a few at once, so that the first need not wait long.
        self.processes = []
        for begin in range(0, count, 25):
            outputs = []
            for number in range(begin, min(begin + 25, count)):
                outputs += ["-c", "copy", "-f", "flv", f"rtmp://{server.rtmp}/live/s{number}"]
            self.processes.append(subprocess.Popen(
                ["ffmpeg", "-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i", clip, *outputs], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log))
        def are_live():
            try:
                return server.api("rooms?state=live&pageSize=1")["total"] == count
            except OSError:
                # So many connections at once may turn one away.
                return False

        try:
            wait_for(f"{count} live rooms", are_live, 180)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.log.close()
