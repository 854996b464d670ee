#!/bin/sh
# Installs the agent into /opt/agent from a wheelhouse, without network, and seals it.
# Usage: install.sh WHEELHOUSE LOCK UID
# Used by the Dockerfile and, inside bubblewrap, by the preparation of a plain root file system.
set -eu
wheels=$1
lock=$2
uid=$3
agent=/opt/agent

grep -q '^agent:' /etc/group || echo "agent:x:$uid:" >>/etc/group
grep -q '^agent:' /etc/passwd || echo "agent:x:$uid:$uid:agent:/home/agent:/bin/sh" >>/etc/passwd
mkdir -p /home/agent /opt/lab
chown "$uid:$uid" /home/agent 2>/dev/null || true # an unprivileged preparation owns everything anyway

# Nothing of a pip configuration that a base image may bring is to decide what gets installed.
export PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
python3 -m venv "$agent"
"$agent/bin/python3" -m pip install --quiet --no-index --find-links "$wheels" --require-hashes --no-deps \
    --no-compile --root-user-action ignore --requirement "$lock"
"$agent/bin/python3" -m pip check --quiet
"$agent/bin/python3" -m pip list --format freeze --exclude pip --exclude setuptools >"$agent/freeze.txt"

# Without an installer, and without write permission, the agent cannot change itself between two trials.
"$agent/bin/python3" -m pip uninstall --quiet --yes --root-user-action ignore setuptools pip
rm -f "$agent"/bin/pip*

# The root file system is read-only at run time: bytecode that is not there now is compiled again in every trial.
# Hash-based files that are never checked do not depend on the time stamps that copying changes.
# A file that is no Python (a template, the syntax of another version) is left as it is and listed; any other file
# without bytecode ends the installation.
"$agent/bin/python3" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$agent/lib" >/dev/null || true
"$agent/bin/python3" - "$agent/lib" >"$agent/uncompiled.txt" <<'CHECK'
import importlib.util, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.py")):
    if not pathlib.Path(importlib.util.cache_from_source(str(path))).is_file():
        try:
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            print(path)
        else:
            sys.exit(f"no bytecode could be written for {path}")
CHECK
chmod -R a-w,a+rX "$agent"
