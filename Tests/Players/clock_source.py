"""Writes raw yuv420p pictures with the clock to standard output: clock_source.py WIDTH HEIGHT RATE [variable] [SECONDS].

Each shows the time at which it was made. None is left out, since ffmpeg counts pictures of a constant rate: a stall is made up for in a burst.
With `variable` they come at uneven intervals, as from a phone in the dark; the reader then has to go by the time at which they arrive.
"""

import random
import sys
import time

import clockcode


def main():
    width, height, rate = (int(word) for word in sys.argv[1:4])
    rest = sys.argv[4:]
    is_variable = "variable" in rest
    seconds = next((float(word) for word in rest if word != "variable"), None)
    painter = clockcode.Painter(width, height)
    out = sys.stdout.buffer
    begin = due = time.monotonic()
    # The same intervals each time.
    dice = random.Random(7)
    step = 1 / rate
    while seconds is None or due - begin < seconds:
        wait = due - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        try:
            out.write(painter.frame(clockcode.now_ms()))
            out.flush()
        except BrokenPipeError:
            return
        due += dice.choice((step, step, step / 2, 2 * step, 6 * step)) if is_variable else step


if __name__ == "__main__":
    main()
