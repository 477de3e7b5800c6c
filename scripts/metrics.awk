# Metrics that documents and alerts name are those of the program, with its
# labels, and docs/metrics.md has all of them:
# awk -f scripts/metrics.awk SOURCE… TEXT…; sources end in .c.
function bad(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    failed = 1
}

BEGIN { any["instance"] = any["job"] = 1 } # Prometheus' own

FNR == 1 { family = "" }

# FAMILY(GAUGE, "biga_x", "What it is.", "label", "label")
FILENAME ~ /\.c$/ {
    line = $0
    if (match(line, /"biga_[a-z_]+"/)) {
        family = substr(line, RSTART + 1, RLENGTH - 2)
        known[family] = 1
        if (line ~ /(DURATION|WAIT), "biga_/)
            known[family "_bucket"] = known[family "_sum"] = \
                known[family "_count"] = family
    }
    while (family != "" && match(line, /"[a-z]+"/)) {
        name = substr(line, RSTART + 1, RLENGTH - 2)
        labels[family, name] = any[name] = 1
        line = substr(line, RSTART + RLENGTH)
    }
    next
}

{
    for (line = $0; match(line, /(^|[^A-Za-z_])biga_[a-z_]+/);) {
        name = substr(line, RSTART, RLENGTH)
        sub(/^[^b]/, "", name)
        line = substr(line, RSTART + RLENGTH)
        if (!(name in known)) {
            bad("there is no metric " name)
            continue
        }
        n_named++
        family = known[name] == 1 ? name : known[name]
        if (FILENAME == "docs/metrics.md")
            told[family] = 1
        if (!match(line, /^\{[^}]*\}/))
            continue
        n = split(substr(line, 2, RLENGTH - 2), list, ",")
        for (i = 1; i <= n; i++) {
            sub(/[ =!~].*/, "", list[i])
            if (!((family, list[i]) in labels))
                bad(name " has no label " list[i])
        }
    }
    for (line = $0; match(line, /\$labels\.[a-z]+/);) {
        name = substr(line, RSTART + 8, RLENGTH - 8)
        line = substr(line, RSTART + RLENGTH)
        if (!(name in any))
            bad("no metric has a label " name)
    }
}

END {
    for (family in known)
        if (known[family] == 1 && !(family in told))
            bad("docs/metrics.md does not tell of " family)
    if (n_named == 0)
        bad("the texts name no metric")
    exit failed
}
