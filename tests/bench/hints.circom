pragma circom 2.0.0;

// Few constraints, each with a hint that takes long to find, as a square root or an inverse does: its witness takes longer than
// its proof.
template Hints(constraints, steps) {
    signal input seed;
    signal output out;
    signal hint[constraints];
    signal x[constraints + 1];
    x[0] <== seed;
    for (var i = 0; i < constraints; i++) {
        var y = x[i];
        for (var j = 0; j < steps; j++) {
            y = y * y + j;
        }
        hint[i] <-- y;
        x[i + 1] <== x[i] * hint[i];
    }
    out <== x[constraints];
}

component main = Hints(1000, 400);
