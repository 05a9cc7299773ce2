"""Metrics, alert rules and dashboard with a real Prometheus: python3 Tests/Metrics --earshot BINARY [NAME…]."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Console"))

import suite  # noqa: E402
from cases import CASES  # noqa: E402

suite.run(
    "metrics", "Scrapes servers with Prometheus, and asks what alerts and dashboard ask.", suite.by_name(CASES),
    lambda case, options, folder: case(options.earshot, folder))
