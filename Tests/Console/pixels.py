"""The pixels of a screenshot: PNG without libraries, 8 bits a channel, as Chromium writes it."""
import struct
import zlib


class Pixels:
    def __init__(self, png):
        assert png[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
        at, data = 8, b""
        while at < len(png):
            length, kind = struct.unpack(">I4s", png[at:at + 8])
            body = png[at + 8:at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
                assert depth == 8 and colour in (2, 6) and not interlace, (depth, colour, interlace)
                self.channels = 3 if colour == 2 else 4
            elif kind == b"IDAT":
                data += body
            at += 12 + length
        self._rows = self._unfilter(zlib.decompress(data))

    def _unfilter(self, raw):
        """PNG 1.2 §6: undoes the filter of each row."""
        n, stride = self.channels, self.width * self.channels
        rows, above = [], bytearray(stride)
        for y in range(self.height):
            start = y * (stride + 1)
            kind, row = raw[start], bytearray(raw[start + 1:start + 1 + stride])
            for x in range(stride):
                left = row[x - n] if x >= n else 0
                up = above[x]
                corner = above[x - n] if x >= n else 0
                if kind == 1:
                    row[x] = (row[x] + left) & 255
                elif kind == 2:
                    row[x] = (row[x] + up) & 255
                elif kind == 3:
                    row[x] = (row[x] + (left + up) // 2) & 255
                elif kind == 4:
                    p = left + up - corner
                    a, b, c = abs(p - left), abs(p - up), abs(p - corner)
                    row[x] = (row[x] + (left if a <= b and a <= c else up if b <= c else corner)) & 255
            rows.append(row)
            above = row
        return rows

    def at(self, x, y):
        start = int(x) * self.channels
        return tuple(self._rows[int(y)][start:start + 3])

    @property
    def middle(self):
        return self.at(self.width // 2, self.height // 2)


def is_near(colour, wanted, by=60):
    return all(abs(one - other) <= by for one, other in zip(colour, wanted))
