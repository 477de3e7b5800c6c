# The words that say why a pod waits or failed are those that docs/cards.md
# explains, and the other way round: awk -f scripts/reasons.awk SOURCE… TEXT…;
# sources end in .c or .h.  In these sources such a word is a text of its own.
function bad(where, text) {
    printf "%s: %s\n", where, text
    failed = 1
}

BEGIN {
    kinds["ConfigMap"] = kinds["Secret"] = 1
    kinds["StartError"] = 1 # containerd's, read and not told
}

FILENAME ~ /\.[ch]$/ {
    for (line = $0; match(line, /"[A-Z][a-z]+([A-Z][a-z]+)*"/);) {
        word = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        if (!(word in kinds) && !(word in said))
            said[word] = FILENAME ":" FNR
    }
    next
}

# The first cell of a row explains it.
/^\|/ {
    split($0, cell, "|")
    for (line = cell[2]; match(line, /`[A-Z][a-z]+([A-Z][a-z]+)*`/);) {
        word = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        explained[word] = FILENAME ":" FNR
    }
}

END {
    for (word in said)
        if (!(word in explained))
            bad(said[word], "no table explains " word)
    for (word in explained)
        if (!(word in said))
            bad(explained[word], "nothing says " word)
    exit failed
}
