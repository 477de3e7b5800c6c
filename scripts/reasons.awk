# The words that say why a pod waits or failed are those that docs/cards.md
# explains, and the other way round: awk -f scripts/reasons.awk SOURCE… TEXT…;
# sources end in .c or .h.  In these sources such a word is a text of its own.
function bad(where, text) {
    printf "%s: %s\n", where, text
    failed = 1
}

BEGIN { kinds["ConfigMap"] = kinds["Secret"] = 1 }

FILENAME ~ /\.[ch]$/ {
    for (line = $0; match(line, /"[A-Z][a-z]+([A-Z][a-z]+)*"/);) {
        word = substr(line, RSTART + 1, RLENGTH - 2)
        line = substr(line, RSTART + RLENGTH)
        if (!(word in kinds) && !(word in said))
            said[word] = FILENAME ":" FNR
    }
    next
}

# The first cell of a row explains it; other cells may name some.
/^\|/ {
    cells = split($0, cell, "|")
    for (i = 2; i < cells; i++)
        for (line = cell[i]; match(line, /`[A-Z][a-z]+([A-Z][a-z]+)*`/);) {
            word = substr(line, RSTART + 1, RLENGTH - 2)
            line = substr(line, RSTART + RLENGTH)
            named[word] = FILENAME ":" FNR
            if (i == 2)
                explained[word] = 1
        }
}

END {
    for (word in said)
        if (!(word in explained))
            bad(said[word], "no table explains " word)
    for (word in named)
        if (!(word in said))
            bad(named[word], "nothing says " word)
    exit failed
}
