"""Checks of what packages bring, and of how the server works with what it is installed beside.

python3 Tests/Package --earshot BINARY [CHECK…]   the quick ones, each by its name; a step of `make verify`
python3 Tests/Package life [DEB] [--build-stage]  a package's life in a clean Debian, and the Dockerfile's first stage; as root; `make package-test`
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Console"))

import files  # noqa: E402
import first_process  # noqa: E402
import image  # noqa: E402
import install  # noqa: E402
import life  # noqa: E402
import nginx  # noqa: E402
import notify  # noqa: E402
import postgres  # noqa: E402
import sockets  # noqa: E402
import suite  # noqa: E402


def checks():
    return {f"{module.__name__}.{check.__name__}": check for module in [files, install, first_process, notify, sockets, nginx, postgres] for check in module.CHECKS}


def quick(arguments):
    suite.run(
        "package", "Checks what packages bring, beside what they are installed with.", checks(),
        lambda check, options, folder: check(options.earshot), arguments=arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["life"]:
        life.main(sys.argv[2:])
    elif sys.argv[1:2] == ["use"]:
        life.use(sys.argv[2:])
    elif sys.argv[1:2] == ["image"]:
        image.use(sys.argv[2:])
    else:
        quick(sys.argv[1:])
