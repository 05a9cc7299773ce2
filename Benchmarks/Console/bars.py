"""Measured values beside what they may be, and what the kernel says of a process."""
import os


class Bars:
    def __init__(self):
        self.lines = []

    def note(self, name, value, unit, bar=None):
        """`bar`: the most that the value may be; None: shown only."""
        self.lines.append({"name": name, "value": value, "unit": unit, "bar": bar})

    def fail(self, name):
        self.lines.append({"name": name, "value": None, "unit": "", "bar": 0})

    @property
    def missed(self):
        return [line for line in self.lines if line["bar"] is not None and (line["value"] is None or line["value"] > line["bar"])]

    def table(self, binary):
        def shown(value):
            return "–" if value is None else f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"

        rows = [f"| {binary} | measured | bar | |", "|---|---|---|---|"]
        for line in self.lines:
            verdict = "" if line["bar"] is None else "MISSED" if line in self.missed else "met"
            bar = "" if line["bar"] is None or line["value"] is None else f"{shown(line['bar'])} {line['unit']}"
            rows.append(f"| {line['name']} | {shown(line['value'])} {line['unit']} | {bar} | {verdict} |")
        return "\n".join(rows)


def cpu_seconds(pid):
    """Of all its threads, user and system."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid):
    """The process's own memory in MB (no files)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1000


def rank(values, share):
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
