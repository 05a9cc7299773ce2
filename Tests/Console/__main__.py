"""The console in a real browser, against a real server with real pushes: python3 Tests/Console --earshot BINARY [--keep FOLDER] [NAME…].
--keep writes a screenshot of each case there, to be looked at. Chromium and ffmpeg must be installed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from browser import Browser  # noqa: E402
import cases  # noqa: E402, F401: each registers its cases.
import cases_access  # noqa: E402, F401
import cases_actions  # noqa: E402, F401
import cases_attacks  # noqa: E402, F401
import cases_many  # noqa: E402, F401
import cases_nodes  # noqa: E402, F401
import cases_operator  # noqa: E402, F401
import cases_room  # noqa: E402, F401
import cases_streams  # noqa: E402, F401
import cases_talk  # noqa: E402, F401
import cases_words  # noqa: E402, F401
from looks import CASES  # noqa: E402
from server import Server  # noqa: E402
import suite  # noqa: E402


def act(case, options, folder):
    with Server(options.earshot, folder, settings=case.settings) as server, Browser(folder) as browser:

        def keep(page, name=case.__name__):
            if options.keep:
                with open(os.path.join(options.keep, f"{name}.png"), "wb") as file:
                    file.write(page.picture())

        try:
            case(server, browser, keep)
            problems = [problem for problem in browser.problems if not any(text in problem for text in case.expected)]
            assert not problems, f"the browser complains: {problems}"
        except BaseException:
            suite.tell_log(server)
            raise


suite.run("console", "Drives the console by a headless Chromium.", suite.by_name(CASES), act, keeps=True)
