"""Classes by their clients: cases as in cases.py."""
