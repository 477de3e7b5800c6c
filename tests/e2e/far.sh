#!/bin/bash
# biga logs, exec, cp and port-forward, against a stand-in for the extender that
# runs here what is to be run in a pod.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(cd "${BUILD:-build}" && pwd)
biga=$build/biga
# shellcheck source=tests/lib/check.sh
. tests/lib/check.sh
for tool in python3 script; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done
unset BIGA_SOCKET BIGA_JSON BIGA_NAMESPACE
coproc SERVER { exec python3 -B tests/e2e/far_server.py; }
server=$SERVER_PID
trap 'kill $server; rm -rf "$work"' EXIT
read -t "$HANGS" -r port <&"${SERVER[0]}"
same() { # what, command…: which says nothing
    local what=$1
    shift
    check "$what" 0 "^$" sh -c '"$@" && echo' sh "$@"
}
export BIGA_SERVER=http://127.0.0.1:$port

# --- logs ----------------------------------------------------------------------

check "logs of a pod" 0 "^three$" "$biga" logs p-0
check "the last lines" 0 "^three$" "$biga" logs --tail 1 p-0
check "no more than what is asked for" 0 "that were 3 bytes; more with" \
    "$biga" logs --limit-bytes 3 p-0
check "since a time" 0 "^since 2026-01-02T03:04:05" "$biga" logs \
    --since 2026-01-02T03:04:05Z p-0
check "since nonsense" 2 'since: .*5x' "$biga" logs --since 5x p-0
check "of a job, each line with its pod" 0 '^\[p-0-xpu\] one$' "$biga" logs job/ring
check "of chosen pods" 0 '^\[p-1\] one$' "$biga" logs -l app=p-1
check "… whatever BIGA_JSON is for other commands" 0 '^\[p-1\] one$' \
    env BIGA_JSON=true "$biga" logs -l app=p-1
check "of none that is chosen" 1 "no pod is meant" "$biga" logs -l app=other
check "of a server that lists none" 1 "has no list" "$biga" logs -n other -l app=p-1
check "of no pod" 2 "which pods" "$biga" logs
check "a node that is away" 1 "is away since" "$biga" logs away
timeout "$HANGS" "$biga" logs -f job/ring >"$work/followed"
check "all that are followed" 0 "^6$" wc -l <"$work/followed"
timeout "$HANGS" script -qec "$biga logs p-0" /dev/null >"$work/shown" </dev/null
check "a terminal is not told to turn red" 0 '^two \?\[31mred' cat "$work/shown"

check "a slip of a name is understood" 1 '^Did you mean pod .default/p-0.\?$' \
    "$biga" logs p-o

# --- exec -----------------------------------------------------------------------

check "a command's output" 0 "^hello world$" "$biga" exec p-0 -- echo "hello world"
check "its exit status" 7 "^so$" "$biga" exec p-0 -- sh -c 'echo so; exit 7'
check "its errors" 0 "^wrong$" "$biga" exec p-0 -- sh -c 'echo wrong >&2'
head -c 3000000 /dev/urandom >"$work/data"
check "what comes with the answer, though nothing follows" 0 "^hello$" \
    "$biga" exec at-once -- true
check "… though it is over" 0 "^hello$" "$biga" exec over-at-once -- true
check "its input and the end of it" 0 "$(sha256sum <"$work/data")" \
    "$biga" exec -i p-0 -- sha256sum <"$work/data"
check "no input" 0 "^0$" "$biga" exec p-0 -- wc -c <"$work/data"
timeout "$HANGS" "$biga" exec p-0 -- cat "$work/data" >"$work/copy"
same "much output" cmp "$work/data" "$work/copy"
check "a node that is away" 1 "is away since" "$biga" exec away -- true
check "a slip of a name" 1 '^Did you mean pod .default/p-0.\?$' \
    "$biga" exec p-o -- true
check "a terminal that is none" 2 "no terminal" "$biga" exec -t p-0 -- true </dev/null
timeout "$HANGS" script -qec "stty rows 7 cols 77; $biga exec -it p-0 -- sh -c 'tty; until stty size | grep 7.77; do sleep 0.05; done'" \
    /dev/null >"$work/shown" </dev/null
check "a terminal" 0 "/dev/pts/" cat "$work/shown"
check "its size" 0 "7 77" cat "$work/shown"

