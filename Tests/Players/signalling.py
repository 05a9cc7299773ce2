"""What clients of WHEP say to the test, and to the server."""

import json
import time
import urllib.error
import urllib.request


def say(what, **more):
    print(json.dumps({"what": what, "at": time.time(), **more}), flush=True)


def call(method, url, body=None, kind=None):
    """An HTTP request: the status, the headers and the text of the answer."""
    request = urllib.request.Request(url, body.encode() if body else None, {"Content-Type": kind} if kind else {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()
