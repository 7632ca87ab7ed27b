pragma circom 2.1.0;

include "circomlib/circuits/bitify.circom";

// Each of my values lies between the public bounds, and this is their sum.
template Range(values, bits) {
    signal input low;
    signal input high;
    signal input value[values];
    signal output sum;

    var total = 0;
    for (var i = 0; i < values; i++) {
        _ <== Num2Bits(bits)(value[i] - low);
        _ <== Num2Bits(bits)(high - value[i]);
        total += value[i];
    }
    sum <== total;
}

component main {public [low, high]} = Range(3, 32);
