#!/bin/bash
# A policy: quotas that hold, shares of services, a file that changes under a
# running extender, and one that is wrong.  Needs curl.  TAP lines.
set -u
cd "$(dirname "$0")/../.." || exit 1

# shellcheck source=tests/lib/extender.sh
. tests/lib/extender.sh
need curl
unset BIGA_SERVER BIGA_JSON

biga() { "$BUILD/biga" --server "http://127.0.0.1:$(port read)" "$@"; }

# put TEXT: the policy file, replaced in one step
put() {
    printf '%s' "$1" >"$dir/policy.new"
    mv "$dir/policy.new" "$dir/policy.json"
}

# pod NAME NAMESPACE CARDS: a host pod as JSON, on stdout
pod() {
    printf '{"metadata":{"name":"%s","namespace":"%s","uid":"uid-%s",' \
        "$1" "$2" "$1"
    printf '"labels":{"biga.dev/role":"host"},"annotations":{"biga.dev/cards"'
    printf ':"%s"}},"spec":{"containers":[]}}' "$3"
}

ask() { # VERB BODY
    curl -s -m "$HANGS" -X POST -d "$2" \
        "http://127.0.0.1:$(port scheduler)/v1/scheduler/$1"
}
bind() { # NAME NAMESPACE NODE
    ask bind "{\"PodName\":\"$1\",\"PodNamespace\":\"$2\",\"PodUID\":\"uid-$1\",\"Node\":\"$3\"}"
}
# member RANK: the host pod of a pair of a job of three
member() {
    pod "m$1" team-j 1 | sed 's|"biga.dev/role":"host"|&,"biga.dev/job":"j",|
        s|"biga.dev/job":"j",|&"biga.dev/pair":"'"$1"'"|
        s|"biga.dev/cards":"1"|&,"biga.dev/size":"3"|'
}
shows() { biga policy 2>&1 | grep -Eq -- "$1"; }

quota='{"quotas":[{"namespace":"team-a","cards":3}]}'

put '{"quotas":[{"namespace":"team-a","crads":3}]}'
"$BUILD/biga-extender" --scheduler-listen 127.0.0.1:0 --read-listen 127.0.0.1:0 \
    --publish-listen 127.0.0.1:0 --policy "$dir/policy.json" 2>"$dir/bad.log"
[ $? = 2 ] && grep -q 'policy.json: quotas\[0\].*crads' "$dir/bad.log"
ok $? "a wrong file is refused at the start"
"$BUILD/biga" policy --check "$dir/policy.json" 2>"$dir/check.log"
[ $? = 1 ] && grep -q 'crads' "$dir/check.log"
ok $? "… and by --check"

put "$quota"
"$BUILD/biga" policy --check "$dir/policy.json" | grep -q 'right: 1 quota'
ok $? "a right file is right"
# all that is asked is asked of nodes that are heard from
start_extender --policy "$dir/policy.json" --fresh 1h
"$BUILD/biga-advertiser" --fleet 2 --server "http://127.0.0.1:$(port publish)" \
    >"$dir/fleet.log" 2>&1 &
pids+=($!)
ready() { [ "$(biga nodes 2>/dev/null | grep -c ' ready ')" = 2 ]; }
until_true ready
ok $? "two hosts"
mapfile -t nodes < <(biga nodes | awk 'NR > 1 { print $1 }')
filter() { ask filter "{\"Pod\":$1,\"NodeNames\":[\"${nodes[0]}\",\"${nodes[1]}\"]}"; }

filter "$(pod a team-a 2)" | grep -q '"NodeNames":\["' &&
    [ "$(bind a team-a "${nodes[0]}")" = '{"Error":""}' ]
ok $? "a pod within the quota"
shows '^team-a +2/3 '
ok $? "the use is shown"
biga policy -n team-a | grep -Eq '^team-a +2/3 ' &&
    ! biga policy -n team-b | grep -q '^team-a' &&
    biga policy -n team-b -o json | grep -q '"quotas":\[\]'
ok $? "… of one namespace"
filter "$(pod b team-a 2)" >"$dir/refused"
grep -q 'quota of namespace team-a: 2 of 3 cards used, 2 more asked' "$dir/refused" &&
    grep -q '"FailedAndUnresolvableNodes":{"' "$dir/refused"
ok $? "a pod beyond it is refused, beyond the help of preemption"
bind b team-a "${nodes[1]}" | grep -q 'quota of namespace team-a'
ok $? "… also by bind"
biga why team-a/b | grep -q 'quota of namespace team-a: 2 of 3 cards used'
ok $? "… and why says so"
filter "$(pod c team-b 2)" | grep -q '"NodeNames":\["'
ok $? "another namespace is not concerned"

put '{"quotas":[{"namespace":"team-a","cards":4}]}'
until_true shows '^team-a +2/4 '
ok $? "the file is read again"
filter "$(pod b team-a 2)" | grep -q '"NodeNames":\["' &&
    [ "$(bind b team-a "${nodes[1]}")" = '{"Error":""}' ]
ok $? "the pod fits now"

put '{"quotas":[{"namespace":"team-a","cards":"many"}]}'
until_true shows 'not in force.*quotas\[0\]\.cards'
ok $? "a wrong file is told"
shows '^team-a +4/4 '
ok $? "… and leaves the one before in force"
counted() {
    curl -s "http://127.0.0.1:$(port read)/metrics" |
        grep -q '^biga_policy_reads_total{result="refused"} 1$'
}
until_true grep -q 'event=policy-refused' "$dir/extender.log" &&
    until_true counted
ok $? "… in the log and in the metrics, too"

put '{"services":[{"namespace":"infra","name":"hbn","cores":3},
  {"namespace":"infra","name":"huge","cores":9999}]}'
until_true shows '^infra/hbn .* 3 '
ok $? "a service's share"
shows 'not in force'; [ $? = 1 ]
ok $? "the error is gone"
curl -s "http://127.0.0.1:$(port read)/v1/cards?limit=1" |
    grep -q '"reserved":\[{"namespace":"infra","name":"hbn","cores":3,"memoryMiB":0,"state":"[a-z]*"},{"namespace":"infra","name":"huge".*"state":"never"}'
ok $? "a card shows who holds what of it"
shows '^infra/huge lacks its share on node .*cannot hold it'
ok $? "a share that cannot be is told"

put '{"quotas":[{"namespace":"team-j","cards":2}]}'
until_true shows '^team-j +0/2 '
filter "$(member 0)" |
    grep -q 'quota of namespace team-j: 0 of 2 cards used, 3 more asked'
ok $? "a job is refused as a whole"
put '{"quotas":[{"namespace":"team-j","cards":3}]}'
until_true shows '^team-j +0/3 '
place() { # RANK: filter and bind it
    local node
    node=$(filter "$(member "$1")" |
        sed -n 's/.*"NodeNames":\["\([^"]*\)".*/\1/p')
    [ "$(bind "m$1" team-j "$node")" = '{"Error":""}' ]
}
place 1 && shows '^team-j +3/3 '
ok $? "a job has its quota from its first bind"
filter "$(pod d team-j 1)" | grep -q '3 of 3 cards used, 1 more asked'
ok $? "… which nobody else gets"
place 0 && shows '^team-j +3/3 '
ok $? "… and its other pairs do"

{ kill -9 "$extender" && wait "$extender"; } 2>/dev/null
put "$quota"
start_extender --policy "$dir/policy.json" --fresh 1h
shows '^team-a +4/3 '
ok $? "the use is the same after a restart"
echo "1..$n"
