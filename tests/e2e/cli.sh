#!/bin/bash
# The command line: what it says without a server, and with one.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
biga=$build/biga
# shellcheck source=tests/lib/check.sh
. tests/lib/check.sh
pids=()
finish() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
    for p in "${pids[@]}"; do wait "$p" 2>/dev/null; done
    rm -rf "$work"
}
trap finish EXIT
unset BIGA_SERVER BIGA_JSON

# --- without a server ---------------------------------------------------------

# nothing else takes a port that only root may listen on
nobody=http://127.0.0.1:1
check "help lists the commands" 0 "^  why .*POD" "$biga" help
check "--help is the same" 0 "^  topo NODE" "$biga" --help
check "help tells what columns mean" 0 "^  CARDS.FREE/TOTAL. +cards that nobody" \
    "$biga" nodes --help
check "… and has examples" 0 "^  biga nodes -l 'status!=ready'" "$biga" help nodes
widest() { # of all helps
    for v in $("$biga" __complete "" | sed '$d' | cut -f1) ""; do
        # shellcheck disable=SC2086 # no word for all commands
        "$biga" help $v
    done | LC_ALL=C.UTF-8 wc -L
}
check "no help is wider than 80 columns" 0 "^[67][0-9]$|^80$" widest
check "columns are in the manual" 0 "^  CARDS.FREE/TOTAL.  +cards that nobody" \
    "$biga" --print-docs man
check "… and examples" 0 "^    biga nodes .* # what is out of order" \
    "$biga" --print-docs man
check "… and what to see besides" 0 "^.SH SEE ALSO" "$biga" --print-docs man
full() { "$@" >/dev/full; }
check "help that cannot be written is no success" 1 "standard output: No sp" \
    full "$biga" --help
check "nor is a version" 2 "standard output: No space" full "$biga" --version
check "nor is a manual" 2 "standard output: No space" \
    full "$build/biga-advertiser" --print-docs markdown
check "nor are settings" 1 "standard output: No space" \
    full "$build/biga-extender" --help
check "nor the version of biga-card" 1 "output: No space" full "$build/biga-card" version
check "nor what a command prints" 1 "standard output: No space" \
    full "$biga" help topo
check "help of one command" 0 "^Usage: biga topo NODE" "$biga" help topo
check "and --help behind it" 0 "^  -f, --follow" "$biga" logs --help
check "of a command that takes a command" 0 \
    "^Usage: biga exec .OPTION.… .*POD -- COMMAND" "$biga" exec -h
check "and behind options" 0 "^Usage: biga topo NODE" \
    "$biga" --server "$nobody" -n x topo --help
check "of rsh, which passes on what is behind its host" 0 \
    "^Usage: biga rsh HOST" "$biga" --server "$nobody" rsh --job x -h
check "-h there is its command's" 2 "rsh: which job" \
    "$biga" --server "$nobody" rsh host ls -h
check "without the options of others" 0 "^0" \
    sh -c "'$biga' logs --help | grep -c -e --rankfile; true"
check "no command shows the help" 2 "^Look:" "$biga"
check "version" 0 "^biga [0-9]+\.[0-9]+\.[0-9]+$" "$biga" version
check "version as JSON" 0 '^\{"version":"[0-9.]+"\}$' "$biga" --json version
check "a slip is understood" 2 'did you mean `biga nodes`' "$biga" ndoes
check "nonsense is not guessed" 2 "see biga help" "$biga" frobnicate
check "a missing argument" 2 "usage: biga topo NODE" "$biga" topo
check "too many arguments" 2 "usage: biga nodes$" "$biga" nodes x
check "an unknown option" 2 "no such option" "$biga" --frob nodes
# Each command with each option: it takes it, which its help says, or refuses
# it; none is ignored.  Too many arguments keep it from doing anything.
all=$("$biga" --print-docs markdown | sed -n 's/^| `--\([a-z-]*\)`.*/\1/p')
value() {
    case $1 in
    json | all-namespaces | watch | hostfile | pod-hostfile | dpu-hostfile | rankfile | ucx | nccl | urom | dot | svg | \
        follow | once | applied | force | dry-run | wait | rm | evict | previous | timestamps | interactive | tty) ;;
    output) echo "=yaml" ;;
    *) echo "=1" ;;
    esac
}
wrong=0 tried=0
for verb in $("$biga" __complete "" | sed '$d' | cut -f1); do
    [ "$verb" = replay ] && continue # its own options follow it
    takes=$("$biga" help "$verb" | grep -oE -e '--[a-z-]+' | sort -u)
    for option in $all; do
        tried=$((tried + 1))
        said=$("$biga" "$verb" "--$option$(value "$option")" a b c d e 2>&1)
        code=$?
        if grep -qx -e "--$option" <<<"$takes"; then
            ! grep -q "takes no --$option" <<<"$said"
        else
            [ $code = 2 ] && grep -q "^biga: $verb: takes no --$option; it takes" \
                <<<"$said"
        fi || { echo "# biga $verb --$option: $code: $said"; wrong=$((wrong + 1)); }
    done
