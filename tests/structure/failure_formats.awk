# The formats of all calls of a function in C files, each on a line: conversions are "…", and
# literals that stand beside each other are one. -v call='eg_fail[(]': an expression for the call
# and what may stand in it before the format
function literal_end(s, i) { # i at the opening quote: the place behind the closing one
    for (i++; substr(s, i, 1) != "\""; i++)
        if (substr(s, i, 1) == "\\") i++
    return i + 1
}
function show(text) {
    gsub(/%%/, "\001", text)
    gsub(/%[-+ #0]*([0-9]+|[*])?([.]([0-9]+|[*]))?(hh|h|ll|l|z|j|t)?[a-zA-Z]/, "…", text)
    gsub(/\001/, "%", text)
    gsub(/\\n/, " ", text)
    gsub(/\\"/, "\"", text)
    if (text ~ /[a-zA-Z]/) print text
}
function formats(s,    at, depth, c, text, any, end) {
    while (match(s, "(^|[^A-Za-z_])" call) > 0) {
        s = substr(s, RSTART + RLENGTH)
        depth = 1; text = ""; any = 0
        for (at = 1; depth > 0 && at <= length(s); at++) {
            c = substr(s, at, 1)
            if (c == "\"") {
                end = literal_end(s, at)
                text = text substr(s, at + 1, end - at - 2)
                at = end - 1
                any = 1
            } else if (substr(s, at, 3) == "PRI") {
                sub(/%$/, "…", text)
                at += 5
            } else if (c == "'") {
                at += substr(s, at + 1, 1) == "\\" ? 3 : 2
            } else if (c == "(") depth++
            else if (c == ")") depth--
            else if (c == "," && any) break
        }
        if (any) show(text)
    }
}
{ all = all $0 "\n" }
END { formats(all) }
