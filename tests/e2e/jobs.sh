#!/bin/bash
# Jobs as their users live with them: pending, planned, running, ended; waited
# for, run in a line, simulated; what else there was.  The node is played here:
# what it has, and what it says of pods.  Needs curl and python3.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need curl python3

biga() { "$BUILD/biga" "$@"; }
says() { # TEXT COMMAND…: until what it prints has it
    "${@:2}" 2>&1 | grep -qE -- "$1"
}
exits() { # CODE COMMAND…; what it prints is in $dir/said
    "${@:2}" >"$dir/said" 2>&1
    [ $? = "$1" ]
}
said() { grep -qE -- "$1" "$dir/said"; }
curl_publish() { curl -s -m "$HANGS" "$@"; }

# has_cards NODE N: an advertiser of an older release, which does not say whether
# the node runs pods
has_cards() {
    {
        echo "package 0"
        echo "  numa 0 cpus=8 memory=16GiB"
        for i in $(seq "$2"); do
            echo "    root 000$i:00"
            echo "      card 000$i:01:00.0 id=15b3:a2d6 cores=8 memory=16GiB"
        done
    } >"$dir/$1.host"
    "$BUILD/biga-advertiser" --print slices --node "$1" --hostfile "$dir/$1.host" |
        python3 -c 'import json, sys
json.dump(json.load(sys.stdin)["items"][0], sys.stdout)' >"$dir/$1.json"
    curl_publish -X PUT -H 'Content-Type: application/json' -f \
        --data-binary "@$dir/$1.json" -o /dev/null \
        "http://127.0.0.1:$publish/apis/resource.k8s.io/v1/resourceslices/$1-xpu.biga.dev-0"
}

# node_says NODE STATE [EXIT]: of all pods that it is told of; those that are to
# stop are gone
node_says() {
    curl_publish -f "http://127.0.0.1:$publish/v1/nodes/$1/pods" |
        python3 -c 'import json, sys
state, code = sys.argv[1], int(sys.argv[2])
told = {"failed": "exited", "running": "running"}
print(json.dumps({"boot": "b1", "places": [], "pods": [{
    "uid": p["uid"], "state": "gone" if p["stop"] else state,
    "ready": state == "running" and not p["stop"], "ran": True,
    "reason": "" if state != "failed" else "Error" if code else "Completed",
    "message": "", "attempt": 1, "address": "", "containers": [{
        "name": "c", "state": told[state], "exitCode": code, "restarts": 0,
        "reason": ""}]} for p in json.load(sys.stdin)["items"]]}))' "$2" \
            "${3:-0}" >"$dir/status"
    curl_publish -f -X POST -H 'Content-Type: application/json' \
        --data-binary "@$dir/status" -o /dev/null \
        "http://127.0.0.1:$publish/v1/nodes/$1/status"
}
# are_told N NODE…: they are told of so many pods.  Of one whose place is held
# none is, until it is bound: a job is placed before that.
are_told() {
    local node
    [ "$(for node in "${@:2}"; do
        curl_publish -f "http://127.0.0.1:$publish/v1/nodes/$node/pods"
    done | grep -o '"stop":' | wc -l)" = "$1" ]
}
# What the node is told of is over, and gone once that is said of it.
cleared() {
    node_says n running
    says "No job is known|Succeeded|Failed" biga jobs &&
        says "biga apply" biga ps
}

start_extender --fresh 1h
publish=$(port publish)
read=$(port read)
export BIGA_SERVER=http://127.0.0.1:$read

# --- pending --------------------------------------------------------------------

example=$(dirname "$0")/../../deploy/examples
exits 0 biga apply "$example/embedded-job.yaml" && said "^Job default/sum created: 4 pods$"
ok $? "a job of two pairs is one object"
exits 0 biga jobs && said "^default/sum +Pending +2 +0 +0 "
ok $? "it is there at once, pending"
until_true says "^reason NoPlace: " biga job sum
ok $? "with what it waits for"
in_vain() { # a machine that is busy may not come to ask within that second
    exits 124 biga wait job/sum --for=placed --timeout 1s &&
        said "job default/sum is not placed after 1 s: Pending: NoPlace"
}
until_true in_vain
ok $? "a wait that ends says so, and why"
curl -s -m "$HANGS" "$BIGA_SERVER/v1/pending" >"$dir/said"
[ "$(grep -c '"job":"sum"' "$dir/said")" = 4 ]
ok $? "its pods are pending, each with its reason"
exits 1 biga wait job/none --for=running && said "it is not known to the server"
ok $? "nobody waits for a job that there is not"
exits 0 biga wait job/none --for=deleted
ok $? "but it is deleted"
exits 2 biga wait job/sum --for=happy && said "must be placed, running, ready, done or deleted"
ok $? "nor for a state that there is not"

