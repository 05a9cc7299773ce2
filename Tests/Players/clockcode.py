"""The clock that is burnt into every picture, and how it is read back.

The top ninth of a picture is a row of 40 cells, black or white: four cells 1010, the wall clock in milliseconds modulo 2^24 (24 cells, highest
bit first), their CRC-8, four cells 0101. Cells are blocks of many pixels, so scaling and compression leave them readable. Below it stands a
picture of known colours, red, green, blue and grey, with a bar that moves.
"""

import time

CELLS = 40
MODULUS = 1 << 24
START, END = (1, 0, 1, 0), (0, 1, 0, 1)
# Y, U, V of BT.709 in limited range.
WHITE, BLACK = 235, 16
COLOURS = ((63, 102, 240), (173, 42, 26), (32, 240, 118), (126, 128, 128))
RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (128, 128, 128))
# Which part of the height the row of cells has, and where in it a reader samples.
STRIP = 9


def now_ms():
    """The wall clock as codes have it."""
    return int(time.time() * 1000) % MODULUS


def age_seconds(code, at):
    """How old a picture with this code was at a wall-clock time; a little below 0 when the clocks' grain says so."""
    age = (int(at * 1000) - code) % MODULUS
    return (age - MODULUS if age > MODULUS // 2 else age) / 1000


def crc8(value):
    """CRC-8, polynomial 0x07, of three bytes."""
    crc = 0
    for byte in value.to_bytes(3, "big"):
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return crc


def cells(code):
    """The 40 cells of a code, each 0 or 1."""
    number = code << 8 | crc8(code)
    return START + tuple(number >> bit & 1 for bit in range(31, -1, -1)) + END


class Painter:
    """Makes raw yuv420p pictures with a clock. The width is a multiple of 80, the height of 18."""

    def __init__(self, width, height):
        if width % 80 or height % 18:
            raise ValueError(f"the size {width}x{height} is not a multiple of 80x18")
        self.width, self.height = width, height
        self.strip = height // STRIP
        quarter = width // 4
        row = b"".join(bytes([y]) * quarter for y, _, _ in COLOURS)
        self.body = row * (height - 2 * self.strip)
        self.chroma = b""
        for plane in (1, 2):
            plain = bytes([128]) * (width // 2)
            coloured = b"".join(bytes([colour[plane]]) * (quarter // 2) for colour in COLOURS)
            self.chroma += plain * (self.strip // 2) + coloured * (height // 2 - self.strip) + plain * (self.strip - self.strip // 2)
        self.count = 0

    def frame(self, code):
        """One picture: the code, the colours, and at the bottom a bar that moves by a cell a picture."""
        cell = self.width // CELLS
        white, black = bytes([WHITE]) * cell, bytes([BLACK]) * cell
        code_row = b"".join(white if bit else black for bit in cells(code))
        at = self.count % CELLS * cell
        grey = bytes([126])
        bar_row = grey * at + white + grey * (self.width - at - cell)
        self.count += 1
        luma = code_row * self.strip + self.body + bar_row * (self.height - self.strip - len(self.body) // self.width)
        return luma + self.chroma


def read_row(row):
    """The code in one row of luma values across the picture's whole width; None when there is none."""
    width = len(row)
    if width < CELLS * 2:
        return None
    levels = []
    for cell in range(CELLS):
        # The middle third of a cell: its edges are blurred by scaling.
        left, right = (3 * cell + 1) * width // (3 * CELLS), (3 * cell + 2) * width // (3 * CELLS)
        part = row[left : max(right, left + 1)]
        levels.append(sum(part) / len(part))
    low, high = min(levels), max(levels)
    if high - low < 60:
        return None
    bits = [1 if level > (low + high) / 2 else 0 for level in levels]
    if tuple(bits[:4]) != START or tuple(bits[-4:]) != END:
        return None
    number = int("".join(map(str, bits[4:-4])), 2)
    code = number >> 8
    return code if number & 0xFF == crc8(code) else None


def wrong_colours(pixel):
    """Says which of the four colours are not what they should be; empty when all are right.

    `pixel(x, y)` is the (r, g, b) at a place in the picture, x and y from 0 to 1.
    """
    wrong = []
    for index, expected in enumerate(RGB):
        seen = pixel((index + 0.5) / 4, 0.5)
        if max(abs(a - b) for a, b in zip(seen, expected)) > 70:
            wrong.append(f"colour {index + 1} is {seen}, not about {expected}")
    return wrong
