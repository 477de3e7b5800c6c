# What stands out in size: prints what passes the limits we aim for, fails on
# what passes the hard ones.  Knows the form of our code: a function's brace
# stands alone in column 1, and so does its closing brace.
#
#               aim     hard
#   function     60       60 lines
#   file        600      800 lines
#   header      150      300 lines
#   parameters    5        8 (what libmicrohttpd hands to a callback)
#   columns      80      100
#   folder       30       40 files
#
# Of the functions and headers of the product it prints the median and what
# nine of ten keep within.
function note(hard, line, text) {
    printf "%s%s:%d: %s\n", (hard ? "" : "  note: "), FILENAME, line, text
    if (hard)
        bad = 1
}
function file_done() {
    if (name == "")
        return
    folder = name
    sub(/\/[^\/]*$/, "", folder)
    files[folder]++
    if (name ~ /\.h$/ && name !~ /^(tests|bench)\//)
        headers[++n_headers] = lines
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
        note(1, start, "function of " size " lines, the limit is 60")
    if (start > 0 && FILENAME !~ /^(tests|bench)\//)
        functions[++n_functions] = size
    start = 0
    head = ""
    next
}
/^[ \t]*$/ || /;[ \t]*$/ || /^#/ || /\*\/[ \t]*$/ { head = ""; next }
start == 0 { head = head " " $0 }
# the value that `share` of the n values keep within
function within(values, n, share,    i, size, seen) {
    for (size = 0; size < 10000; size++) {
        for (i = 1; i <= n; i++)
            seen += values[i] == size
        if (seen >= n * share)
            return size
    }
}
END {
    file_done()
    for (folder in files)
        if (files[folder] > 30) {
            printf "%s%s: has %d files, the limit is 40\n",
                (files[folder] > 40 ? "" : "  note: "), folder, files[folder]
            if (files[folder] > 40)
                bad = 1
        }
    printf "  note: %d functions, median %d lines, nine of ten within %d\n",
        n_functions, within(functions, n_functions, 0.5),
        within(functions, n_functions, 0.9)
    printf "  note: %d headers, median %d lines, nine of ten within %d\n",
        n_headers, within(headers, n_headers, 0.5),
        within(headers, n_headers, 0.9)
    if (wide > 0)
        printf "  note: %d lines have more than 80 columns\n", wide
    exit bad
}
