#!/bin/bash
# What was: events, the fleet at a moment and why a pod was refused then, asked
# of a real extender that was killed in between.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib/extender.sh
. tests/lib/extender.sh
need curl
unset BIGA_SERVER BIGA_JSON
echo "1..21"

biga() { "$BUILD/biga" --server "http://127.0.0.1:$(port read)" "$@"; }
get() { curl -sS --max-time "$HANGS" "http://127.0.0.1:$(port read)$1"; }
# happened REASON TEXT: is there such an event?
happened() { biga events --reason "$1" -o wide 2>/dev/null | grep -q "$2"; }
now() { date -u +%FT%T.%3NZ; }

start_fleet() {
    "$BUILD/biga-advertiser" --fleet 3 --server \
        "http://127.0.0.1:$(port publish)" >"$dir/fleet.log" 2>&1 &
    fleet=$!
    pids+=("$fleet")
}

# scheduler VERB BODY
scheduler() {
    curl -sS --max-time "$HANGS" -H 'Content-Type: application/json' \
        -d "$2" "http://127.0.0.1:$(port scheduler)/v1/scheduler/$1"
}
bind() { # POD NODE
    scheduler filter "{\"Pod\":{\"metadata\":{\"name\":\"$1\",
        \"namespace\":\"lab\",\"uid\":\"uid-$1\",\"labels\":{
        \"biga.dev/role\":\"host\",\"biga.dev/job\":\"wave\"}},
        \"spec\":{}},\"NodeNames\":[\"$2\"]}" >/dev/null
    scheduler bind "{\"PodName\":\"$1\",\"PodNamespace\":\"lab\",
        \"PodUID\":\"uid-$1\",\"Node\":\"$2\"}"
}

# no node is stale before that is looked for
start_extender --fresh 1h
# not by the function: what is killed below would be the shell around it
"$BUILD/biga" --server "http://127.0.0.1:$(port read)" events -w \
    >"$dir/watched" 2>"$dir/watch.log" &
watch=$!
pids+=("$watch")
start_fleet
all_ready() {
    local host
    for host in host1 host2 host3; do
        happened NodeReady "node/$host" || return
    done
}
until_true all_ready
ok $? "nodes that come are told of"
"$BUILD/biga" --server "http://127.0.0.1:$(port read)" events -w --limit 1 \
    --reason NodeReady >"$dir/first" 2>&1 &
first=$!
pids+=("$first")
until_true grep -q " NodeReady " "$dir/first"
ok $? "a watch shows at once what there was"
kill "$first"
wait "$first" 2>/dev/null

until_true grep -q "NodeReady  *node/host3" "$dir/watched"
ok $? "and shown as they come"
kill "$watch"

biga events -o name | grep -q "^node/host3$"
ok $? "as names, which biga history takes"
"$BUILD/biga" --server "http://127.0.0.1:$(port read)" events -w -o name \
    >"$dir/names" 2>&1 &
names=$!
pids+=("$names")

bind w-0 host1 | grep -q '"Error":""'
until_true happened Bound pod/lab/w-0
ok $? "a bind is told of, with its job"
until_true grep -qs "^pod/lab/w-0$" "$dir/names"
ok $? "… by its name"
kill "$names"
wait "$names" 2>/dev/null

"$BUILD/biga" --server "http://127.0.0.1:$(port read)" \
    history node/host1 -w >"$dir/past" 2>&1 &
past=$!
pids+=("$past")
until_true grep -qs "^lab/w-0 " "$dir/past"
ok $? "what was is shown, and watched"

cat >"$dir/big.yaml" <<'POD'
apiVersion: v1
kind: Pod
metadata:
  name: big
  labels: {biga.dev/role: host}
  annotations: {biga.dev/cards: "9"}
spec: {containers: [{name: c, image: x}]}
POD
biga apply "$dir/big.yaml" >/dev/null
until_true happened Refused pod/default/big
ok $? "a pod that fits nowhere is told of"
before=$(now)

biga release lab/w-0 >/dev/null && until_true happened Released pod/lab/w-0
ok $? "a place that is given back is told of"
until_true grep -q " Released  *pod/lab/w-0 " "$dir/past" &&
    [ "$(grep -c "^node host1 at " "$dir/past")" -gt 1 ]
ok $? "… and shown to who watches"
kill "$past"
wait "$past" 2>/dev/null

biga history node/host1 --at "$before" >"$dir/out" 2>&1 &&
    grep -q "^0000:.* ready  *lab/w-0 " "$dir/out" &&
    grep -q "^lab/w-0 .* host1  *0000:" "$dir/out" &&
    grep -q "ready since" "$dir/out"
ok $? "who had a card of a node then"
biga history node/host1 >"$dir/out" 2>&1 &&
    ! sed '/^AGE/,$d' "$dir/out" | grep -q "lab/w-0"
ok $? "and that it has it no more"
biga history pod/big --at "$before" >"$dir/out" 2>&1 &&
    grep -q "no place; refused: NoPlace: fits none of 3 nodes" "$dir/out"
ok $? "why a pod was refused then"
biga history job/lab/wave --at "$before" | grep -q "^lab/w-0 .* host1 "
ok $? "where the pairs of a job were"
get "/v1/topology?at=$before" |
    grep -q '"node":"host1".*"pods":\["lab/w-0"\]'
ok $? "the fleet as it was"

biga history node/hots1 2>"$dir/out"
[ $? = 1 ] && grep -q "did you mean host1" "$dir/out"
ok $? "a name that is nearly right is guessed"
biga events node/hots1 >"$dir/out" 2>&1 &&
    grep -q 'Did you mean node "host1"?' "$dir/out"
ok $? "… also one of whom nothing is told"
biga history node/host1 --at 25:00 2>"$dir/out"
[ $? = 2 ] && grep -q -- "--at: \"25:00\" is no time" "$dir/out"
ok $? "a time that is none is refused"

# killed, and started over with a node less
biga events -o json >"$dir/before.json"
kill -9 "$extender" "$fleet"
wait "$extender" "$fleet" 2>/dev/null
start_extender --fresh 1s
biga events -o json --until "$before" | grep -q '"name":"w-0"' &&
    biga history node/host1 --at "$before" | grep -q "lab/w-0 "
ok $? "a kill -9 loses nothing that was written"
until_true happened NodeStale node/host1
ok $? "nodes that do not come back are told of"

# a damaged file
kill "$extender"
wait "$extender" 2>/dev/null
dd if=/dev/urandom of="$dir/state/history/history.db" bs=4096 seek=1 count=20 \
    conv=notrunc 2>/dev/null
start_extender
until_true grep -q "event=history-damaged.*history.db.damaged-1" \
    "$dir/extender.log" && until_true happened NodeStale node/host1
ok $? "a damaged history is set aside, and a new one begun"
