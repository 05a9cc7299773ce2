"""Apps' own clients against a real server: python3 Tests/Apps --earshot BINARY [--keep FOLDER] [NAME…]. The vendor's SDKs, aiortc and Chromium."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Console"))

import cases  # noqa: E402, F401: each registers its cases.
import cases_access  # noqa: E402, F401
import cases_board  # noqa: E402, F401
import cases_class  # noqa: E402, F401
import cases_kill  # noqa: E402, F401
import cases_machine  # noqa: E402, F401
import cases_operator  # noqa: E402, F401
import suite  # noqa: E402
from certificate import certificate  # noqa: E402
from registry import CASES  # noqa: E402
from server import Server  # noqa: E402


def act(case, options, folder):
    """`settings` of a case are its server's; one that `has_certificate` has a server with HTTPS."""
    settings = {**getattr(case, "settings", {}), **(certificate(folder) if getattr(case, "has_certificate", False) else {})}
    with Server(options.earshot, folder, settings=settings) as server:
        server.keep = options.keep
        try:
            case(server)
        except BaseException:
            suite.tell_log(server)
            raise


suite.run("apps", "Drives the server by the clients of the apps built on it.", suite.by_name(CASES), act, keeps=True)
