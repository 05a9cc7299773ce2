"""Paints the clock on an X screen, for what films screens: xclock.py DISPLAY WIDTH HEIGHT RATE. Runs until it is ended."""

import ctypes
import ctypes.util
import sys
import time

import clockcode


class X11:
    """The few calls of libX11 that painting takes."""

    def __init__(self, display):
        lib = self.lib = ctypes.CDLL(ctypes.util.find_library("X11") or "libX11.so.6")
        pointer, number, size = ctypes.c_void_p, ctypes.c_ulong, ctypes.c_uint
        lib.XOpenDisplay.restype, lib.XOpenDisplay.argtypes = pointer, [ctypes.c_char_p]
        lib.XDefaultRootWindow.restype, lib.XDefaultRootWindow.argtypes = number, [pointer]
        lib.XCreatePixmap.restype, lib.XCreatePixmap.argtypes = number, [pointer, number, size, size, size]
        lib.XCreateGC.restype, lib.XCreateGC.argtypes = pointer, [pointer, number, number, pointer]
        lib.XSetForeground.argtypes = [pointer, pointer, number]
        lib.XFillRectangle.argtypes = [pointer, number, pointer, ctypes.c_int, ctypes.c_int, size, size]
        lib.XCopyArea.argtypes = [pointer, number, number, pointer, ctypes.c_int, ctypes.c_int, size, size, ctypes.c_int, ctypes.c_int]
        lib.XSync.argtypes = [pointer, ctypes.c_int]
        self.display = lib.XOpenDisplay(display.encode())
        if not self.display:
            raise RuntimeError(f"the X screen {display} cannot be opened")
        self.root = lib.XDefaultRootWindow(self.display)

    def paint(self, width, height, rate):
        lib, display = self.lib, self.display
        # Painted aside and copied at once: no film sees half a clock.
        pixmap = lib.XCreatePixmap(display, self.root, width, height, 24)
        pen = lib.XCreateGC(display, pixmap, 0, None)

        def fill(colour, x, y, w, h):
            lib.XSetForeground(display, pen, colour)
            lib.XFillRectangle(display, pixmap, pen, x, y, w, h)

        strip, cell, quarter = height // clockcode.STRIP, width // clockcode.CELLS, width // 4
        for index, (red, green, blue) in enumerate(clockcode.RGB):
            fill(red << 16 | green << 8 | blue, index * quarter, strip, quarter, height - 2 * strip)
        due, count = time.monotonic(), 0
        while True:
            for index, bit in enumerate(clockcode.cells(clockcode.now_ms())):
                fill(0xFFFFFF if bit else 0, index * cell, 0, cell, strip)
            fill(0x808080, 0, height - strip, width, strip)
            fill(0xFFFFFF, count % clockcode.CELLS * cell, height - strip, cell, strip)
            lib.XCopyArea(display, pixmap, self.root, pen, 0, 0, width, height, 0, 0)
            lib.XSync(display, 0)
            count += 1
            due = max(due + 1 / rate, time.monotonic())
            time.sleep(due - time.monotonic() if due > time.monotonic() else 0)


if __name__ == "__main__":
    X11(sys.argv[1]).paint(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
