#!/bin/bash
# Logs, exec, attach and port-forward through the real extender, over TLS, with
# tokens: who may, what is carried, and what becomes of it when a side goes.
# The node is tests/lib/streamnode.py.  Needs openssl, curl and python3.  TAP
# lines.
set -u

# shellcheck source=tests/lib/streams.sh
. "$(dirname "$0")/../lib/streams.sh"

# exec_in TOKEN NS/NAME COMMAND…: with its input and exit status
exec_in() {
    local word url="$read/v1/pods/$2/exec?stdin=true&stdout=true&stderr=true"
    for word in "${@:3}"; do
        url+="&command=$(python -c 'import sys, urllib.parse as u
print(u.quote(sys.argv[1], safe=""))' "$word")"
    done
    timeout "$HANGS" python3 -B "$lib/streamclient.py" "$url" \
        --ca "$pki/ca.crt" --token "$1"
}
is() { [ "$1" = "$2" ] || { echo "# is: $1"; return 1; }; }
like() { grep -q -- "$1" <<<"$2" || { echo "# is: $2"; return 1; }; }

# --- who may -------------------------------------------------------------------

like 'line 4 of one' "$(call "$team" 'team-a/one/log?tailLines=5')"
ok $? "a log"
like '^403$' "$(call "$team" team-b/two/log)" &&
    like 'would need.*log:team-b' "$(call "$team" team-b/two/log)"
ok $? "of another namespace: refused"
like 'line 0 of two' "$(call "$reader" team-b/two/log)" &&
    like 'line 0 of two' "$(call "$admin" team-b/two/log)"
ok $? "whoever has the right, or a token without any, reads it"
is "$(exec_in "$team" team-a/one echo hello </dev/null)" hello
ok $? "exec"
like 403 "$(exec_in "$team" team-b/two id </dev/null)" &&
    like 403 "$(exec_in "$reader" team-b/two id </dev/null)" &&
    like 'would need.*exec:team-a' "$(exec_in "$admin" team-a/one id </dev/null)"
ok $? "without that right: refused"
like 401 "$(exec_in wrong-wrong-wrong-wrong team-a/one id </dev/null)"
ok $? "or with nobody's token"
as() { # CERTIFICATE NODE
    curl -s -m "$HANGS" -o /dev/null -w '%{http_code}' --cacert "$pki/ca.crt" \
        --cert "$pki/$1.crt" --key "$pki/$1.key" "$publish/v1/nodes/$2/streams"
}
is "$(as host1 host0)/$(as host1 host1)" 403/200
ok $? "a node is told of its own streams alone"
like 403 "$(curl -s -m "$HANGS" -w '\n%{http_code}' --cacert "$pki/ca.crt" \
    -H "Authorization: Bearer $team" -H 'Origin: https://elsewhere' \
    -H 'Connection: Upgrade' -H 'Upgrade: websocket' --http1.1 \
    "$read/v1/pods/team-a/one/attach?stdout=1")"
ok $? "a page of elsewhere in a browser gets nothing"

# --- what is carried --------------------------------------------------------------

head -c 3000000 /dev/urandom >"$dir/data"
exec_in "$team" team-a/one cat <"$dir/data" >"$dir/back"
cmp -s "$dir/data" "$dir/back"
ok $? "3 MB there and back"
exec_in "$team" team-a/one sh -c $'exit 7\n' </dev/null
is $? 7
ok $? "an exit status, of a command of two lines"
python3 -B -m http.server 0 --bind 127.0.0.1 --directory "$dir/pki" \
    >"$dir/http.log" 2>&1 &
