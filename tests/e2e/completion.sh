#!/bin/bash
# Tabs in bash, zsh and fish: commands, options, values and names of what is
# there.  Needs python3; shells that are not installed are left out.  TAP lines.
set -u

# shellcheck source=tests/lib/extender.sh
. "$(dirname "$0")/../lib/extender.sh"
need python3

shells=
for shell in bash zsh fish; do
    if command -v $shell >/dev/null; then
        shells="$shells $shell"
    else
        echo "# there is no $shell"
    fi
done

cat >"$dir/h.host" <<EOF
package 0
  numa 0 cpus=8 memory=16GiB
    root 0000:00
      bridge 0000:00:01.0
        card 0000:01:00.0 id=15b3:a2d6 cores=8 memory=16GiB
EOF
echo '{"cards": [{"match": {"pci": "01:00"}, "plaintext": true,
    "endpoint": "tcp://127.0.0.1:1"}]}' >"$dir/cards.json"
start_extender
BIGA_SERVER=http://127.0.0.1:$(port read)
BIGA_SOCKET=$dir/act/actuator.sock
programs=$(cd "$BUILD" && pwd)
export BIGA_SERVER BIGA_SOCKET HOME=$dir PATH=$programs:$PATH HANGS
"$BUILD/biga-advertiser" --server "http://127.0.0.1:$(port publish)" \
    --hostfile "$dir/h.host" --card-file "$dir/cards.json" --node host-a \
    --actuate "$dir/act" 2>"$dir/advertiser.log" &
pids+=($!)
biga apply deploy/examples/embedded.yaml >"$dir/apply.log"
ok $? "there are pods"
told() { # WANTED WORD…
    biga __complete "${@:2}" | grep -q "^$1"
}
until_true told host-a topo ""
ok $? "nodes are asked of the server"
until_true told 0000:01:00.0 card show ""
ok $? "cards of this host are asked of its advertiser"

# words TYPED…: what may stand in the place of the last, in one line
words() { biga __complete "$@" | sed '$d' | cut -f1 | paste -sd' '; }
is() { # NAME WANTED TYPED…
    local got
    got=$(words "${@:3}")
    [ "$got" = "$2" ] || { echo "# \"$got\", not \"$2\""; false; }
    ok $? "$1"
}
is "values of an option" "table wide json yaml name" nodes -o ""
is "an option that begins so" "--socket" logs --so
is "none of another command" "" logs --grace
is "states to wait for" "running ready" wait --for r
is "columns of the list" "ROLE READY RESTARTS REASON" ps --sort-by R
is "kinds and pods" "metrics" delete m
is "… kinds alone where no pod begins so" "job" delete j
is "names of a kind" "ring" delete secret ""
is "names in another namespace" "" -n lab ps ""
is "whole names" "default/ring-0 default/ring-0-xpu" ps default/ring-0
is "jobs whose logs are meant" "job/ring" logs job/r
is "jobs and pods to wait for" "job/ring" wait pod/metrics job/r
is "what there is a history of" "node/host-a" history n
is "namespaces" "default" ps -n ""
is "shells" "bash zsh fish" completion ""
is "kinds of what is used" "nodes" top n
is "… and nodes" "host-a" top cards ""
is "… columns of that kind" "CORES" top cards --sort-by COR
is "nothing behind all arguments" "" topo host-a ""
is "nothing of an unknown command" "" frobnicate ""
is "nothing for help" "" --help ""
[ "$(biga __complete apply "")" = ":files" ]
ok $? "a file is the shell's to complete"
[ "$(biga __complete exec ring-0 -- "")" = ":files" ]
ok $? "so is another program's command"
[ "$(BIGA_SERVER=http://127.0.0.1:1 biga __complete topo "" 2>&1)" = ":" ]
ok $? "without a server there are no names, and no words about it"
[ "$(BIGA_OUTPUT=xml biga __complete topo "" 2>&1)" = ":" ]
ok $? "nor with a variable that is wrong"
biga completion csh >"$dir/csh.log" 2>&1
[ $? = 2 ] && grep -q 'must be bash, zsh or fish' "$dir/csh.log"
ok $? "of other shells it knows nothing"

: >"$dir/a-file.yaml"
cat >"$dir/cases" <<EOF
biga polTAB=>biga|policy
biga nodes --sortTAB=>biga|nodes|--sort-by
biga nodes -o yTAB=>biga|nodes|-o|yaml
biga nodes --output=yaTAB=>biga|nodes|--output=yaml
biga ps meTAB=>biga|ps|metrics
biga ps default/metTAB=>biga|ps|default/metrics
biga -n deTAB ps=>biga|-n|default|ps
biga topo hTAB=>biga|topo|host-a
biga card show 0TAB=>biga|card|show|0000:01:00.0
biga card show 0000:0TAB=>biga|card|show|0000:01:00.0
biga apply $dir/a-fTAB=>biga|apply|$dir/a-file.yaml
biga delete conTABriTAB=>biga|delete|configmap|ring
EOF
for shell in $shells; do
    biga completion "$shell" >"$dir/script.$shell"
    python3 -B tests/lib/typed.py "$shell" "$dir/script.$shell" "$dir/cases" \
        >"$dir/typed" 2>&1 || echo "not ok - $shell" >>"$dir/typed"
    cat "$dir/typed"
done
