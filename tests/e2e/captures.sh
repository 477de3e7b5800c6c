#!/bin/bash
# What real kube-schedulers sent, answered by biga-extender and taken by Go's
# own decoder.  TAP lines.
set -u

BUILD=${BUILD:-build}
data=${BIGA_DATA:-../shared/data}
command -v go >/dev/null || { echo "there is no go"; exit 77; }
[ -d "$data/captures" ] || { echo "there is no $data/captures"; exit 77; }

dir=$(mktemp -d)
pid=
cleanup() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT

(cd bench/go && go build -o "$dir/captures" ./captures) || exit 1
"$BUILD/biga-extender" --scheduler-listen 127.0.0.1:0 \
    --read-listen 127.0.0.1:0 --publish-listen 127.0.0.1:0 2>"$dir/log" &
pid=$!
for _ in $(seq 200); do
    grep -q event=ready "$dir/log" && break
    sleep 0.05
done
port=$(sed -n 's/.*listener=scheduler .*port=//p' "$dir/log")
[ -n "$port" ] || { cat "$dir/log"; echo "Bail out! no extender"; exit 1; }
"$dir/captures" "http://127.0.0.1:$port/v1/scheduler" "$data/captures"
