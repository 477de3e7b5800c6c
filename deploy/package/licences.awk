# The licences that a machine-readable copyright file of Debian names (DEP 5),
# as an expression of SPDX.  licences(PACKAGE, FILE) returns it, "NOASSERTION"
# where FILE is for people alone.  A name that SPDX does not have becomes a
# LicenseRef; `refs` lists them in order, and licence_text() has their words.

function known_licences(    i, n, words, ends) {
    n = split("Expat MIT MIT MIT ISC ISC Zlib Zlib zlib Zlib X11 X11 " \
        "curl curl BSD-2-clause BSD-2-Clause BSD-3-clause BSD-3-Clause " \
        "BSD-4-clause BSD-4-Clause BSD-2-Clause BSD-2-Clause " \
        "BSD-3-Clause BSD-3-Clause BSD-4-Clause BSD-4-Clause 0BSD 0BSD Apache-2.0 Apache-2.0 Apache-2 Apache-2.0 " \
        "MPL-1.1 MPL-1.1 MPL-2.0 MPL-2.0 CC0-1.0 CC0-1.0 CC0 CC0-1.0 " \
        "BSL-1.0 BSL-1.0 Unlicense Unlicense OpenSSL OpenSSL " \
        "GPL-1 GPL-1.0 GPL-2 GPL-2.0 GPL-2.0 GPL-2.0 GPL-3 GPL-3.0 " \
        "GPL-3.0 GPL-3.0 LGPL-2 LGPL-2.0 LGPL-2.0 LGPL-2.0 " \
        "LGPL-2.1 LGPL-2.1 LGPL-3 LGPL-3.0 LGPL-3.0 LGPL-3.0 " \
        "GFDL-1.3 GFDL-1.3 AGPL-3 AGPL-3.0", words, " ")
    for (i = 1; i < n; i += 2) {
        if (words[i] ~ /^[AL]?GPL|^GFDL/) {
            # SPDX says of each of these which versions it means
            spdx[words[i]] = words[i + 1] "-only"
            spdx[words[i] "+"] = words[i + 1] "-or-later"
        } else {
            spdx[words[i]] = words[i + 1]
        }
    }
}

function licence_ref(package, name,    ref) {
    ref = name
    gsub(/[^A-Za-z0-9.]+/, "-", ref)
    sub(/-$/, "", ref)
    ref = "LicenseRef-" package "-" ref
    if (!(ref in ref_names)) {
        refs[++n_refs] = ref
        ref_names[ref] = name
        ref_packages[ref] = package
    }
    return ref
}

# one of "A", "A or B", "A and B", "A or B, and C"
function expression(package, text,    words, n, i, out, name, spdx_name, open) {
    if (text ~ /[^ ] +with +[^ ]/ || text ~ /and\/or/)
        return licence_ref(package, text)
    gsub(/, *(and|or)/, " , &", text)
    gsub(/ , , */, " , ", text)
    n = split(text, words, /[ \t]+/)
    open = (text ~ / , /)
    out = open ? "(" : ""
    for (i = 1; i <= n; i++) {
        name = words[i]
        if (name == "")
            continue
        if (name == ",") {
            out = out ")"
            open = 2
        } else if (tolower(name) == "and" || tolower(name) == "or") {
            out = out " " toupper(name) " "
            if (open == 2) {
                out = out "("
                open = 1
            }
        } else {
            spdx_name = (name in spdx) ? spdx[name] : licence_ref(package, name)
            if (out ~ /[A-Za-z0-9.+]$/ && out !~ / (AND|OR) $/)
                return licence_ref(package, text) # two names with no word
            out = out spdx_name
        }
    }
    if (open)
        out = out ")"
    return out
}

function licences(package, file,    line, machine, of_files, name, ref, key, n, i, out, all, seen) {
    out = ""
    while ((getline line <file) > 0) {
        if (!machine && line ~ /^[ \t]*$/)
            continue
        if (!machine) {
            if (line !~ /^Format(-Specification)?:.*(copyright-format|DEP|dep5)/)
                break
            machine = 1
        }
        if (line ~ /^[ \t]*$/) {
            of_files = 0
            key = ""
        } else if (line ~ /^Files:/) {
            of_files = 1
        } else if (line ~ /^License:/) {
            name = line
            sub(/^License:[ \t]*/, "", name)
            sub(/[ \t]+$/, "", name)
            key = package SUBSEP name
            if (of_files && name != "" && !(name in seen)) {
                seen[name] = 1
                all[++n] = name
            }
            of_texts[key] = of_texts[key] ""
        } else if (line ~ /^[^ \t]/) {
            key = ""
        } else if (key != "") {
            sub(/^ /, "", line)
            of_texts[key] = of_texts[key] (line == "." ? "" : line) "\n"
        }
    }
    close(file)
    if (!n)
        return "NOASSERTION"
    for (i = 1; i <= n; i++) {
        name = expression(package, all[i])
        if (n > 1 && name ~ / OR / && name !~ /^\([^()]*\)$/)
            name = "(" name ")"
        if (!(("is", name) in seen)) {
            seen["is", name] = 1
            out = out (out == "" ? "" : " AND ") name
        }
    }
    return out
}

# what the file says of a name that SPDX does not have
function licence_text(ref, package,    text) {
    text = of_texts[package SUBSEP ref_names[ref]]
    if (text == "")
        text = ref_names[ref] ": see /usr/share/doc/" package "/copyright\n"
    return text
}