# --- running --------------------------------------------------------------------

biga wait job/sum --for=placed --timeout "$HANGS" >"$dir/placed" 2>&1 &
waiting=$!
biga wait job/sum --for=running --timeout "$HANGS" >"$dir/running" 2>&1 &
running=$!
pids+=("$waiting" "$running")
has_cards n 2
wait "$waiting" && grep -q "^job default/sum is placed$" "$dir/placed"
ok $? "a wait ends when it is placed"
exits 0 biga jobs && said "^default/sum +Planned +2 +2 +0 "
ok $? "it is planned"
until_true are_told 4 n
node_says n running
wait "$running" && grep -q "^job default/sum is running$" "$dir/running"
ok $? "another one when it runs"
exits 0 biga wait pod/sum-0 pod/sum-1-xpu --for=ready --timeout "$HANGS" && said "^pod default/sum-1-xpu is ready$"
ok $? "so do those for its pods"
exits 0 biga jobs -l state=Running && said "^default/sum +Running +2 +2 +2 "
ok $? "it is listed as running"
exits 0 biga why sum-0 && said "allocated: on node n"
ok $? "why tells where it is"
has_cards m 4
until_true says "^m .*the job within no domain, here leaf" biga why sum-0
ok $? "and which node is next best, and what differs"

# --- ended ----------------------------------------------------------------------

biga wait job/sum --timeout "$HANGS" >"$dir/done" 2>&1 &
waiting=$!
pids+=("$waiting")
node_says n failed
wait "$waiting" && grep -q "^job default/sum is done$" "$dir/done"
ok $? "a wait ends with the job"
exits 0 biga job sum && said "^state  Succeeded; submitted .* ago; started .*; ended "
ok $? "it has succeeded, since when is told"
biga delete job/sum --wait --timeout "$HANGS" >"$dir/deleted" 2>&1 &
waiting=$!
pids+=("$waiting")
until_true cleared && wait "$waiting"
ok $? "delete --wait ends when it is gone"
exits 0 biga jobs && said "^default/sum +Succeeded +2 +0 +0 "
ok $? "what became of it is still known"

# --- run ------------------------------------------------------------------------

biga run two -n 2 --image i --xpu-image i --timeout "$HANGS" --wait -- false \
    >"$dir/run" 2>&1 &
waiting=$!
pids+=("$waiting")
until_true says "^default/two +Planned +2 +2 " biga jobs
ok $? "two pairs in a line"
until_true are_told 4 n m
node_says n running
node_says m running
until_true says "^default/two +Running +2 +2 +2 " biga jobs
ok $? "run"
node_says n failed 3
node_says m failed 3
wait "$waiting"
[ $? = 1 ] && grep -q "job default/two will not be done: it is Failed: " "$dir/run"
ok $? "and run --wait fails with them"
exits 0 biga jobs && said "^default/two +Failed .*Error"
ok $? "the job has failed, with the reason"
exits 0 biga run three -n 3 --image i --dry-run -o json -- a b && said '"parallelism":	3'
ok $? "what would be run can be seen"
exits 2 biga run three -n 3 -- a && said "needs --image"
ok $? "run says what it lacks"
exits 2 biga run late --image i --wait --timeout soon && said "must be 1 to" && ! says "^default/late" biga jobs
ok $? "and how long it can wait, before anything runs"

# --- simulate -------------------------------------------------------------------

exits 0 biga simulate "$example/job.yaml" && said "^pod default/solver-0 is " && said "^pod default/solver-15-xpu is "
ok $? "a Job in YAML is simulated, with its buddies"
exits 0 biga simulate "$example/embedded-job.yaml" && said "^pod default/sum-1-xpu is "
ok $? "one to be applied, too"
biga run four -n 1 --image i --dry-run >"$dir/four.yaml" && exits 0 biga simulate "$dir/four.yaml" && said "^pod default/four-0 is placed"
ok $? "and what run prints"
echo "1..$n"
