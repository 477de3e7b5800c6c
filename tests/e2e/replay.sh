#!/bin/bash
# biga replay: a small run from end to end, the same bytes for the same seed,
# and what it says of bad input.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
biga=$build/biga
# shellcheck source=tests/lib/check.sh
. tests/lib/check.sh
trap 'rm -rf "$work"' EXIT
unset BIGA_SERVER BIGA_JSON BIGA_HTML BIGA_HOSTS

small=(--hosts 48 --fabric "leaf=8,spine=2" --generate "mpi:jobs=40")
check "the project's own trace" 0 "^biga +100\.00" \
    "$biga" replay "${small[@]}" --json "$work/a.json" --html "$work/a.html"
cp "$work/out" "$work/first"
check "all policies are compared" 0 "^most-allocated\+aligned " \
    cat "$work/first"
check "decision times are shown" 0 "^TIME OF A DECISION" cat "$work/first"
"$biga" replay "${small[@]}" --json "$work/b.json" --html "$work/b.html" \
    >/dev/null 2>&1
check "the same seed gives the same JSON" 0 "are identical" \
    diff -s "$work/a.json" "$work/b.json"
check "… and the same page" 0 "are identical" \
    diff -s "$work/a.html" "$work/b.html"
"$biga" replay "${small[@]}" --seed 2 --json "$work/b.json" >/dev/null 2>&1
check "another seed does not" 1 "differ" cmp "$work/a.json" "$work/b.json"
check "the page needs no network" 1 "^0$" grep -c "http" "$work/a.html"
check "JSON on the standard output" 0 '"policy": "biga"' \
    "$biga" replay "${small[@]}" --policies biga --json -
check "timings only when asked for" 1 "^0$" grep -c decisionP50 "$work/a.json"
check "… then they are there" 0 "decisionP50Microseconds" \
    "$biga" replay "${small[@]}" --policies biga --timings --json -
check "what is achieved, GPUs by a plugin" 0 "^GPUS BY PLUGIN .* ACHIEVED" \
    cat "$work/first"
check "… and in JSON" 0 '"gpusBy": "plugin"' cat "$work/a.json"
check "a plugin's GPUs are farther" 0 "^[1-9][0-9]*$" \
    sed -n 's/.*"pairsFartherThanPromised": \([0-9]*\),/\1/p' "$work/a.json"
"$biga" replay "${small[@]}" --gpus-by claims --json "$work/b.json" \
    >"$work/claims" 2>/dev/null
check "… by claims" 0 "^GPUS BY CLAIMS .* ACHIEVED" cat "$work/claims"
check "… no pair is" 1 "^0$" \
    grep -c '"pairsFartherThanPromised": [1-9]' "$work/b.json"
check "… and all the rest is the same" 0 "are identical" \
    diff -s <(grep -v -i -e achieved -e promised -e gpusBy "$work/a.json") \
    <(grep -v -i -e achieved -e promised -e gpusBy "$work/b.json")
check "… without GPUs it tells nothing" 1 "^0$" \
    grep -c achieved <("$biga" replay "${small[@]}" --pairs card -p biga -j - \
        2>/dev/null)
check "the loss model" 0 "is refused" \
    "$biga" replay --hosts 16 --loss --generate poisson:jobs=500 -p biga

printf '; Version: 2.2\n%s\n%s\n' \
    "1 0 -1 100 8 -1 -1 8 -1 -1 1 1 1 1 1 1 -1 -1" \
    "2 5 -1 100 8 -1 -1 8 -1 -1 1 1 1 1 1 1 -1 -1" >"$work/t.swf"
check "a trace in SWF" 0 "t\.swf: 2 jobs" \
    "$biga" replay --hosts 4 "$work/t.swf"
sed -i '1s/.*/; MaxProcs: 20/' "$work/t.swf"
check "a fleet as large as its machine" 0 "^Fleet: 3 hosts .* 24 cards" \
    "$biga" replay --hosts 0 "$work/t.swf"
check "of which nothing is known" 1 "hosts: 0 takes a FILE in SWF" \
    "$biga" replay --hosts 0
printf '{"arrival_s":0,"duration_s":5,"nodes":2,"ranks_per_node":8}\n' \
    >"$work/t.jsonl"
check "links are shared" 0 "SHARED LINKS, %" cat "$work/first"
check "a pair asks more than a host has" 0 "^biga +0 +100\.00" \
    "$biga" replay --hosts 4 --need cpu=225000 "$work/t.jsonl"
check "cards are shared" 0 "^biga +1 +0\.00" \
    "$biga" replay --hosts 1 --pairs card --need card-cores=4 "$work/t.jsonl"
check "… only when asked for" 0 "^biga +0 +100\.00" \
    "$biga" replay --hosts 1 --pairs card "$work/t.jsonl"
check "a wrong need" 1 'need: has "cores=2", may have cpu=THOUSANDTHS' \
    "$biga" replay --need cores=2
check "a trace in JSON lines" 0 "t\.jsonl: 1 jobs" \
    "$biga" replay --hosts 4 "$work/t.jsonl"

echo '{"arrival_s":1}' >>"$work/t.jsonl"
check "a bad line is named" 1 "t\.jsonl:2: duration_s: required" \
    "$biga" replay "$work/t.jsonl"
echo '3 4' >>"$work/t.swf"
check "… in SWF too" 1 "t\.swf:4: has 2 fields, must have 18" \
    "$biga" replay "$work/t.swf"
check "a file that is not there" 1 "none\.jsonl: No such file" \
    "$biga" replay "$work/none.jsonl"
check "a wrong recipe" 1 'generate: has "gauss"' "$biga" replay -g gauss
check "a wrong policy" 1 'policies: has "best"' "$biga" replay -p best
check "a wrong hand" 2 'gpus-by.*must be.* plugin' \
    "$biga" replay --gpus-by chance
check "a wrong fabric" 1 'fabric: is "leaf=x"' "$biga" replay -f leaf=x
check "a wrong option" 2 "no such option" "$biga" replay --frob
check "its own help" 0 "^  -g, --generate" "$biga" replay --help
exit $bad
