#!/bin/bash
# What runs tests: one that hangs is ended and says where, one that fails says
# why, also in the last lines of .ci/run.
set -u
. tests/lib/check.sh
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/../.." || exit
mkdir "$work/build"
run() { # as others do, but that what these take is nobody's business
    BIGA_BUILD=$work/build scripts/run-tests "$@"
}
why() { # FILE
    awk -f scripts/why.awk "$1"
}

# --- one that hangs -----------------------------------------------------------

cat >"$work/hangs.sh" <<END
echo "ok - it begins"
sleep 4321 &
trap 'echo "it is cleaned up"; kill \$!; exit 143' TERM
echo >"$work/began"
wait
END
mkfifo "$work/began"
cat "$work/began" &
check "what hangs is ended" 1 "e2e/hangs .* 1 failed  \(not done after 10 s" \
    env TEST_TIMEOUT=10 BIGA_BUILD="$work/build" scripts/run-tests \
    --e2e "$work/hangs.sh"
cp "$work/out" "$work/hung"
check "as one that failed" 0 "^1 passed, 1 failed, 0 skipped$" cat "$work/hung"
check "with what it has printed" 0 "\| ok - it begins$" cat "$work/hung"
check "and its processes" 0 "\| # [0-9]+ S .* sleep 4321 $" cat "$work/hung"
check "after it could clean up" 0 "\| it is cleaned up$" cat "$work/hung"
check "the reason is how far it came" 0 "^    ok - it begins$" why "$work/hung"
check "and where it is" 0 "^    # [0-9]+ S .* sleep 4321 $" why "$work/hung"
gone() { # soon: it was told to end, and dies when it gets a processor
    for _ in $(seq $((HANGS * 10))); do
        grep -lsz '^4321$' /proc/[0-9]*/cmdline || { echo none && return; }
        sleep 0.1
    done
    return 1
}
check "nothing of it is left" 0 "^none$" gone

ended() { # while it runs
    BIGA_BUILD=$work/build scripts/run-tests --e2e "$work/hangs.sh" &
    cat "$work/began"
    kill $!
    wait $!
}
check "who is ended ends what runs" 143 "FAIL  e2e/hangs  \(was not done" ended
check "all of it" 0 "^none$" gone
check "the status of a command is told" 7 "^$" scripts/within 60 \
    sh -c 'echo; exit 7'

# --- those that fail ----------------------------------------------------------

cat >"$work/fails.sh" <<'END'
for i in $(seq 200); do echo "ok - $i"; done
echo "not ok - the middle: exit 1"
echo "# the pod is lost"
for i in $(seq 200); do echo "ok - more $i"; done
exit 1
END
cat >"$work/passes.sh" <<'END'
echo "ok - a text with error: nothing"
END
cat >"$work/unit" <<'END'
#!/bin/sh
tap=${1#--tap=}
echo "not ok - m::two (0.00s)" >"$tap"
echo "[----] tests/unit/m.c:6: Assertion Failed"
echo "[----]   "
echo "[----]   The expression 1 == 3 is false."
echo "[FAIL] m::two: (0.00s)"
exit 1
END
chmod +x "$work/unit"
run --unit "$work/unit" --e2e "$work/fails.sh" "$work/passes.sh" >"$work/failed"
check "a reason before the last lines is shown" 0 "\| # the pod is lost$" \
    cat "$work/failed"
why "$work/failed" >"$work/why"
check "of a check it is what it says" 0 "^    # the pod is lost$" \
    cat "$work/why"
check "of a test in C where it is" 0 "m.c:6: Assertion Failed$" cat "$work/why"
check "which it is" 0 "^    \[FAIL\] m::two" cat "$work/why"
check "nothing of one that has passed" 1 "^0$" grep -c "nothing" "$work/why"
check "in a few lines" 0 "^[0-9]$" grep -c "" "$work/why"

cat >"$work/fuzz_bad" <<'END'
#!/bin/sh
echo "INFO: Seed: 5" >&2
echo "x: x.c:9: Assertion \`n > 0' failed." >&2
echo "SUMMARY: libFuzzer: deadly signal" >&2
echo "Base64: AAEC" >&2
exit 77
END
chmod +x "$work/fuzz_bad"
check "a fuzz target fails" 1 "^FAIL  fuzz/fuzz_bad$" scripts/run-fuzz 1 \
    "$work/fuzz_bad"
cp "$work/out" "$work/failed"
check "for its reason" 0 "^    .*Assertion .n > 0. failed" why "$work/failed"
check "with its input" 0 "^    Base64: AAEC$" why "$work/failed"
printf '%s\n' "a.c:1:2: error: no such x" "make: *** [Makefile:1: a] Error 1" \
    >"$work/make"
check "a build says what is wrong" 0 "^a.c:1:2: error: no such x$" \
    why "$work/make"
seq 30 >"$work/unknown"
check "else there are the last lines" 0 "^30$" why "$work/unknown"
exit $bad
