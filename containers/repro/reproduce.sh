#!/bin/sh
# Runs the agent once more with the recorded answers of its model, without network, and checks the bytes it leaves.
#
#   sh reproduce.sh docker    builds an image from image/ (IMAGE=… takes one that has the agent in /opt/agent)
#   sh reproduce.sh bwrap     AGENT_PREFIX=… a Python environment that has the agent (see README.md),
#                             or ROOTFS=… a whole root file system with the agent in /opt/agent
#
# Exit codes: 0 reproduced, 1 not reproduced, 2 could not be run.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=${WORK:-$here/work}
python=${PYTHON:-python3}
user=10001
endpoint=

fail() { echo "reproduce: $1" >&2; exit 2; }
stop() {
    if [ -n "$endpoint" ]; then
        kill "$endpoint" 2>/dev/null || true
        wait "$endpoint" 2>/dev/null || true
        endpoint=
        rm -f "$work/io/gw.sock" # so that the folder can be copied
    fi
}
trap stop EXIT
trap 'exit 130' INT TERM

how=${1:-}
case $how in docker | bwrap) ;; *) fail "usage: sh reproduce.sh docker | bwrap" ;; esac
command -v "$how" >/dev/null || fail "$how is not installed"
command -v "$python" >/dev/null || fail "$python is not installed (PYTHON=… names another)"

in_docker() {
    if [ "$(id -u)" != 0 ]; then user=$(id -u); else chown -R "$user:$user" "$work/home" "$work/io"; fi
    set -- --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --hostname lab \
        --memory 1g --pids-limit 256 --tmpfs /tmp:size=128m,mode=1777,exec --user "$user:$user" \
        --env-file "$here/env.list" --volume "$work/home:/home/agent" --volume "$work/io:/run/lab" \
        --volume "$here/driver:/opt/lab:ro" --workdir /home/agent --entrypoint /usr/bin/env "$image"
    while IFS= read -r word; do set -- "$@" "$word"; done <"$here/command.list"
    docker run "$@"
}

in_bwrap() {
    set -- --unshare-all --unshare-user --uid "$user" --gid "$user" --die-with-parent --new-session --hostname lab --clearenv
    if [ -n "${ROOTFS:-}" ]; then
        set -- "$@" --ro-bind "$ROOTFS" /
    else
        set -- "$@" --ro-bind /usr /usr
        for place in /bin /sbin /lib /lib32 /lib64 /libx32; do
            if [ -L "$place" ]; then set -- "$@" --symlink "$(readlink "$place")" "$place"
            elif [ -d "$place" ]; then set -- "$@" --ro-bind "$place" "$place"; fi
        done
        printf 'agent:x:%s:%s:agent:/home/agent:/bin/sh\n' "$user" "$user" >"$work/passwd"
        set -- "$@" --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache --ro-bind "$work/passwd" /etc/passwd
        case $interpreter in /usr | /usr/*) ;; *) set -- "$@" --ro-bind "$interpreter" "$interpreter" ;; esac
        set -- "$@" --ro-bind "$AGENT_PREFIX" /opt/agent
    fi
    set -- "$@" --proc /proc --dev /dev --tmpfs /tmp --tmpfs /run --ro-bind "$here/driver" /opt/lab \
        --bind "$work/io" /run/lab --bind "$work/home" /home/agent --chdir /home/agent
    while IFS= read -r line; do set -- "$@" --setenv "${line%%=*}" "${line#*=}"; done <"$here/env.list"
    set -- "$@" --
    while IFS= read -r word; do set -- "$@" "$word"; done <"$here/command.list"
    bwrap "$@"
}

if [ "$how" = docker ]; then
    image=${IMAGE:-}
    if [ -z "$image" ]; then
        echo "reproduce: building the image (some minutes the first time)"
        set -- --quiet
        for name in BASE PIP_INDEX_URL PIP_NO_INDEX; do
            eval "value=\${$name:-}"
            if [ -n "$value" ]; then set -- "$@" --build-arg "$name=$value"; fi
        done
        image=$(docker build "$@" "$here/image") || fail "the image could not be built"
    fi
elif [ -z "${ROOTFS:-}" ]; then
    [ -x "${AGENT_PREFIX:-}/bin/python" ] || fail "AGENT_PREFIX names no Python environment, and ROOTFS no root file system"
    AGENT_PREFIX=$(CDPATH='' cd -- "$AGENT_PREFIX" && pwd)
    IFS='=' read -r product wanted <"$here/agent.list"
    # The interpreter may lie outside of the environment and of the system.
    interpreter=$("$AGENT_PREFIX/bin/python" -I -c 'import os, sys; print(os.path.realpath(sys.base_prefix))') ||
        fail "the interpreter of $AGENT_PREFIX does not run here (a root file system's own needs ROOTFS=…)"
    has=$("$AGENT_PREFIX/bin/python" -I -c 'import importlib.metadata as m, sys; print(m.version(sys.argv[1]))' "$product" \
        2>/dev/null) || fail "$AGENT_PREFIX does not have $product"
    [ "$has" = "$wanted" ] || echo "reproduce: this is $product $has, the finding was made with $wanted" >&2
fi

rm -rf "$work"
mkdir -p "$work"
cp -R "$here/home" "$work/home"
chmod -R u+rwX "$work"
logs=
for phase in session pending; do
    job="$here/job.json"
    [ "$phase" = session ] || job="$here/job-$phase.json"
    [ -f "$job" ] || continue
    rm -rf "$work/io"
    mkdir "$work/io"
    cp "$job" "$work/io/job.json"
    "$python" -I "$here/endpoint.py" "$here/answers.json" "$phase" "$work/io/gw.sock" "$work/$phase.log" &
    endpoint=$!
    tries=0
    until [ -S "$work/io/gw.sock" ]; do
        tries=$((tries + 1))
        [ "$tries" -le 100 ] && kill -0 "$endpoint" 2>/dev/null || fail "the endpoint did not start"
        sleep 0.1
    done
    echo "reproduce: running the agent in $how ($phase)"
    code=0
    if [ "$how" = docker ]; then in_docker; else in_bwrap; fi >"$work/$phase.out" 2>&1 || code=$?
    stop
    # 5 is a crash that the job itself asks for.
    case $code in 0 | 5) ;; *) echo "reproduce: the agent ended with exit code $code, see $work/$phase.out" >&2 ;; esac
    logs="$logs $phase.log"
done
cd "$work"
# shellcheck disable=SC2086 # two plain names
exec "$python" -I "$here/check.py" "$here/expected.json" "$work/home" $logs
