"""Looks for declared marks in the installed files, from inside the environment: one JSON object on standard output.

Run as ``python3 -I -S -c TEXT MARKERS``: without site packages, so no code of the build runs before this. The standard
library alone. Answers, by a marker's name, why it does not hold; an empty text where it holds.
"""

import glob
import json
import os
import re
import sys

PLACES = "/opt/agent/lib/python3*/site-packages"
LARGEST = 16 << 20


def judge(root: str, marker: dict[str, str]) -> str:
    """Why one marker does not hold; empty when it does."""
    path = os.path.realpath(os.path.join(root, marker["file"]))
    if not path.startswith(os.path.realpath(root) + os.sep):
        return "the file lies outside of the installed packages"
    if not os.path.isfile(path):
        return "the file is gone"
    if os.path.getsize(path) > LARGEST:
        return "the file is too large to look into"
    with open(path, encoding="utf-8", errors="replace", newline="") as stream:
        text = stream.read()
    contains, regex, absent = (marker.get(test) for test in ("contains", "regex", "absent"))
    problems = (
        (contains and contains not in text, "the text is not in the file"),
        (regex and not re.search(regex, text, re.MULTILINE), "the pattern matches nowhere in the file"),
        (absent and absent in text, "the text that must be absent is in the file"),
    )
    return "; ".join(problem for holds, problem in problems if holds)


def main() -> None:
    """Prints one answer for each marker."""
    roots = glob.glob(PLACES)
    if len(roots) != 1:
        sys.exit(f"{len(roots)} folders of installed packages")
    print(json.dumps({marker["name"]: judge(roots[0], marker) for marker in json.loads(sys.argv[1])}))


if __name__ == "__main__":
    main()
