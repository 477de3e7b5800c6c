#!/bin/bash
# A hundred commands, logs and connections at once by the biga command, through
# the real extender, over TLS, with tokens, while two readers take nothing: none
# of them harms another (streams_many.py).  The node is tests/lib/streamnode.py.
# Needs openssl, curl and python3.  TAP lines.
set -u

# shellcheck source=tests/lib/streams.sh
. "$(dirname "$0")/../lib/streams.sh"

many() { # WHAT
    BIGA_TOKEN_FILE=$dir/team METRICS_TOKEN_FILE=$dir/token HANGS=$HANGS timeout $((2 * HANGS)) \
        python3 -B "$(dirname "$0")/streams_many.py" "$BUILD/biga" "$1" \
        >"$dir/many.log" 2>&1
}
echo "$team" >"$dir/team"
curl -s --cacert "$pki/ca.crt" -H "Authorization: Bearer $team" --limit-rate 1k \
    -o "$dir/slow" "$read/v1/pods/team-a/one/log?tailLines=2000000" &
slow=$!
mkfifo "$dir/never"
exec 6<>"$dir/never"
BIGA_TOKEN_FILE=$dir/team "$BUILD/biga" exec team-a/one -- cat /dev/zero \
    >&6 2>"$dir/exec.log" &
stuck=$!
pids+=("$slow" "$stuck")
until_true relays 2
ok $? "a log and a command that are not read"

many exec
ok $? "100 commands at once"
many logs
ok $? "100 logs that are followed"
many port-forward
ok $? "100 connections to a port"
relays 2 && kill -0 "$slow" && kill -0 "$stuck"
ok $? "those who do not read wait all the while"
kill "$slow" "$stuck"
until_true relays 0
ok $? "and go"

echo "1..$n"
