#!/bin/bash
# The advertiser with --actuate, cards that nobody answers for, and an extender:
# the socket, what `biga` shows of it, what reaches the extender.  Needs curl.
# TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need curl

card="card-0000-01-00"
other="card-0000-02-00"
pci="0000:01:00.0"
act=$dir/act
biga() { BIGA_SOCKET=$act/actuator.sock "$BUILD/biga" "$@"; }
at() { curl -s -m "$HANGS" --unix-socket "$act/actuator.sock" "$@"; }
says() { # TEXT COMMAND…: until what it prints has it
    "${@:2}" 2>&1 | grep -qE -- "$1"
}
published() { # whether the card is healthy, as its slice has it
    curl -s -m "$HANGS" "http://127.0.0.1:$publish/apis/resource.k8s.io/v1/resourceslices/h-xpu.biga.dev-0" |
        python3 -c '
import json, sys
for d in json.load(sys.stdin)["spec"]["devices"]:
    if d["name"] == sys.argv[1]:
        print(str(d["attributes"]["biga.dev/healthy"]["bool"]).lower())' "$1"
}
is_published() { [ "$(published "$1")" = "$2" ]; }

cat >"$dir/h.host" <<EOF
package 0
  numa 0 cpus=8 memory=16GiB
    root 0000:00
      bridge 0000:00:01.0
        card 0000:01:00.0 id=15b3:a2d6 cores=8 memory=16GiB
      bridge 0000:00:02.0
        card 0000:02:00.0 id=15b3:a2d6 cores=8 memory=16GiB
EOF
cat >"$dir/cards.json" <<EOF
{"cards": [{"match": {"pci": "01:00"}, "plaintext": true,
            "endpoint": "tcp://127.0.0.1:1"}]}
EOF

# one of the nodes is published once, and never heard from again
start_extender --fresh 1h
publish=$(port publish)
read=$(port read)
export BIGA_SERVER=http://127.0.0.1:$read

advertise() {
    "$BUILD/biga-advertiser" --server "http://127.0.0.1:$publish" \
        --hostfile "$dir/h.host" --card-file "$dir/cards.json" --node h \
        --heartbeat 1s --actuate "$act" 2>>"$dir/advertiser.log" &
    advertiser=$!
    pids+=("$advertiser")
}

biga pods >"$dir/none" 2>&1
[ $? = 1 ] && grep -q 'biga-advertiser --actuate DIR' "$dir/none"
ok $? "without a socket it is said what to start"

advertise
answers() { biga card ps >/dev/null 2>&1; }
until_true answers # the file is there before anybody listens
ok $? "the socket is there"
[ "$(stat -c %a "$act")$(stat -c %a "$act/actuator.sock")" = 700600 ]
ok $? "for its owner alone"
says "^$pci +[a-z]+ +[0-9]+[a-z]" biga card ps
ok $? "cards with an endpoint are places"
! says "0000:02:00.0" biga card ps
ok $? "others are not"

until_true is_published "$card" false
ok $? "a card that does not answer is withdrawn"
is_published "$other" true
ok $? "the other card is not"
says "^$pci +lost " biga card ps
ok $? "and is lost here"

says "drained" biga card drain "$card" && says "lost, drained" biga card ps
ok $? "it can be drained all the same"
"$BUILD/biga-advertiser" --server "http://127.0.0.1:$publish" \
    --hostfile "$dir/h.host" --actuate "$act" --node h2 >"$dir/second.log" 2>&1
[ $? != 0 ] && grep -q -- "$act" "$dir/second.log"
ok $? "a second advertiser is refused the folder"

{ kill -9 "$advertiser" && wait "$advertiser"; } 2>/dev/null
advertise
until_true says "drained" biga card ps
ok $? "kill -9: draining is remembered, the socket is taken over"
says "takes pods again" biga card undrain "$card"
ok $? "it can be undrained"

BIGA_SOCKET=$act/actuator.sock "$BUILD/biga" card ps -w >"$dir/watched" 2>&1 &
watch=$!
pids+=("$watch")
until_true grep -qs "^host " "$dir/watched"
says "drained" biga card drain "$other" && says "^0000:02:00.0 +drained " biga card ps
ok $? "so can a card whose runtime is not known"
until_true is_published "$other" false
ok $? "which is withdrawn, too"
until_true grep -qE "^0000:02:00.0 +drained" "$dir/watched" &&
    [ "$(grep -c "^CARD " "$dir/watched")" = 1 ]