done
check "every command takes an option or refuses it" 0 "^0 of [0-9]{4}$" \
    echo "$wrong of $tried"
check "replay refuses what stands before it" 2 "replay: takes no --json" \
    "$biga" --json replay
check "… and card by its own command" 2 "card drain: takes no --follow" \
    "$biga" card drain x --follow
check "the environment may set what a command does not take" 0 "^biga [0-9]" \
    env BIGA_NAMESPACE=lab "$biga" version
check "an unreachable server" 1 "no answer from $nobody" \
    "$biga" --server "$nobody" nodes
check "… says what to start" 1 "biga-extender" "$biga" --server "$nobody" nodes
BIGA_SERVER=$nobody check "the environment names the server" 1 "$nobody" "$biga" nodes
check "a wrong URL" 2 "server" "$biga" --server ftp://x nodes
check "simulate without the file" 1 "No such file" \
    "$biga" simulate "$work/none.json"
check "simulate of what never ends" 1 "larger than 16 MiB" \
    timeout "$HANGS" "$biga" --server "$nobody" simulate /dev/zero
check "a demo on no port" 1 "name the port" \
    timeout "$HANGS" "$biga" demo --once --read-listen 127.0.0.1:0
check "a GPU resource that is no name" 2 "gpu-resources: \"a b\"" \
    timeout "$HANGS" "$build/biga-extender" --gpu-resources "a b" \
    --scheduler-listen 127.0.0.1:0 --publish-listen 127.0.0.1:0 \
    --read-listen 127.0.0.1:0

# --- with one --------------------------------------------------------------------

"$build/biga-extender" --scheduler-listen 127.0.0.1:0 \
    --publish-listen 127.0.0.1:0 --read-listen 127.0.0.1:0 --fresh 1h \
    >"$work/extender.log" 2>&1 &
pids+=($!)
for _ in $(seq $((HANGS * 20))); do
    grep -q event=ready "$work/extender.log" && break
    sleep 0.05
done
port() { sed -n "s/.*listener=$1 .*port=//p" "$work/extender.log"; }
read=$(port read) publish=$(port publish)
export BIGA_SERVER=http://127.0.0.1:$read
check "an empty server says what to start" 0 "biga-advertiser" "$biga" nodes
check "no allocation yet" 0 "nothing was bound" "$biga" allocations
check "an unknown node" 1 "answered 404" "$biga" topo nowhere
check "cards of an unknown node" 1 "nowhere" "$biga" cards nowhere

"$build/biga-advertiser" --fleet 8 --server "http://127.0.0.1:$publish" \
    >"$work/advertiser.log" 2>&1 &
pids+=($!)
for _ in $(seq $((HANGS * 20))); do
    [ "$("$biga" nodes 2>/dev/null | grep -c ready)" = 8 ] && break
    sleep 0.05
done
check "nodes" 0 "^NODE +STATUS" "$biga" nodes
node=$("$biga" nodes | awk '$3 == "9/9" { print $1; exit }')
check "the host with 9 cards is there" 0 "^$node +ready +9/9" "$biga" nodes
check "node" 0 "^status +ready" "$biga" node "$node"
check "cards of one node" 0 "BlueField-3" "$biga" cards "$node"
check "all cards, by their PCI addresses" 0 "^NODE +CARD +NUMA" "$biga" cards
check "a slip of a node's name is understood" 1 "^Did you mean node .$node.\?$" \
    "$biga" node "${node}x"
