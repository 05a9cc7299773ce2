"""The author's guide: its blocks of code, by document and language."""
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "apps")


def blocks(document, language):
    with open(os.path.join(FOLDER, document), encoding="utf-8") as file:
        found = re.findall(rf"```{language}\n(.*?)```", file.read(), re.S)
    assert found, f"docs/apps/{document} has no block of {language}"
    return found


def here(code, server):
    """The code for this server's ports."""
    return code.replace("127.0.0.1:8080", server.http).replace("127.0.0.1:1935", server.rtmp)
