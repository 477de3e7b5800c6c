#!/bin/bash
# Clients that send a byte a second on every listener, and a scheduler that
# must not notice.  Needs curl.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need curl

post='POST /v1/scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n'
body='{"Pod":{"metadata":{"name":"p","namespace":"d","uid":"u"},"spec":{}},"NodeNames":["a","b"]}'

line() { # number: what a client says first
    case $(($1 % 3)) in
    0) line=GET ;;
    1) line='GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ' ;;
    2) line=$post ;;
    esac
}
others_are_served() {
    curl -sf -m "$HANGS" "http://127.0.0.1:$(port read)/readyz" >/dev/null &&
        curl -sf -m "$HANGS" "http://127.0.0.1:$(port publish)/apis" >/dev/null
}
served() { # N: how many of so many filters are answered
    local good=0
    for _ in $(seq "$1"); do
        [ "$(curl -s -m "$HANGS" -o /dev/null -w '%{http_code}' -X POST -d "$body" \
            "http://127.0.0.1:$(port scheduler)/v1/scheduler/filter")" = 200 ] &&
            good=$((good + 1))
    done
    echo $good
}

# Says one line and then a byte a second; leaves a file when it was cut off.
trickle() { # name port line
    exec 3<>"/dev/tcp/127.0.0.1/$2" || return
    printf '%b' "$3" >&3
    : >"$dir/on.$1"
    trap '' PIPE
    while printf x >&3 2>/dev/null; do
        read -r -t 1 -u 3 -N 1 _
        [ $? -gt 128 ] || break # ended, or an answer: no longer served
    done
    echo cut >"$dir/cut.$1"
}
all_on() { [ "$(find "$dir" -name 'on.*' | wc -l)" = 18 ]; }
all_trickle() { # returns when 18 clients have begun, which are $trickles
    local listener i
    rm -f "$dir"/on.* "$dir"/cut.*
    trickles=()
    for listener in scheduler publish read; do
        for i in $(seq 6); do
            line "$i"
            trickle "$listener.$i" "$(port $listener)" "$line" 2>/dev/null &
            trickles+=($!)
        done
    done
    pids+=("${trickles[@]}")
    until_true all_on
}

# Nobody is cut off before HANGS, and nobody says more: who waits for one of
# them hangs.
start_extender --request-timeout 10m --connections 16
fds=()
for listener in scheduler publish read; do
    for i in $(seq 6); do
        line "$i"
        exec {fd}<>"/dev/tcp/127.0.0.1/$(port $listener)"
        printf '%b' "$line" >&"$fd"
        fds+=("$fd")
    done
done
[ "$(served 60)" = 60 ]
ok $? "the scheduler is served"
others_are_served
ok $? "the others are served"
for fd in "${fds[@]}"; do
    exec {fd}>&-
done

# Now they go on.
all_trickle && [ "$(served 20)" = 20 ]
ok $? "the scheduler is served while they trickle"
others_are_served
ok $? "so are the others"
kill "${trickles[@]}"
wait "${trickles[@]}" 2>/dev/null
kill "$extender"
wait "$extender"

# And are cut off: here nobody else asks, who might be as slow for once.
start_extender --request-timeout 6s --connections 16
all_trickle
all_are_cut() { [ "$(find "$dir" -name 'cut.*' | wc -l)" = 18 ]; }
until_true all_are_cut
cut=$(find "$dir" -name 'cut.*' | wc -l)
[ "$cut" = 18 ]
ok $? "who trickles is cut off ($cut of 18)"

kib=$(awk '/VmHWM/ { print $2 }' "/proc/$extender/status")
[ "$kib" -lt 65536 ]
ok $? "memory stays bounded ($kib KiB)"
echo "1..$n"
