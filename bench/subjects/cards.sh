# Pods on cards, simulated and real ones, beside the same calls by hand.
# shellcheck shell=bash disable=SC2154
pod_starts=30 bursts=5 windows=5 window_s=15 log_rounds=5 sum_rounds=16
[[ ! $quick ]] ||
    pod_starts=5 bursts=1 windows=1 window_s=5 log_rounds=1 sum_rounds=2

say "Starting pods on a simulated card, and on a real one where there can be one …"
mkdir -m 700 "$work/act"
"$bin/bench_actuate" start "$pod_starts" "$work/act" >"$work/act-simulated" ||
    die "no pod starts on a simulated card"
timeout 120 tests/cards/bench.py "$pod_starts" >"$work/act-real" 2>"$work/act-why" ||
    { why=$(tail -1 "$work/act-why"); : >"$work/act-real"; }
say "Starting 64 pods at once on eight real cards …"
timeout 600 tests/cards/bench.py "$bursts" 64 >"$work/many" 2>"$work/many-why" ||
    { many_why=$(tail -1 "$work/many-why"); : >"$work/many"; }
say "Freezing one of eight cards, $windows times, with $window_s s of all well in turn …"
timeout 600 tests/cards/bench_frozen.py "$windows" "$window_s" \
    >"$work/frozen" 2>"$work/frozen-why" ||
    { frozen_why=$(tail -1 "$work/frozen-why"); : >"$work/frozen"; }
say "Reading a log from a card, in turn with the same bytes by hand …"
timeout 300 tests/cards/bench_logs.py "$log_rounds" \
    >"$work/logs" 2>"$work/logs-why" ||
    { logs_why=$(tail -1 "$work/logs-why"); : >"$work/logs"; }
say "Copying a log of a card into the kubelet's file …"
timeout 600 tests/cards/bench_follow.py "$log_rounds" \
    >"$work/follow" 2>"$work/follow-why" ||
    { follow_why=$(tail -1 "$work/follow-why"); : >"$work/follow"; }
say "Summing up a buffer for 4, 8 and 16 pairs, on cards and on hosts …"
timeout 900 tests/cards/bench_allreduce.py "$sum_rounds" \
    >"$work/sums" 2>"$work/sums-why" ||
    { sums_why=$(tail -1 "$work/sums-why"); : >"$work/sums"; }

follow() { field "$work/follow" "$2" "$1"; } # WHAT COLUMN
frozen() { field "$work/frozen" "$2" "$1"; }
act() { cut -f"$2" "$work/act-$1"; } # simulated|real COLUMN

on_card() { # simulated|real
    local want direct
    want=$(act "$1" 1) direct=$(act "$1" 3)
    row "pod on a $1 card, wanted to running, p50 ms" "" "$(ms "$want")"
    row "beside it: the card's calls by hand, p50 ms" "" "$(ms "$direct")"
    row "what Biga adds, p50 ms" "<= 10" "$(ms "$(act "$1" 5)")"
    row "the first over the second" "" "$(ratio "$want" "$direct")"
}
on_card simulated
row "beside it: the card's $(act simulated 6) calls for that, p50 ms; added to them" \
    "<= 10" "$(ms "$(act simulated 7)") $(ms $(($(act simulated 1) - $(act simulated 7))))"
if [[ -s $work/act-real ]]; then on_card real
else row "pod on a real card" "<= 10" "none: $why"; fi
if [[ -s $work/many ]]; then
    read -r many hand single many_cpu hand_cpu single_cpu <"$work/many"
    row "64 pods at once on 8 cards, wanted to running, p50 ms" "" "$(ms "$many")"
    row "by hand: 3 threads of calls per card; one; p50 ms" "" \
        "$(ms "$hand")" "$(ms "$single")"
    row "the first over the faster of these" "<= 1.1" \
        "$(ratio "$many" "$((hand < single ? hand : single))")"
    row "CPU per pod, ms; by hand: three; one" "" "$(ms $((many_cpu / 64)))" \
        "$(ms $((hand_cpu / 64)))" "$(ms $((single_cpu / 64)))"
else row "64 pods at once on 8 cards / by hand" "<= 1.1" "none: $many_why"; fi
beside_frozen() { # WHAT TEXT
    local q c=3
    for q in p50 p99; do
        row "$2, $q us; all cards well" "" \
            "$(frozen "$1" $((c + 3)))" "$(frozen "$1" $c)"
        row "the first over the second, of $(frozen "$1" 5) and $(frozen "$1" 2)" "<= 1.2" \
            "$(ratio "$(frozen "$1" $((c + 3)))" "$(frozen "$1" $c)")"
        c=4
    done
}
if [[ -s $work/frozen ]]; then
    beside_frozen filter "filter while one of 8 cards is frozen"
    beside_frozen pod "a pod up and down on another card then"
else row "what one frozen card costs the others, p99" "<= 1.2" "none: $frozen_why"; fi
if [[ -s $work/logs ]]; then
    read -r log_bytes log_biga log_hand <"$work/logs"
    row "biga logs, $((log_bytes / 1000000)) MB from a real card, MB/s" ">= 50" \
        "$log_biga"
    row "beside it: the same bytes by ExecSync of dd, MB/s; the first over that" "" \
        \
        "$log_hand $(ratio "$log_biga" "$log_hand")"
else row "biga logs from a real card, MB/s" ">= 50" "none: $logs_why"; fi
if [[ -s $work/follow ]]; then
    row "log of a card into the kubelet's file, MB/s" ">= 50" "$(follow read 2)"
    row "beside it: the same bytes by ExecSync of biga-card log; the first over that" \
        "" "$(follow read 3) $(follow read 4)"
    row "while it is written, MB/s; by the card's containerd; the first over that" \
        "" "$(follow write 2) $(follow write 3) $(follow write 4)"
    row "lines of every 10 ms, ms late, p99" "<= 200" "$(follow "late 0.01" 3)"
    row "what that takes of a processor of the card, %" "" \
        "$(follow "late 0.01" 6)"
else row "log of a card into the kubelet's file, MB/s" ">= 50" "none: $follow_why"; fi
if [[ -s $work/sums ]]; then
    while read -r pairs where with without bandwidth overlap none both; do
        row "sum of 4 MiB, $pairs pairs on $where, MB/s; by hosts; ratio" "" \
            "$with $without $bandwidth"
        row "its overlap with computing, %; by hosts; times of both, ratio" "" \
            "$overlap $none $both"
    done <"$work/sums"
else row "sum of 4 MiB that cards take off hosts, MB/s" "" "none: $sums_why"; fi
