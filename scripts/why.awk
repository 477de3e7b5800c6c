# Why tests have failed, in a few lines of each: of what a test, run-tests,
# run-fuzz, lint or make has printed.  Where nothing in it is known to say why,
# its last lines.
#
#   awk [-v lines=N] -f scripts/why.awk LOG

function say(line) {
    if (left-- > 0) print indent substr(line, 1, 200)
    said++
}
function begin() {
    said = follow = n = 0
    tap = ""
    left = lines
}
function finish(   i) {
    if (failed && !said)
        for (i = n > 5 ? n - 4 : 1; i <= n; i++) say(last[i % 5])
    begin()
}

BEGIN {
    if (!lines) lines = 12
    failed = 1 # until a line says which tests have, all is of one that has
    begin()
}
/^(PASS|SKIP|FAIL)  [a-z0-9]+\// {
    if (!runner++) begin()
    finish()
    failed = /^FAIL/
    indent = ""
    if (failed) print
    indent = "    "
    next
}
/^[0-9]+ passed, [0-9]+ failed|^slowest: |^failed: / { next }
!failed { next }
{ sub(/^    \| /, "") }
$0 != "" { last[++n % 5] = $0 }
/^ok/ { tap = $0 }
# TAP: what failed, and what it says about that
/^not ok/ { say($0); follow = 4; next }
follow > 0 && /^# / { follow--; say($0); next }
{ follow = 0 }
/^# not done after/ {
    if (tap != "") say(tap)
    say($0); follow = 8; next
}
# Criterion
/^\[(----|FAIL|CRASH|ERR )\] *[^ ]/ { say($0); next }
# what ends a program, and what a compiler says
/Assertion .* failed|runtime error:|ERROR: libFuzzer/ { say($0); next }
/(ERROR|WARNING|SUMMARY): [A-Za-z]+Sanitizer/ { say($0); next }
/^Base64: / { print indent substr($0, 1, 2000); next } # the input itself
/^[^ ]+:[0-9]+:[0-9]+: (fatal )?error: |undefined reference/ { say($0); next }
/^make.*: \*\*\* / { say($0); next }
END { finish() }
