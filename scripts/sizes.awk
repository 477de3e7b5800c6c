# What stands out in size: prints what passes the limits we aim for, fails on
# what passes the hard ones.  Knows the form of our code: a function's brace
# stands alone in column 1, and so does its closing brace.
#
#               aim     hard
#   function     60      100 lines
#   file        600      800 lines
#   header      150      300 lines
#   parameters    5        8 (what libmicrohttpd hands to a callback)
#   columns      80      100
function note(hard, line, text) {
    printf "%s%s:%d: %s\n", (hard ? "" : "  note: "), FILENAME, line, text
    if (hard)
        bad = 1
}
function file_done() {
    if (name == "")
        return
    limit = name ~ /\.h$/ ? 150 : 600
    top = name ~ /\.h$/ ? 300 : 800
    if (lines > limit) {
        printf "%s%s: has %d lines, the limit is %d\n",
            (lines > top ? "" : "  note: "), name, lines, limit
        if (lines > top)
            bad = 1
    }
}
# parameters of the head collected so far: commas outside inner parentheses;
# the error that every fallible function takes last does not count
function parameters(text,    i, c, depth, n) {
    i = index(text, "(")
    if (i == 0)
        return 0
    n = 1
    for (; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "(")
            depth++
        else if (c == ")" && --depth == 0)
            return n - (text ~ /struct error \*err\)$/)
        else if (c == "," && depth == 1)
            n++
    }
    return n
}
FNR == 1 {
    file_done()
    name = FILENAME
    head = ""
    start = 0
}
{
    lines = FNR
    text = $0
    gsub(/[\200-\277]/, "", text) # columns, not bytes
    if (length(text) > 100)
        note(1, FNR, "has " length(text) " columns, the limit is 100")
    else if (length(text) > 80)
        wide++
}
/^{/ {
    start = FNR
    n = parameters(head)
    if (n > 5)
        note(n > 8, FNR, "function with " n " parameters, the limit is 5")
    next
}
/^}/ {
    size = FNR - start - 1
    if (start > 0 && size > 60)
        note(size > 100, start,
             "function of " size " lines, the limit is 60")
    start = 0
    head = ""
    next
}
/^[ \t]*$/ || /;[ \t]*$/ || /^#/ || /\*\/[ \t]*$/ { head = ""; next }
start == 0 { head = head " " $0 }
END {
    file_done()
    if (wide > 0)
        printf "  note: %d lines have more than 80 columns\n", wide
    exit bad
}
