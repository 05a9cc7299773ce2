"""A screen without a monitor (Xvfb), whose pixels are read straight from its memory: what a player really shows, many times a second."""

import mmap
import os
import struct

import clockcode
from picture import Picture
from processes import Process, wait_for

WIDTH, HEIGHT = 640, 360


class Screen:
    """One X server with a framebuffer in a file. Use it as a context."""

    def __init__(self, folder, name="screen", width=WIDTH, height=HEIGHT):
        self.width, self.height = width, height
        self.folder = os.path.join(folder, f"{name}-memory")
        os.makedirs(self.folder, exist_ok=True)
        read_end, write_end = os.pipe()
        arguments = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", f"{width}x{height}x24", "-fbdir", self.folder]
        arguments += ["-ac", "-nolisten", "tcp", "-noreset", "-nocursor", "+extension", "GLX"]
        try:
            self.process = Process(arguments, os.path.join(folder, f"{name}.log"), pass_fds=(write_end,))
        finally:
            os.close(write_end)
        with os.fdopen(read_end) as file:
            number = file.readline().strip()
        if not number:
            self.process.stop()
            raise RuntimeError(f"Xvfb did not start: {self.process.text()[-400:]}")
        self.display = f":{number}"
        path = os.path.join(self.folder, "Xvfb_screen0")
        wait_for("the screen's memory", 5, lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        with open(path, "rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        # XWDFile.h: header size, …, bytes per line (13th), …, number of colours (20th); big endian.
        header = struct.unpack(">25I", self.memory[:100])
        self.stride = header[12]
        self.offset = header[0] + header[19] * 12
        self.box = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.memory.close()
        self.process.stop()

    def row(self, y):
        """One line, four bytes a pixel: blue, green, red and nothing."""
        begin = self.offset + y * self.stride
        return self.memory[begin : begin + self.width * 4]

    def locate(self):
        """Where the picture stands on a black screen: left, top, right, bottom; None when all is black."""
        lines = {y: self.row(y) for y in range(self.height)}

        def is_lit(y):
            return max(lines[y][1::4]) > 60

        top = next((y for y in range(self.height) if is_lit(y)), None)
        if top is None:
            return None
        bottom = next(y for y in range(self.height - 1, -1, -1) if is_lit(y))
        middle = lines[(top + bottom) // 2]
        # The brightest of the three colours counts: red has little green.
        lit = [x for x in range(self.width) if max(middle[4 * x : 4 * x + 3]) > 60]
        return (lit[0], top, lit[-1] + 1, bottom + 1) if lit else None

    def code(self):
        """The clock that is shown now; None when none is."""
        if self.box:
            code = self._code_in(self.box)
            if code is not None:
                return code
        self.box = self.locate()
        return self._code_in(self.box) if self.box else None

    def _code_in(self, box):
        left, top, right, bottom = box
        return clockcode.read_row(self.row(top + (bottom - top) // clockcode.STRIP // 2)[4 * left + 1 : 4 * right : 4])

    def picture(self):
        """The whole screen as it is now."""
        rgb = bytearray(self.width * self.height * 3)
        for y in range(self.height):
            row = self.row(y)
            line = bytearray(self.width * 3)
            line[0::3], line[1::3], line[2::3] = row[2::4], row[1::4], row[0::4]
            rgb[y * self.width * 3 : (y + 1) * self.width * 3] = line
        return Picture(self.width, self.height, bytes(rgb), self.box)
