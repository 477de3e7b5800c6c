# kube-scheduler with Biga and without an extender, in turn, all hosts scored;
# Kubernetes is built once, which takes minutes.
# shellcheck shell=bash disable=SC2154
kube_rounds=3
declare -A kube_ratio=([1000]=1.4 [5000]=1.7) kube_ms=([1000]=0.7 [5000]=1.5)
declare -A kube_heartbeat=([1000]=10 [5000]=60) # they share a few processors
kube_why=
if [[ $quick ]]; then
    kube_why="left out of a quick run: make bench-kube"
elif say "Building Kubernetes, unless it is there …" && ! scripts/setup --kube \
    >"$work/setup" 2>&1; then
    kube_why=$(tail -1 "$work/setup")
elif ! tests/kube/binaries >"$work/setup" 2>&1; then
    kube_why=$(tail -1 "$work/setup")
fi
: >"$work/kube"
for n in 1000 5000; do
    [[ ! $kube_why ]] || break
    say "kube-scheduler on $n hosts, with Biga and without, $kube_rounds times …"
    env -u MAKEFLAGS timeout 2400 tests/kube/bench.py --nodes "$n" \
        --rounds "$kube_rounds" --percentages 100 --tsv "$work/kube" \
        --heartbeat "${kube_heartbeat[$n]}" >"$work/kube.$n" 2>&1 || {
        kube_why=$(tail -1 "$work/kube.$n")
        break
    }
    grep "^round" "$work/kube.$n"
done

of() { field "$work/kube" "$2" "$1" 100; } # HOSTS COLUMN
for n in 1000 5000; do
    rates=$kube_why extender_ms=$kube_why
    if [[ $(of "$n" 5) ]]; then
        rates="$(ratio "$(of "$n" 4)" "$(of "$n" 3)") $(of "$n" 4) $(of "$n" 3)"
        extender_ms=$(of "$n" 5)
    fi
    row "pods/s on $n hosts with Biga over those without; both" \
        ">= ${kube_ratio[$n]}" "$rates"
    row "the extender's CPU for each pod there, ms" "<= ${kube_ms[$n]}" \
        "$extender_ms"
done
table_data kube hosts,percentage,alone_per_s,biga_per_s,extender_ms "$work/kube"
