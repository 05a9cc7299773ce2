"""A picture that a player has shown."""

import struct
import zlib

import clockcode


class Picture:
    """Pixels, three bytes each, and where in them the stream's picture stands: (left, top, right, bottom). A value."""

    def __init__(self, width, height, rgb, box=None):
        self.width, self.height, self.rgb = width, height, rgb
        self.box = box or (0, 0, width, height)

    def code(self):
        """The clock in it; None when there is none."""
        left, top, right, bottom = self.box
        begin = (top + (bottom - top) // clockcode.STRIP // 2) * self.width
        return clockcode.read_row(self.rgb[3 * (begin + left) + 1 : 3 * (begin + right) : 3])

    def pixel(self, x, y):
        """The (r, g, b) at a place, x and y from 0 to 1."""
        left, top, right, bottom = self.box
        column = min(int(left + x * (right - left)), self.width - 1)
        at = 3 * (min(int(top + y * (bottom - top)), self.height - 1) * self.width + column)
        return tuple(self.rgb[at : at + 3])

    def save(self, path):
        """Writes a PNG file."""
        size = self.width * 3
        lines = b"".join(b"\0" + self.rgb[y * size : (y + 1) * size] for y in range(self.height))

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        with open(path, "wb") as file:
            file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)))
            file.write(chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
