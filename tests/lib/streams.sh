# Sourced by the scripts of tests/e2e that try streams of pods: an extender with
# TLS and tokens, two pods in two namespaces, and tests/lib/streamnode.py as the
# node that has them.  Needs openssl, curl and python3.
# shellcheck shell=bash disable=SC2034

# shellcheck source=tests/lib/extender.sh
. "$(dirname "${BASH_SOURCE[0]}")/extender.sh"
need openssl curl python3

lib=$(dirname "${BASH_SOURCE[0]}")
certs=$lib/../../deploy/certs.sh
pki=$dir/pki
{
    "$certs" ca "$pki"
    "$certs" server "$pki" extender --san localhost --san 127.0.0.1
    "$certs" client "$pki" host0 --cn system:node:host0
    "$certs" client "$pki" host1 --cn system:node:host1
} >"$dir/certs.log" 2>&1 || { cat "$dir/certs.log"; echo "Bail out! certs"; exit 1; }
admin=$(openssl rand -hex 16)  # no right to streams but to logs
team=$(openssl rand -hex 16)   # of team-a
reader=$(openssl rand -hex 16) # logs of team-b
cat >"$dir/tokens" <<EOF
$admin,admin
$team,team,*:team-a
$reader,reader,log:team-b
EOF
echo "$admin" >"$dir/token"
start() {
    start_extender --tls-cert "$pki/extender.crt" --tls-key "$pki/extender.key" \
        --client-ca "$pki/ca.crt" --read-tokens "$dir/tokens" \
        --fresh 1h
    publish=https://localhost:$(port publish)
    read=https://localhost:$(port read)
    export BIGA_SERVER=$read BIGA_CA=$pki/ca.crt BIGA_TOKEN_FILE=$dir/token
}
start

python() { python3 -B "$@"; }
# call TOKEN PATH [curl's options…]: the body, and the status as a last line
call() {
    curl -s -m "$HANGS" -w '\n%{http_code}' --cacert "$pki/ca.crt" \
        -H "Authorization: Bearer $1" "${@:3}" "$read/v1/pods/$2"
}
relays() { # N: so many streams are open
    curl -s -m "$HANGS" --cacert "$pki/ca.crt" -H "Authorization: Bearer $admin" \
        "$read/metrics" >"$dir/metrics"
    [ "$(awk '/^biga_streams[{]/ { n += $NF } END { print n }' "$dir/metrics")" = "$1" ]
}
# as its biga-advertiser would: a node that runs pods, and may be silent for long
advertise() {
    "$BUILD/biga-advertiser" --hostfile dell-r7525-2bf2 --node host0 \
        --print slices 2>"$dir/print.log" | python -c '
import json, sys
text, s = sys.stdin.read(), json.JSONDecoder()
slice, _ = s.raw_decode(text)
slice = slice.get("items", [slice])[0]
cards = [d["name"] for d in slice["spec"]["devices"] if "card" in d["name"]]
slice["metadata"]["annotations"]["biga.dev/runs-pods"] = \
    " ".join(["host"] + cards)
print(slice["metadata"]["name"])
json.dump(slice, open(sys.argv[1], "w"))' "$dir/slice.json" >"$dir/slice.name"
    curl -s -m "$HANGS" -o "$dir/put.log" -w '%{http_code}' \
        --cacert "$pki/ca.crt" --cert "$pki/host0.crt" --key "$pki/host0.key" \
        -X PUT -H 'Content-Type: application/json' -d "@$dir/slice.json" \
        "$publish/apis/resource.k8s.io/v1/resourceslices/$(cat "$dir/slice.name")"
}
pod() { # NAMESPACE NAME
    cat <<EOF
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: $1, labels: {biga.dev/role: xpu}}
spec: {containers: [{name: c, image: i}]}
EOF
}
[ "$(advertise)" = 201 ] && { pod team-a one && echo --- && pod team-b two; } |
    "$BUILD/biga" apply - >"$dir/apply.log" 2>&1
ok $? "two pods are applied, in two namespaces"
has_place() {
    call "$admin" "$1" | grep -q '"node":"host0"'
}
until_true has_place team-a/one && until_true has_place team-b/two
ok $? "and placed"

node() {
    : >"$dir/node.log" # now, or the one before would be taken for ready
    python3 -B "$lib/streamnode.py" --publish "$publish" --node host0 \
        --ca "$pki/ca.crt" --cert "$pki/host0.crt" --key "$pki/host0.key" \
        >"$dir/node.log" 2>&1 &
    node=$!
    pids+=("$node")
    until_true grep -q ready "$dir/node.log"
}
node
ok $? "a node asks for streams"
