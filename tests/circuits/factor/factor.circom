pragma circom 2.1.0;

include "circomlib/circuits/bitify.circom";

// I know two factors of n, neither of them 1. Nothing is public: the statement is the circuit itself (nPublic = 0).
template Factor(n) {
    signal input p;
    signal input q;
    signal minus[2];

    _ <== Num2Bits(16)(p);
    _ <== Num2Bits(16)(q);
    minus[0] <-- 1 / (p - 1);
    minus[1] <-- 1 / (q - 1);
    (p - 1) * minus[0] === 1;
    (q - 1) * minus[1] === 1;
    p * q === n;
}

component main = Factor(3275984479); // 65521 * 49999