pids+=($!)
until_true grep -q 'port [0-9]' "$dir/http.log" || true
served() { sed -n 's/.*port \([0-9]*\).*/\1/p' "$dir/http.log"; }
forward() {
    printf 'GET /ca.crt HTTP/1.0\r\n\r\n' |
        timeout "$HANGS" python3 -B "$lib/streamclient.py" --forward \
            --protocol v4.channel.k8s.io --ca "$pki/ca.crt" --token "$team" \
            "$read/v1/pods/team-a/one/portforward?ports=$(served)"
}
like 'BEGIN CERTIFICATE' "$(forward)"
ok $? "a port"

# --- by the biga command: streams_many.sh has the rest ------------------------------

echo "$team" >"$dir/team"
far() { BIGA_TOKEN_FILE=$dir/team timeout "$HANGS" "$BUILD/biga" "$@"; }
is "$(far attach -i team-a/one <<<hello)" hello
ok $? "biga attach"
far cp "$dir/data" "team-a/one:$dir/there" &&
    far cp "team-a/one:$dir/there" "$dir/again" && cmp "$dir/data" "$dir/again"
ok $? "biga cp, to a pod and back"
is "$(far logs team-a/one -c c -p --tail 1 --since 5m --timestamps)" 'line 0 of one'
ok $? "biga logs, with all that it may ask"
is "$(far logs -n team-a -l biga.dev/role=xpu --tail 1)" '[one] line 0 of one'
ok $? "biga logs of chosen pods"

# --- what goes wrong ----------------------------------------------------------------

like 'no container.*missing' "$(call "$team" 'team-a/one/log?container=missing')" &&
    like '^404$' "$(call "$team" 'team-a/one/log?container=missing')"
ok $? "a node's refusal is passed on"
call "$team" 'team-a/one/log?container=vanish' >"$dir/half"
[ $? != 0 ] && like '^half' "$(cat "$dir/half")"
ok $? "a log that is cut off is seen to be"
"$BUILD/biga" logs team-a/one --container vanish >"$dir/half" 2>"$dir/why"
is $? 1 && is "$(cat "$dir/half")" half && like 'the log broke off' "$(cat "$dir/why")"
ok $? "by biga, too"
is "$(call "$team" team-a/none/log | tail -1)" 404
ok $? "a pod that is not there"

# a reader that pauses: what it does not take waits in the node
curl -s --cacert "$pki/ca.crt" -H "Authorization: Bearer $team" --limit-rate 1k \
    -o "$dir/slow" "$read/v1/pods/team-a/one/log?tailLines=2000000" &
slow=$!
pids+=("$slow")
until_true relays 1
ok $? "a slow reader"
is "$(exec_in "$team" team-a/one echo hello </dev/null)" hello
ok $? "harms nobody"

kill "$slow"
wait "$slow" 2>/dev/null
until_true relays 0
ok $? "and is gone when it goes"

sleeper() { # in the background, for as long as there is a stream
    : >"$dir/sleeper" # now, or the one before would be taken for begun
    exec_in "$team" team-a/one sh -c 'echo begun; exec sleep 1000' </dev/null \
        >"$dir/sleeper" 2>&1 &
    sleeper=$!
    pids+=("$sleeper")
    until_true grep -q begun "$dir/sleeper"
}
is_cut() {
    wait "$sleeper"
    [ $? != 124 ] && like 'cut off' "$(cat "$dir/sleeper")"
}
sleeper
kill -9 "$node"
wait "$node" 2>/dev/null
is_cut && until_true relays 0
ok $? "the node vanishes: its streams end"
away() { like 'node host0 is away since 20' "$(call "$team" team-a/one/log)"; }
until_true away && is "$(call "$team" team-a/one/log | tail -1)" 503
ok $? "and those that come are refused at once, with since when"
node
is "$(exec_in "$team" team-a/one echo again </dev/null)" again
ok $? "it is there again"

sleeper
kill "$extender"
wait "$extender"
is $? 0
ok $? "the extender stops while a stream is open"
is_cut
ok $? "whose client sees that"
! grep -e "$admin" -e "$team" "$dir"/extender.log
ok $? "and no token is logged"

echo "1..$n"