check "… as the node whose cards are asked for" 1 "^Did you mean node .$node.\?$" \
    "$biga" cards "x$node"
check "what is far off is not guessed" 0 "^0$" \
    sh -c "'$biga' node frobnicate 2>&1 | grep -c 'Did you'; true"
check "topo draws switches" 0 "PCIe switch" "$biga" topo "$node"
check "topo as a drawing" 0 "<title>$node</title>" "$biga" topo --svg "$node"
check "which is XML" 0 "^it is$" sh -c "'$biga' topo --svg '$node' | python3 -c '
import sys, xml.parsers.expat as e
e.ParserCreate().ParseFile(sys.stdin.buffer)
print(\"it is\")'"
check "and no JSON" 2 "a drawing is no JSON" "$biga" topo --svg --json "$node"
check "matrix" 0 "^CARD0 +X " "$biga" matrix "$node"
check "top: nothing is told, the host has its CPUs" 0 \
    "^$node +-/0/224 " "$biga" top
check "top of cards" 0 "^$node +0000:1a:00.0 +-/0/8 " \
    "$biga" top cards "$node"
check "… chosen, in an order, by name" 0 "^card/$node/0000:9d:00.0\$" sh -c \
    "'$biga' top card -l node=$node --sort-by .total.cpuMillicores -o name |
        tail -n 1"
check "… as YAML" 0 "^  node: $node\$" "$biga" top cards -o yaml
check "… of a slip of its node" 1 "^Did you mean node .$node.\?\$" \
    "$biga" top cards "${node}x"
check "nodes are in no namespace" 2 "takes no --namespace" \
    "$biga" top nodes -n lab
check "top of pods" 0 "No pod has a card" "$biga" top pods
check "top of what" 2 "must be nodes, cards or pods$" "$biga" top gpus
check "… a slip is understood" 2 "; did you mean nodes.$" "$biga" top ndoes
card=$("$biga" cards "$node" | awk '/BlueField/ { print $2; exit }')
check "drain asks why" 2 "--reason" "$biga" drain "$node/$card"
check "… and what was meant" 1 "^Did you mean node .$node.\?$" \
    "$biga" drain "x$node" --reason x
check "… also of its cards" 1 "^Did you mean card .$node/$card.\?$" \
    "$biga" drain "x$node/$card" --reason x
check "drain of nothing" 2 'must be NODE/CARD' "$biga" drain "$node/" --reason x
check "drain" 0 "^$node/$card is drained" env USER=ann \
    "$biga" drain "$node/$card" --reason "new firmware"
check "… is told by the cards" 0 "$card .*drained by ann since 2.*: new firmware" \
    "$biga" cards "$node"
check "… and by the tree" 0 "card $card .* drained" "$biga" topo "$node"
check "undrain" 0 "takes new pods again" "$biga" undrain "$node/$card"
check "… once" 1 "404.*$node/$card is not drained" "$biga" undrain "$node/$card"
check "drain of a node" 0 "^$node is drained" "$biga" drain "$node" --reason move
check "… is told by it" 0 "^drained +since 2.*: move" "$biga" node "$node"
check "undrain of a node" 0 "^$node takes" "$biga" undrain "$node"
check "no card is drained any more" 0 "^0$" \
    sh -c "'$biga' cards '$node' | grep -c drained; true"
check "--json passes the server's JSON on" 0 '"relations":' \
    "$biga" --json topo "$node"
check "nodes as YAML" 0 "^- name: $node$" "$biga" nodes -o yaml
check "… by name alone" 0 "^node/$node$" "$biga" nodes -o name
check "… with more columns" 0 "^NODE .* BOOT$" "$biga" nodes -o wide
check "… those chosen" 0 "^1$" sh -c "'$biga' nodes -l 'cards.total>8' -o name | wc -l"
check "… as JSON, too" 0 '"items":\[\]' "$biga" nodes -l status=lost -o json
check "… in the order of a column" 0 "^node/$node$" \
    sh -c "'$biga' nodes --sort-by cards -o name | tail -n 1"
check "… or of a path" 0 "^node/$node$" \
    sh -c "'$biga' nodes --sort-by '{.cards.total}' -o name | tail -n 1"
check "an unknown column" 2 '"size" is no column; must be one of NODE, STATUS, CARDS' \
    "$biga" nodes --sort-by size
check "a wrong selector" 2 '"a b": byte 3' "$biga" nodes -l 'a b'
check "two forms at a time" 2 "json is -o json, but --output is .yaml" \
    "$biga" nodes -j -o yaml
check "… of which a variable gives way" 0 "^node/$node$" \
    env BIGA_JSON=true "$biga" nodes -o name
check "all namespaces and one" 2 "namespace is given, too" "$biga" ps -A -n lab
check "what has no name" 2 "has no name; it may be" "$biga" policy -o name
check "an option may stand behind the command" 0 '^\{' "$biga" nodes --json
check "no job yet" 0 "No job is known" "$biga" jobs
check "an unknown job" 1 "404.*job lab/ring" "$biga" job ring -n lab
check "an unknown job's hostfile" 1 "404.*job default/ring" "$biga" job ring --hostfile
check "two files at a time" 2 "one file at a time" "$biga" job ring --ucx --urom
check "two namespaces at a time" 2 'is "a/ring", but --namespace is "lab"' \
    "$biga" job a/ring -n lab
check "a file is no JSON" 2 "a file is no JSON" "$biga" job ring --ucx --json
check "a drawing is no JSON" 2 "a drawing is no JSON" "$biga" fabric --svg --json
check "why looks in the namespace" 1 "lab/nopod" "$biga" why nopod -n lab
check "… ps and release, too" 1 "lab/nopod" "$biga" ps nopod -n lab
check "… of which there may be one" 2 'is "a/nopod", but --namespace is "lab"' \
    "$biga" why a/nopod -n lab
check "a namespace of the environment gives way" 1 "a/nopod" \
    env BIGA_NAMESPACE=lab "$biga" why a/nopod
check "two drawings at a time" 2 "one drawing at a time" \
    "$biga" fabric --dot --svg
check "an unknown pod" 1 "default/nopod" "$biga" why nopod

cat >"$work/pod.json" <<'EOF'
{"metadata": {"name": "web", "labels": {"biga.dev/role": "service"}},
 "spec": {"containers": [{"name": "c", "resources": {"requests":
  {"biga.dev/card": "1", "biga.dev/card-cores": "4"}}}]}}
EOF
check "simulate" 0 "web is placed" "$biga" simulate "$work/pod.json"
check "simulate from standard input" 0 "web is placed" \
    "$biga" simulate - <"$work/pod.json"
sed 's/"4"/"4000"/' "$work/pod.json" >"$work/big.json"
check "simulate says why not" 0 "web is refused" "$biga" simulate "$work/big.json"
echo '{"metadata": {' >"$work/broken.json"
check "a broken file is refused with the position" 1 "line 2" \
    "$biga" simulate "$work/broken.json"

# --- pods of one's own ------------------------------------------------------------

example=deploy/examples/embedded.yaml
check "no pod was applied yet" 0 "biga apply FILE" "$biga" ps
check "apply a file of YAML" 0 "^Pod default/ring-1-xpu created$" \
    "$biga" apply "$example"
check "… again: nothing has changed" 0 "^Pod default/ring-0 unchanged$" \
    "$biga" apply "$example"
check "… from standard input" 0 "^ConfigMap default/ring unchanged$" \
    "$biga" apply - <"$example"
check "ps lists the pods" 0 "^default/ring-0-xpu +xpu " "$biga" ps
check "… with their ages" 0 "^default/ring-0-xpu .* [0-9]+[sm]" "$biga" ps
check "pods by their labels" 0 "^pod/default/ring-1-xpu$" \
    "$biga" ps -l biga.dev/role=xpu,biga.dev/job -o name
check "… the youngest last" 0 "^pod/default/ring-1-xpu$" \
    sh -c "'$biga' ps --sort-by age -o name | tail -n 1"
check "ps of one pod has its message" 0 "^job +ring, pair 1" \
    "$biga" ps ring-1
check "ps as JSON has the pod" 0 '"pod":\{"apiVersion":"v1"' \
    "$biga" --json ps default/ring-1
! "$biga" --json ps ring-0-xpu | grep -q please ||
    { echo "not ok - a Secret is shown"; bad=1; }
check "ps of an unknown pod" 1 "404.*default/nopod" "$biga" ps nopod
check "… nor a slip: it is understood" 1 "^Did you mean pod .default/ring-0-xpu.\?$" \
    "$biga" ps rnig-0-xpu
check "… also in another namespace" 1 "^Did you mean pod .default/ring-0.\?$" \
    "$biga" why -n lab ring-0
check "… to wait for" 1 "^Did you mean pod .default/ring-0.\?$" \
    "$biga" wait pod/rnig-0
check "a slip of a namespace, too" 0 "^Did you mean namespace .default.\?$" \
    "$biga" ps -n defualt
check "… and of what is to be deleted" 1 "^Did you mean pod .default/metrics.\?$" \
    "$biga" delete pod metrcis
check "names, for scripts" 0 "^pod/default/ring-0-xpu$" "$biga" ps -o name
check "… of what was applied" 0 "^configmap/default/ring$" \
    "$biga" apply "$example" -o name
check "pods by what they are" 0 "^pod/default/metrics$" \
    "$biga" ps -l 'role in (service)' -o name
check "… and no others" 0 "^1$" sh -c "'$biga' ps -l role=service -o name | wc -l"
sed 's/busybox:static/busybox:2/' "$example" >"$work/other.yaml"
check "another spec is refused" 1 "409.*delete it first" \
    "$biga" apply "$work/other.yaml"
cat >"$work/bad.yaml" <<'END'
apiVersion: v1
kind: Pod
metadata: {name: bad, labels: {biga.dev/role: xpu}}
spec:
  containers: [{name: c, image: i}]
  volumes: [{name: d, hostPath: {path: /data}}]
END
check "what a card cannot give is refused by name" 1 \
    'Pod default/bad\): spec.volumes\[0\].hostPath: is .*/data.*no host paths' \
    "$biga" apply "$work/bad.yaml"
echo 'kind: [' >"$work/broken.yaml"
check "broken YAML" 1 "broken.yaml: line 2" "$biga" apply "$work/broken.yaml"
: >"$work/empty.yaml"
check "an empty file" 1 "has no document" "$biga" apply "$work/empty.yaml"
check "a list of one namespace" 0 "biga apply FILE" "$biga" ps -n lab
check "delete looks in the namespace" 1 "lab/metrics" \
    "$biga" delete metrics -n lab
check "… for a job, too" 1 "job lab/ring: has no pods" \
    "$biga" delete job/ring -n lab
check "… by BIGA_NAMESPACE, too" 1 "job lab/ring: has no pods" \
    env BIGA_NAMESPACE=lab "$biga" delete job/ring
check "a job without a name is not that of all other pods" 2 \
    'delete: "default/": must be \[NAMESPACE/\]NAME' "$biga" delete job/
check "a file has no grace" 2 "not a configmap" \
    "$biga" delete configmap ring --grace 0
check "delete a pod" 0 "Pod default/metrics is to end" \
    "$biga" delete --grace 0 metrics
check "delete all of a job" 0 "Pod default/ring-1-xpu is to end" \
    "$biga" delete job ring
check "delete a file" 0 "ConfigMap default/ring deleted" \
    "$biga" delete configmap ring
check "… that is not there" 1 "404.*default/ring" "$biga" delete configmap ring
check "delete what is no kind" 2 "must be pod, job" "$biga" delete node x

check "nothing was damaged" 1 "404.*no node is doubtful" "$biga" trust
check "… nor of one node" 1 "404.*no node is doubtful" "$biga" trust host1

check "no colours into a pipe" 0 "^NODE" "$biga" nodes
! grep -q "$(printf '\033')" "$work/out" || { echo "not ok - escapes"; bad=1; }
exit "$bad"
