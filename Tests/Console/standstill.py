"""How long the machine stood still: a thread that only sleeps notes how late it wakes."""
import threading
import time

STEP, USUAL = 0.05, 0.1


class Standstill(threading.Thread):
    """Watches from its start on. What is measured meanwhile has these times in it, which are nobody's fault."""

    def __init__(self):
        super().__init__(daemon=True)
        # Seconds in all, and at one time; from and to, on the steady clock.
        self.total, self.longest, self.times = 0.0, 0.0, []
        self.start()

    def run(self):
        while True:
            due = time.monotonic() + STEP
            time.sleep(STEP)
            late = time.monotonic() - due
            if late > USUAL:
                self.total += late
                self.longest = max(self.longest, late)
                self.times.append((due, due + late))

    def within(self, begin, end):
        """Seconds between two moments of the steady clock in which the machine stood still."""
        return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in list(self.times))
