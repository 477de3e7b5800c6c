#!/bin/bash
# The advertiser against a real extender: publishing, heartbeats, outages,
# restarts and take-overs.  Needs curl.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
# shellcheck source=tests/lib/free_port.sh
. "$(dirname "$0")/../lib/free_port.sh"
need curl

slices=/apis/resource.k8s.io/v1/resourceslices
get() { curl -s -m "$HANGS" "http://127.0.0.1:$publish$slices/$1"; }
there() { get "$1" | grep -q '"driver"'; }
gone() { [ "$(curl -s -m "$HANGS" -o /dev/null -w '%{http_code}' \
    "http://127.0.0.1:$publish$slices/$1")" = 404 ]; }
generation_is() { get "$1" | grep -q "\"generation\":$2,"; }
heartbeats() { [ "$(grep -c event=heartbeat "$dir/$1.log")" -ge "$2" ]; }
logged() { grep -q "event=$2" "$dir/$1.log"; }

# advertise LOG OPTION…: sets $pid
advertise() {
    local log=$1
    shift
    : >"$dir/$log.log" # now, so that nobody reads what an earlier one said
    "$BUILD/biga-advertiser" --server "http://127.0.0.1:$publish" \
        --heartbeat 200ms --timeout 60s "$@" 2>"$dir/$log.log" >"$dir/$log.out" &
    pid=$!
    pids+=("$pid")
}

# stop PID: its exit status
stop() {
    kill -TERM "$1"
    wait "$1"
}

host() { # a host description of so many cards
    echo "package 0"
    echo "  numa 0 cpus=8 memory=16GiB"
    echo "    root 0000:00"
    local i
    for i in $(seq "$1"); do
        echo "      bridge 0000:00:0$i.0"
        echo "        card 0000:0$i:00.0 id=15b3:a2d6 cores=8 memory=16GiB"
    done
}

publish=$(free_port 11000) # the same again after an outage
start_extender --publish-listen "127.0.0.1:$publish"
[ "$(port publish)" = "$publish" ]
ok $? "the server starts"

host 1 >"$dir/h.host"
advertise a --hostfile "$dir/h.host" --node h --boot-id b1
a=$pid
until_true there h-xpu.biga.dev-0
ok $? "a host is published"

host 2 >"$dir/h.host"
kill -HUP "$a"
until_true generation_is h-xpu.biga.dev-0 2
ok $? "SIGHUP reads the files again: a change raises the generation"

kill -9 "$a"
advertise a --hostfile "$dir/h.host" --node h --boot-id b1
a=$pid
until_true logged a published && generation_is h-xpu.biga.dev-0 2
ok $? "a restart without a change keeps it"

kill -9 "$extender"
wait "$extender" 2>/dev/null
until_true logged a publish-failed
ok $? "an outage is noticed"
rm -rf "$dir/state"
start_extender --publish-listen "127.0.0.1:$publish"
until_true there h-xpu.biga.dev-0
ok $? "what the server lost is there again"
generation_is h-xpu.biga.dev-0 2
ok $? "under the same generation"

advertise b --hostfile "$dir/h.host" --node h --boot-id b2 --log-level debug
b=$pid
until_true logged a superseded
ok $? "the advertiser of a later boot takes over"
until_true heartbeats b 3
get h-xpu.biga.dev-0 | grep -q '"biga.dev/boot-id":"b2"' &&
    ! logged b superseded && ! logged a reinstated
ok $? "and is not fought"
stop "$a"
ok $? "who was superseded stops cleanly"
there h-xpu.biga.dev-0
ok $? "and withdraws nothing"

stop "$b"
ok $? "a clean stop succeeds"
gone h-xpu.biga.dev-0
ok $? "and withdraws"

advertise f --fleet 40 --fleet-prefix lab
f=$pid
until_true grep -qx "fleet ready 40" "$dir/f.out"
ok $? "a fleet says when it is ready"
[ "$(curl -s "http://127.0.0.1:$publish$slices" | grep -o '"name":"lab[0-9]*-' |
    sort -u | wc -l)" = 40 ]
ok $? "and all its hosts are there"
kill -9 "$extender"
wait "$extender" 2>/dev/null
stop "$f"
[ $? = 3 ]
ok $? "stopping while the server is away: exit status 3"

"$BUILD/biga-advertiser" --node A_b --print tree 2>"$dir/x.log"
[ $? = 2 ]
ok $? "a wrong setting: exit status 2"
"$BUILD/biga-advertiser" --node h --topology "$dir/none" --print tree \
    2>"$dir/x.log"
[ $? = 1 ]
ok $? "an unreadable topology: exit status 1"
one=$("$BUILD/biga-advertiser" --hostfile "$dir/h.host" --node h \
    --boot-id b --print slices | cksum)
two=$("$BUILD/biga-advertiser" --hostfile "$dir/h.host" --node h \
    --boot-id b --print slices | cksum)
[ "$one" = "$two" ]
ok $? "equal input gives equal bytes"
echo "1..$n"