ok $? "and shown to who watches"
kill -INT "$watch"
wait "$watch"
ok $? "… until Ctrl-C"
says "takes pods again" biga card undrain "$other" &&
    until_true is_published "$other" true
ok $? "until it is undrained"

body='{"uid":"u-1","place":"'$card'","spec":{"metadata":{"namespace":"ns",
 "name":"p","uid":"u-1"},"spec":{"hostNetwork":true,"containers":[{"name":"c",
 "image":"i"}]}}}'
at -X PUT -d "$body" http://x/v1/pods/ns/p >"$dir/put"
grep -q '"uid":"u-1"' "$dir/put"
ok $? "a pod is wanted over the socket"
says "^ns/p +$pci .* socket" biga pods
ok $? "and listed"
until_true says "answered 503: $card does not answer" biga logs ns/p
ok $? "its log is on the card that is lost"
body='{"uid":"u-2","place":"'$card'","spec":{"metadata":{"namespace":"ns",
 "name":"q","uid":"u-2"},"spec":{"containers":[{"name":"c","image":"i",
 "securityContext":{"privileged":true}}]}}}'
at -o "$dir/put" -w '%{http_code}' -X PUT -d "$body" http://x/v1/pods/ns/q \
    >"$dir/code"
[ "$(cat "$dir/code")" = 403 ] && grep -q -e '--allow privileged' "$dir/put"
ok $? "one that asks for what pods may not have is refused, and why"
"$BUILD/biga-advertiser" --actuate "$act" --allow host-pid,NETADMIN \
    >"$dir/allow.log" 2>&1
[ $? = 2 ] && grep -q -e '--allow: has "NETADMIN"' "$dir/allow.log"
ok $? "a right that there is not is no setting"
at -X POST http://x/v1/pods/ns/p/stop >/dev/null
until_true says '"stopping":true' at http://x/v1/pods/ns/p
ok $? "it is to end"

# --- where applied pods go ----------------------------------------------------

pod() { # NAME ROLE: a pod that asks for a card
    cat <<EOF
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {biga.dev/role: $2}}
spec:
  containers:
    - {name: c, image: i, resources: {limits: {biga.dev/card: 1}}}
EOF
}
biga_apply() { pod "$@" | biga apply - >>"$dir/apply.log" 2>&1; }
sed '/00:02.0/,$d; s/0000:/0001:/' "$dir/h.host" >"$dir/a.host"
"$BUILD/biga-advertiser" --server "http://127.0.0.1:$publish" --node a \
    --hostfile "$dir/a.host" --heartbeat 1s 2>"$dir/idle.log" &
idle=$!
pids+=("$idle")
until_true says "^a +ready " biga nodes
biga_apply solo host
until_true says "^default/solo +host +h " biga ps
ok $? "a pod goes where it is run, past a node without --actuate"
biga_apply both xpu
until_true says "1  *runs no pods: start its biga-advertiser with --actuate" \
    biga why both
ok $? "and waits, with what to start, when there is no such node"
pod both xpu >"$dir/both.yaml"
python3 -c 'import json, sys
print(json.dumps({"metadata": {"name": "k", "labels": {"biga.dev/role": "xpu"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits":
        {"biga.dev/card": "1"}}}]}}))' >"$dir/k.json"
says "k is placed: .*best a" biga simulate "$dir/k.json"
ok $? "a kubelet's pod may go there"
says "k is refused" biga simulate --applied "$dir/k.json"
ok $? "one that is to be applied may not"

# as older advertisers do, it does not say whether it runs pods
"$BUILD/biga-advertiser" --print slices --node older --hostfile "$dir/a.host" |
    python3 -c 'import json, sys
json.dump(json.load(sys.stdin)["items"][0], sys.stdout)' >"$dir/older.json"
curl -s -m "$HANGS" -X PUT -H 'Content-Type: application/json' \
    --data-binary "@$dir/older.json" -o "$dir/put" \
    "http://127.0.0.1:$publish/apis/resource.k8s.io/v1/resourceslices/older-xpu.biga.dev-0"
until_true says "^default/both +xpu +older .* wanted" biga ps
ok $? "an older advertiser may run pods"
biga delete both >>"$dir/apply.log" 2>&1
until_true says "404.*default/both" biga ps both
ok $? "what it was never told of is deleted at once"
says "409.*delete it" biga release solo
ok $? "what may run is not given back by hand"
kill "$idle"
wait "$idle"

kill "$advertiser"
wait "$advertiser"
[ ! -e "$act/actuator.sock" ]
ok $? "a stop leaves no socket"
echo "1..$n"
