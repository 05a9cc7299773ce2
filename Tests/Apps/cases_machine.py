"""Claw machines by their clients: cases as in cases.py."""
