#!/bin/bash
# Clients that send a byte a second on every listener, and a scheduler that
# must not notice.  Needs curl.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need curl

start_extender --request-timeout 6s --connections 16

# Says one line and then a byte a second; leaves a file when it was cut off.
trickle() { # name port line
    exec 3<>"/dev/tcp/127.0.0.1/$2" || return
    printf '%b' "$3" >&3
    trap '' PIPE
    while printf x >&3 2>/dev/null; do
        read -r -t 1 -u 3 -N 1 _
        [ $? -gt 128 ] || break # ended, or an answer: no longer served
    done
    echo cut >"$dir/cut.$1"
}

post='POST /v1/scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n'
for listener in scheduler publish read; do
    for i in $(seq 6); do
        case $((i % 3)) in
        0) line=GET ;;
        1) line='GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ' ;;
        2) line=$post ;;
        esac
        trickle "$listener.$i" "$(port $listener)" "$line" 2>/dev/null &
        pids+=($!)
    done
done
sleep 0.3

body='{"Pod":{"metadata":{"name":"p","namespace":"d","uid":"u"},"spec":{}},"NodeNames":["a","b"]}'
slowest=0 slow=0 bad=0
for _ in $(seq 60); do
    answer=$(curl -s -m 60 -o /dev/null -w '%{http_code} %{time_total}' -X POST \
        -d "$body" "http://127.0.0.1:$(port scheduler)/v1/scheduler/filter")
    [ "${answer% *}" = 200 ] || bad=$((bad + 1))
    ms=$(awk -v t="${answer#* }" 'BEGIN { printf "%d", t * 1000 }')
    [ "$ms" -gt "$slowest" ] && slowest=$ms
    [ "$ms" -ge 500 ] && slow=$((slow + 1))
    sleep 0.02
done
# who waits for a trickler does so until it is cut off, or for its next byte,
# each time; a machine that is busy is so now and then
echo "# slowest answer of 60: $slowest ms; $slow took half a second"
[ $bad = 0 ] && [ "$slowest" -lt 4000 ] && [ "$slow" -lt 15 ] &&
    echo "ok 1 - the scheduler is served" ||
    echo "not ok 1 - the scheduler is served ($bad bad, $slow slow, $slowest ms)"

curl -sf -m 60 "http://127.0.0.1:$(port read)/readyz" >/dev/null &&
    curl -sf -m 60 "http://127.0.0.1:$(port publish)/apis" >/dev/null &&
    echo "ok 2 - the others are served" || echo "not ok 2 - the others are served"

all_are_cut() { [ "$(find "$dir" -name 'cut.*' | wc -l)" = 18 ]; }
until_true all_are_cut
cut=$(find "$dir" -name 'cut.*' | wc -l)
[ "$cut" = 18 ] && echo "ok 3 - who trickles is cut off" ||
    echo "not ok 3 - who trickles is cut off ($cut of 18)"

kib=$(awk '/VmHWM/ { print $2 }' "/proc/$extender/status")
[ "$kib" -lt 65536 ] && echo "ok 4 - memory stays bounded ($kib KiB)" ||
    echo "not ok 4 - memory stays bounded ($kib KiB)"
echo "1..4"
