#!/bin/bash
# The programs with certificates of deploy/certs.sh: who is let in, what is
# renewed while they run, and clients that take their time over a handshake.
# Needs openssl and curl.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need openssl curl

certs=$(dirname "$0")/../../deploy/certs.sh
pki=$dir/pki
{
    "$certs" ca "$pki"
    "$certs" server "$pki" extender --san localhost --san 127.0.0.1
    "$certs" client "$pki" scheduler --cn system:kube-scheduler
    "$certs" client "$pki" host0 --cn system:node:host0
    "$certs" client "$pki" host1 --cn system:node:host1
    "$certs" ca "$dir/foreign"
    "$certs" client "$dir/foreign" scheduler --cn system:kube-scheduler
} >"$dir/certs.log" 2>&1 || { cat "$dir/certs.log"; echo "Bail out! certs"; exit 1; }
cp "$pki/ca.crt" "$dir/clients.crt"
cp "$pki/extender.crt" "$dir/tls.crt"
cp "$pki/extender.key" "$dir/tls.key"
cp "$pki/host0.crt" "$dir/node.crt"
cp "$pki/host0.key" "$dir/node.key"
token=$(openssl rand -hex 16)
echo "$token" >"$dir/token"
echo "$token,somebody" >"$dir/tokens"

start_with() { # REQUEST-TIMEOUT
    start_extender --tls-cert "$dir/tls.crt" --tls-key "$dir/tls.key" \
        --client-ca "$dir/clients.crt" --read-tokens "$dir/tokens" \
        --request-timeout "$1" --connections 16
}
start_with 10m
scheduler=https://localhost:$(port scheduler)
publish=https://localhost:$(port publish)
read=https://localhost:$(port read)

# status URL [curl's options…]: the answer's status
status() {
    curl -s -m "$HANGS" -o "$dir/answer" -w '%{http_code}' --cacert "$pki/ca.crt" "${@:2}" "$1"
}
# with NAME: curl's options for a certificate
with() { echo "--cert $1.crt --key $1.key"; }

# shellcheck disable=SC2046
filter() { # NAME: filter's status for the client with this certificate
    status "$scheduler/v1/scheduler/filter" $(with "$1") -d \
        '{"Pod":{"metadata":{"name":"p","namespace":"d","uid":"u"},"spec":{}},"NodeNames":["a"]}'
}
[ "$(filter "$pki/scheduler")" = 200 ]
ok $? "the scheduler is served"
[ "$(filter "$pki/host0")/$(filter "$dir/foreign/scheduler")" = 403/403 ] &&
    [ "$(status "$scheduler/v1/scheduler/filter" -d '{}')" = 403 ] &&
    [ "$(status "$publish/apis")" = 403 ]
ok $? "nobody else is"

"$BUILD/biga-advertiser" --server "$publish" --ca "$pki/ca.crt" \
    --cert "$dir/node.crt" --key "$dir/node.key" --hostfile dell-r7525-2bf2 \
    --node host0 --heartbeat 200ms >"$dir/advertiser.log" 2>&1 &
advertiser=$!
pids+=("$advertiser")
until_true grep -q event=published "$dir/advertiser.log"
ok $? "an advertiser publishes its node"
"$BUILD/biga-advertiser" --server "$publish" --ca "$pki/ca.crt" \
    --cert "$pki/host1.crt" --key "$pki/host1.key" \
    --hostfile dell-r7525-2bf2 --node host0 >"$dir/other.log" 2>&1 &
other=$!
pids+=("$other")
until_true grep -q 'is of node .*host0.* speaks for node .*host1' \
    "$dir/other.log" && ! grep -q event=published "$dir/other.log"
ok $? "but no other node"
kill "$other"
wait "$other"

is_ready() {
    BIGA_CA=$pki/ca.crt BIGA_TOKEN_FILE=$dir/token "$BUILD/biga" -s "$read" \
        nodes >"$dir/nodes" 2>"$dir/cli.log" &&
        grep -q '^host0 *ready' "$dir/nodes"
}
until_true is_ready &&
    [ "$(status "$read/v1/nodes")" = 401 ] && [ "$(status "$read/readyz")" = 200 ]
ok $? "who has a token reads"