# --- cp -------------------------------------------------------------------------

mkdir -p "$work/there/sub dir" "$work/here"
echo text >"$work/there/sub dir/a.txt"
same "a folder from a pod" "$biga" cp "p-0:$work/there/sub dir" "$work/here"
check "is there" 0 "^text$" cat "$work/here/sub dir/a.txt"
same "a file under another name" "$biga" cp "p-0:$work/data" "$work/here/b"
same "is the same" cmp "$work/data" "$work/here/b"
same "a file to a pod" "$biga" cp "$work/data" "p-0:$work/there"
same "is the same there" cmp "$work/data" "$work/there/data"
same "to a pod under another name" "$biga" cp "$work/data" "p-0:$work/there/x.y|z"
same "has it" cmp "$work/data" "$work/there/x.y|z"
check "a file that is not there" 2 "nothing" "$biga" cp "p-0:$work/nothing" "$work/here"
timeout "$HANGS" "$biga" cp "$work/data" "away:$work/there" >"$work/said" 2>&1
check "a node that is away is not asked twice" 0 "^1$" wc -l <"$work/said"
check "none of both in a pod" 2 "must be in a pod" "$biga" cp a b
check "nothing is left behind" 2 "cannot access" ls -d "$work"/here/.biga-cp-*

# --- port-forward ----------------------------------------------------------------

check "a port that is none" 2 "must be PORT" "$biga" port-forward p-0 http
check "a slip of a name" 1 '^Did you mean pod .default/p-0.\?$' \
    "$biga" port-forward p-o :80
check "an address that is none" 2 "must be an IP address" \
    "$biga" port-forward --address somewhere p-0 :80
exec 7< <(cd "$work" && exec python3 -u -m http.server --bind 127.0.0.1 0 2>&1)
web=$!
trap 'kill $server $web $forward 2>/dev/null; rm -rf "$work"' EXIT
read -t "$HANGS" -r line <&7 # Serving HTTP on 127.0.0.1 port N …
[[ $line =~ port\ ([0-9]+) ]]
web_port=${BASH_REMATCH[1]}
exec 9< <(exec python3 -u -c "
import socket
s = socket.create_server(('127.0.0.1', 0))
print(s.getsockname()[1])
while True:
    c, n = s.accept()[0], 0
    while data := c.recv(65536):
        n += len(data)
    c.sendall(b'%d' % n)
    c.close()")
count=$!
trap 'kill $server $web $count $forward 2>/dev/null; rm -rf "$work"' EXIT
read -t "$HANGS" -r count_port <&9
exec 8< <(exec "$biga" port-forward p-0 ":$web_port" :1 ":$count_port" \
    2>"$work/forward.log")
forward=$!
read -t "$HANGS" -r first <&8
read -t "$HANGS" -r second <&8
read -t "$HANGS" -r third <&8
first=${first%% *} second=${second%% *} third=${third%% *}
cat >"$work/fetch.py" <<'PY'
import hashlib, sys, threading, urllib.request
def one(i):
    with urllib.request.urlopen(f"http://{sys.argv[1]}/data") as a:
        sums[i] = hashlib.sha256(a.read()).hexdigest()
sums = [None] * 20
threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
[t.start() for t in threads]
[t.join() for t in threads]
print(len(set(sums)), sums[0])
PY
check "twenty connections at once" 0 "^1 $(sha256sum <"$work/data" | cut -c1-64)" \
    python3 "$work/fetch.py" "$first"
timeout "$HANGS" python3 - "$first" <<'PY'
import socket, sys
for _ in range(20):
    with socket.create_connection(sys.argv[1].split(":")) as s:
        s.sendall(b"GET /data HTTP/1.0\r\n\r\n")
PY
check "connections that close early harm no others" 0 \
    "^1 $(sha256sum <"$work/data" | cut -c1-64)" \
    python3 "$work/fetch.py" "$first"
check "a port where nobody listens" 0 "^closed$" python3 -c "
import socket
s = socket.create_connection('$second'.split(':'))
print('closed' if s.recv(1) == b'' else 'open')"
check "the end of what is sent is told" 0 "^5$" python3 -c "
import socket
s = socket.create_connection('$third'.split(':'))
s.sendall(b'hello')
s.shutdown(socket.SHUT_WR)
print(s.recv(9).decode())"

exit $bad
