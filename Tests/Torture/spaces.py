"""A small disk for one server: a tmpfs in a mount namespace of its own, which goes when its keeper does."""

import os

from tools import NotHere, eventually

from processes import Process


class SmallDisk:
    """A keeper process that holds the namespace, and the tmpfs in it. Commands go in by `under`."""

    def __init__(self, folder, size):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        # In a user namespace where the suite is not root.
        own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        script = f"mount --make-rprivate / && mount -t tmpfs -o size={size} torture '{folder}' && touch '{folder}/.balloon' '{folder}/.mounted' && exec sleep infinity"
        self.keeper = Process([*own, "sh", "-c", script], folder + ".log")
        self.inside = f"/proc/{self.keeper.popen.pid}/root{folder}"
        if not eventually(5, lambda: os.path.exists(f"{self.inside}/.mounted") or not self.keeper.is_running) or not self.keeper.is_running:
            text = self.keeper.text().splitlines()[-1:]
            self.close()
            raise NotHere(f"no mount namespace can be made: {text}")
        flags = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        self.under = ("nsenter", "--target", str(self.keeper.popen.pid), *flags, "--mount", f"--wd={folder}", "--")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.keeper.stop()

    @property
    def free(self):
        status = os.statvfs(self.inside)
        return status.f_bavail * status.f_frsize

    def fill(self, leaving):
        """Takes all but so many bytes of it. What others free or take meanwhile is theirs."""
        # Without a buffer, which would be written once more at the file's end.
        with open(f"{self.inside}/.balloon", "ab", buffering=0) as file:
            wanted = self.free - leaving
            if wanted > 0:
                size = file.seek(0, os.SEEK_END)
                try:
                    os.posix_fallocate(file.fileno(), size, wanted)
                except OSError:
                    # Somebody else was faster: what is left.
                    _fill_slowly(file)

    def empty(self):
        # Not unlinked: on a disk that somebody else has filled it could not be made again.
        os.truncate(f"{self.inside}/.balloon", 0)


def _fill_slowly(file):
    block = bytes(4096)
    for _ in range(65536):
        try:
            file.write(block)
        except OSError:
            return
