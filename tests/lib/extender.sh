# Sourced by the scripts of tests/e2e: a folder $dir that goes away with all
# processes in $pids, TAP lines, and a biga-extender on free ports.
# shellcheck shell=bash disable=SC2034

# shellcheck source=tests/lib/hangs.sh
. "$(dirname "${BASH_SOURCE[0]}")/hangs.sh"
BUILD=${BUILD:-build}
dir=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do
        kill -9 "$pid" 2>/dev/null
    done
    wait 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

# need TOOL…: without one of them the script is skipped
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "there is no $tool"; exit 77; }
    done
}

# ok STATUS NAME: a TAP line; with a failure the ends of what was logged
n=0
ok() {
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        tail -n 5 "$dir"/*.log | sed 's/^/# /'
    fi
}

# until_true CONDITION…: true when it holds, before HANGS
until_true() {
    local i
    for i in $(seq $((HANGS * 20))); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

# start_extender [OPTION…]: sets $extender, its process id
start_extender() {
    : >"$dir/extender.log" # now, or the one before would be taken for ready
    "$BUILD/biga-extender" --scheduler-listen 127.0.0.1:0 \
        --read-listen 127.0.0.1:0 --publish-listen 127.0.0.1:0 \
        --state "$dir/state" "$@" 2>"$dir/extender.log" &
    extender=$!
    pids+=("$extender")
    until_true grep -q event=ready "$dir/extender.log" ||
        { cat "$dir/extender.log"; echo "Bail out! no extender"; exit 1; }
}

# port LISTENER: where the extender listens
port() {
    sed -n "s/.*listener=$1 .*port=//p" "$dir/extender.log"
}
