#!/bin/bash
# -w: what changes is shown as it does, also when the server has been away.
# TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need curl

# as start_extender, where it was before
start_there() { # PORT
    : >"$dir/extender.log"
    "$BUILD/biga-extender" --scheduler-listen 127.0.0.1:0 \
        --read-listen "127.0.0.1:$1" --publish-listen 127.0.0.1:0 \
        --state "$dir/state" 2>"$dir/extender.log" &
    extender=$!
    pids+=("$extender")
    until_true has_begun && grep -q event=ready "$dir/extender.log"
}
# or has ended: somebody else may have got its port for a while
has_begun() {
    grep -q event=ready "$dir/extender.log" || ! kill -0 "$extender"
}
start_extender
read=$(port read)
export BIGA_SERVER=http://127.0.0.1:$read
biga() { "$BUILD/biga" "$@"; }

# watch NAME ARGUMENT…: what it prints is in $dir/NAME.log
declare -A watching
watch() {
    "$BUILD/biga" "${@:2}" >"$dir/$1.log" 2>&1 &
    watching[$1]=$!
    pids+=("$!")
}
# shown NAME PATTERN [NUMBER]: there are as many lines, or more: what a pod
# waits for may come after it
shown() { [ "$(grep -cE -- "$2" "$dir/$1.log")" -ge "${3:-1}" ]; }
# repeated NAME: a row, but for its age, that says what the last of its pod did
repeated() {
    awk '/^default\/.* (host|xpu|service) / {
        sub(/ [0-9][0-9smhd]*[smhd] /, " ")
        gsub(/ +/, " ")
        n += $0 == last[$1]
        last[$1] = $0
    }
    END { exit !n }' "$dir/$1.log"
}

# repeated_event NAME: an event with a pod as the one before had it
repeated_event() {
    awk '/^[{]"type":"(ADDED|MODIFIED)"/ {
        sub(/^[^,]*,/, "")
        match($0, /"name":"[^"]*"/)
        name = substr($0, RSTART, RLENGTH)
        n += $0 == last[name]
        last[name] = $0
    }
    END { exit !n }' "$dir/$1.log"
}

watch rows ps -w
watch json ps -w -o json
watch names ps -w -o name
watch yaml ps -w -o yaml
watch some ps -w -l role=service --sort-by pod
watch why why -w metrics
wait "${watching[why]}"
[ $? = 1 ] && shown why "404.*metrics"
ok $? "what is not there is not watched"
biga apply deploy/examples/embedded.yaml >"$dir/apply.log"
until_true shown rows "^default/ring-1-xpu +xpu .*JobNotPlaced" &&
    ! shown rows "^POD +ROLE" 2
ok $? "new rows come, below one head"
until_true shown json '^\{"type":"ADDED","object":\{.*"name":"ring-1-xpu"'
ok $? "events as JSON"
until_true shown names "^pod/default/ring-1-xpu$"
ok $? "names"
until_true shown yaml "^type: ADDED$" 5 && until_true shown yaml "^---$" 5
ok $? "documents of YAML"
until_true shown some "^default/metrics " && ! shown some "^default/ring"
ok $? "those that were chosen"

watch why why -w metrics
until_true shown why "is pending"
ok $? "what is no list is shown"
kill -9 "$extender"
until_true shown rows "^biga: lost $BIGA_SERVER: .*; trying again$"
ok $? "a lost connection is told"
until_true start_there "$read"
until_true shown rows "^biga: $BIGA_SERVER answers again$"
ok $? "… and that it is there again"
biga delete --grace 0 metrics >"$dir/delete.log"
until_true shown rows "^default/metrics is gone$"
ok $? "what is gone is told"
until_true shown json '^\{"type":"DELETED","object":\{.*"name":"metrics"'
ok $? "… as an event"
! repeated rows && ! repeated_event json
ok $? "what is as it was is not shown again"
wait "${watching[why]}"
[ $? = 1 ] && shown why "404.*metrics"
ok $? "a watch of one thing ends with it"

for name in rows json names yaml some; do
    kill -INT "${watching[$name]}"
    wait "${watching[$name]}"
    [ $? = 0 ] || { echo "# $name"; false; }
    ok $? "Ctrl-C ends it well"
done
watch full ps -w
until_true shown full "^default/ring-0 "
kill -TERM "${watching[full]}"
wait "${watching[full]}"
ok $? "so does SIGTERM"
"$BUILD/biga" ps -w >/dev/full 2>"$dir/full.log"
[ $? = 1 ] && grep -q "standard output: No space" "$dir/full.log"
ok $? "what cannot be printed ends it"
BIGA_SERVER=http://127.0.0.1:1 biga ps -w >"$dir/nobody.log" 2>&1
[ $? = 1 ] && grep -q "no answer from" "$dir/nobody.log"
ok $? "without a server it does not begin"
biga policy -w --check x >"$dir/check.log" 2>&1
[ $? = 2 ] && grep -q "a file is not watched" "$dir/check.log"
ok $? "a file is not watched"

"$BUILD/biga-advertiser" --fleet 1 --server "http://127.0.0.1:$(port publish)" \
    >"$dir/advertiser.log" 2>&1 &
pids+=("$!")
watch top top nodes -w
until_true shown top "^host[0-9]+ +-/0/" 1
node=$(awk '/^host/ { print $1 }' "$dir/top.log")
uses() { # MILLICORES: no change tells of it
    curl -s -m "$HANGS" -H 'Content-Type: application/json' -d '{"pods":[],"places":[{
        "name":"host","health":"ready",
        "usage":{"cpuMillicores":'"$1"',"memoryMib":512}}]}' \
        "http://127.0.0.1:$(port publish)/v1/nodes/$node/status" >"$dir/told.log"
}
uses 2500
until_true shown top "^$node +2.5/0/[0-9]+ +0.5/0/" 1
uses 1500
until_true shown top "^$node +1.5/0/[0-9]+ +0.5/0/" 1
ok $? "what is used is looked at again and again"
