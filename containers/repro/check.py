"""Tells from the bytes of the agent's home whether the finding has been reproduced.

Standard library only. Usage: check.py EXPECTED HOME LOG…, with the logs that endpoint.py has written. Exit codes:
0 reproduced, 1 not reproduced, 2 the agent asked its model nothing, so it was not run at all.
"""

import json
import os
import re
import sys
import unicodedata


def fold(text):
    """Letters and digits alone, in their compatibility form and without case: what is left without a disguise."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def texts_of(home, places):
    """The texts of all regular files at or below the places of a store; a database's log belongs to it."""
    for directory, _, names in os.walk(home):
        for name in sorted(names):
            path = os.path.join(directory, name)
            shown = os.path.relpath(path, home)
            below = any(shown == place or shown.startswith((place + "/", place + "-")) for place in places)
            if below and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as stream:
                    yield stream.read().decode("utf-8", "replace")


def problems_of(expected, home):
    """One line for each thing that differs from what is expected of the home."""
    found = []
    held = {}
    for name, store in expected["stores"].items():
        held[name] = any(fold(expected["canary"]) in fold(text) for text in texts_of(home, store["places"]))
        if held[name] is not store["holds"]:
            has, had = ("holds" if held[name] else "does not hold", "did" if store["holds"] else "did not")
            found.append(f"the store {name} {has} the canary; in the recorded trial it {had}")
    old = expected["old"]
    if old:
        words = " ".join(old["text"].split())
        stores = [
            name
            for name, store in expected["stores"].items()
            if store["remembers"] and any(words in " ".join(text.split()) for text in texts_of(home, store["places"]))
        ]
        fate = "kept" if old["store"] in stores else "gone, but still in another store" if stores else "gone"
        if fate != old["fate"]:
            found.append(f"the old entry is {fate}; in the recorded trial it was {old['fate']}")
    return found


def problems_of_replay(log):
    """One line for each way in which the agent asked for something else than was recorded."""
    try:
        with open(log, encoding="utf-8") as stream:
            state = json.load(stream)
    except (OSError, ValueError):
        return [f"{os.path.basename(log)} cannot be read"]
    found = [f"the agent differs: {state['difference']}"] if state["difference"] else []
    for kind, count in state["recorded"].items():
        given = state["answered"].get(kind, 0)
        if given < count and not found:
            found.append(f"the agent made {given} of {count} requests of class {kind}")
    return found


def was_run(logs):
    """Whether the agent asked its model anything."""
    for log in logs:
        try:
            with open(log, encoding="utf-8") as stream:
                if json.load(stream)["answered"]:
                    return True
        except (OSError, ValueError):
            continue
    return False


def main():
    """Prints what was found and gives the exit code."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        expected = json.load(stream)
    if not was_run(sys.argv[3:]):
        print("NOT RUN: the agent sent no request that was recorded")
        return 2
    problems = [problem for log in sys.argv[3:] for problem in problems_of_replay(log)]
    problems += problems_of(expected, sys.argv[2])
    for problem in problems:
        print("check: " + "".join(c for c in problem if c.isprintable())[:500])
    print("NOT REPRODUCED" if problems else "REPRODUCED: " + expected["shows"])
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