# a half-written certificate, then a whole new pair, under a kept stream
(
    for _ in $(seq 60); do
        filter "$pki/scheduler"
        echo
        sleep 0.05
    done >"$dir/stream"
) &
stream=$!
"$certs" server "$pki" new --san localhost --san 127.0.0.1
head -c 300 "$pki/new.crt" >"$dir/tls.crt"
until_true grep -q event=tls-refused "$dir/extender.log"
ok $? "half a certificate is refused"
cp "$pki/new.key" "$dir/tls.key"
cp "$pki/new.crt" "$dir/tls.crt"
serial() {
    openssl s_client -connect "localhost:$(port scheduler)" </dev/null 2>/dev/null |
        openssl x509 -noout -serial
}
is_new() { [ "$(serial)" = "$(openssl x509 -noout -serial -in "$pki/new.crt")" ]; }
until_true is_new
ok $? "a new one is taken"
wait "$stream"
[ "$(sort "$dir/stream" | uniq -c | tr -s ' ')" = " 60 200" ]
ok $? "and no request is lost"

# another authority of clients: the one before lets nobody in any more, until
# the advertiser's files are of the new one
"$certs" ca "$dir/second"
"$certs" client "$dir/second" host0 --cn system:node:host0
cp "$dir/second/ca.crt" "$dir/clients.new"
mv "$dir/clients.new" "$dir/clients.crt"
until_true grep -q 'publish-failed.*no authority' "$dir/advertiser.log"
ok $? "a new authority judges connections that exist"
cp "$dir/second/host0.key" "$dir/node.key"
cp "$dir/second/host0.crt" "$dir/node.crt"
until_true grep -q event=publish-recovered "$dir/advertiser.log"
ok $? "an advertiser takes up its new certificate"
curl -s -m "$HANGS" --cacert "$pki/ca.crt" -H "Authorization: Bearer $token" \
    "$read/metrics" >"$dir/metrics"
grep -q 'biga_refusals_total{listener="publish",reason="foreign"} [1-9]' "$dir/metrics" &&
    grep -q 'biga_tls_reads_total{result="refused"} [1-9]' "$dir/metrics"
ok $? "all of it is counted"
! grep -q "$token" "$dir"/*.log
ok $? "and no token is logged"

# who connects and says nothing, or half a handshake, holds no place
silent() { # BYTES
    exec 3<>"/dev/tcp/127.0.0.1/$(port scheduler)" || return
    printf '%b' "$1" >&3
    : >"$dir/on.$BASHPID"
    read -r -t "$HANGS" -u 3 -N 1 _
    [ $? -gt 128 ] || touch "$dir/cut.$BASHPID"
}
all_on() { [ "$(find "$dir" -name 'on.*' | wc -l)" = 20 ]; }
crowd() { # returns when 20 of them, $silents, have begun
    local i
    rm -f "$dir"/on.* "$dir"/cut.*
    silents=()
    for i in $(seq 20); do
        case $((i % 2)) in
        0) silent '' 2>/dev/null & ;;
        1) silent '\x16\x03\x01\x01\x00\x01' 2>/dev/null & ;;
        esac
        silents+=($!)
    done
    until_true all_on
}
crowd
"$certs" client "$dir/second" scheduler --cn system:kube-scheduler
[ "$(filter "$dir/second/scheduler")" = 200 ]
ok $? "the scheduler is served in a crowd of them"
kill "${silents[@]}" "$extender" 2>/dev/null # some were cut off
wait "${silents[@]}" "$extender" 2>/dev/null

# where nobody else asks, who might be as slow for once
start_with 6s
crowd
wait "${silents[@]}"
cut=$(find "$dir" -name 'cut.*' | wc -l)
[ "$cut" = 20 ]
ok $? "all of them are cut off ($cut of 20)"

"$BUILD/biga-extender" --read-listen 0.0.0.0:0 --scheduler-listen 127.0.0.1:0 \
    --publish-listen 127.0.0.1:0 >"$dir/plain.log" 2>&1
[ $? = 2 ] && grep -q 'read-listen.*--plain-http anywhere' "$dir/plain.log"
ok $? "without TLS a listener stays on loopback"
echo "1..$n"
