# Makes one line of each permutation of isolationtester's output: the steps with their answers, "waits" where one is blocked,
# and after "=>" the verdict. At its end come, in brackets, the faults that no expected output excuses.
#
# Each step's SQL is one line; its last statement gives at most one column.

function finish() {
    if (line == "") return
    if (verdict !~ /all is well$/) fault("VIOLATION")
    sub(/;? ?all is well$/, "", verdict)
    print substr(line, 3) told " => " verdict faults
    line = verdict = faults = told = ""
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
    sub(/ since [0-9]+-[0-9]+-.*$/, "")
    if (/deadlock|timeout/) fault("DEADLOCK")
    add("ERROR " $0)
    next
}

# When a NOTIFY is seen depends on the network, so only that it came is told.
/^[a-z_0-9]+: NOTIFY / {
    gsub(/"/, "")
    if (!index(told, $1 " told of " $3)) told = told "; " $1 " told of " $3
    next
}

# A result: the column's name, dashes, the rows, how many.
/^-+(\+-+)*$/ { in_rows = 1; if (header ~ /^verdict *$/) at = "verdict"; next }
in_rows && /^\([0-9]+ rows?\)$/ { in_rows = 0; next }
in_rows { gsub(/^ +| +$/, ""); if ($0 != "") add($0); next }
{ header = $0 }

END { finish() }
