# Makes one line of each permutation of isolationtester's output: the steps with their answers, "waits" where one is blocked,
# and after "=>" the verdict. At its end come, in brackets, the faults that no expected output excuses.
#
# Each step's SQL is one line; its last statement gives at most one column.

function finish() {
    if (line == "") return
    if (verdict !~ /all is well$/) fault("VIOLATION")
    sub(/;? ?all is well$/, "", verdict)
    print substr(line, 3) " => " verdict faults
    line = verdict = faults = ""
}

function fault(what) { if (!index(faults, "[" what "]")) faults = faults " [" what "]" }

function add(text) {
    if (at == "verdict") verdict = verdict (verdict == "" ? "" : "; ") text
    else if (at == "step") line = line (answered++ ? ", " : ": ") text
}

/^starting permutation: / { finish(); at = "setup"; next }

/^step [a-z_0-9]+: / {
    name = substr($2, 1, length($2) - 1)
    at = "step"
    answered = 0
    line = line "; " name
    if (/<waiting \.\.\.>$/) {
        line = line " waits"
        # These skip what is locked; a step whose name says so has a reason.
        if (/claim|heartbeat|wake_due|finalize|wanted/ && name !~ /_(stops|may_wait)$/) fault("WAITED FOR A LOCK")
    } else if (/<\.\.\. completed>$/) {
        line = line " goes on"
    }
    next
}

/^ERROR: / {
    sub(/^ERROR: +/, "")
    if (/deadlock|timeout/) fault("DEADLOCK")
    add("ERROR " $0)
    next
}

/^[a-z_0-9]+: NOTIFY / {
    add("[" $3 " told" ($6 == "\"\"" ? "" : " " substr($6, 2, length($6) - 2)) "]")
    next
}

# A result: the column's name, dashes, the rows, how many.
/^-+(\+-+)*$/ { in_rows = 1; if (header ~ /^verdict *$/) at = "verdict"; next }
in_rows && /^\([0-9]+ rows?\)$/ { in_rows = 0; next }
in_rows { gsub(/^ +| +$/, ""); if ($0 != "") add($0); next }
{ header = $0 }

END { finish() }
