"""The kinds of torture, one module each: `run(context)` does what its docstring says for context.rounds rounds."""

import importlib

# The kind that counts milliseconds: nothing else runs beside it.
ALONE = "hostile"
# Module, rounds of the short form, rounds of the long form.
PLAN = (
    ("stall", 3, 150),
    ("kill", 10, 2000),
    ("database", 3, 250),
    ("cluster", 1, 50),
    ("descriptors", 1, 100),
    ("fulldisk", 1, 100),
    ("faults", 2, 200),
    ("power", 8, 2000),
    ("clock", 12, 1000),
    ("hostile", 1, 20),
    ("hooks", 1, 60),
    ("restart", 1, 50),
)


def load(name):
    return importlib.import_module(f"kinds.{name}")
