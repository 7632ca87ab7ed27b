pragma circom 2.1.0;

include "circomlib/circuits/poseidon.circom";

// I know a secret whose commitment is a leaf of the tree with this root. The nullifier lets each leaf act once per
// topic, and says nothing about which leaf it was.
template Merkle(depth) {
    signal input topic;
    signal input secret;
    signal input blinding;
    signal input siblings[depth];
    signal input path[depth]; // 1 where our node is the right child
    signal output root;
    signal output nullifier;

    signal nodes[depth + 1];
    component hash[depth];
    nodes[0] <== Poseidon(2)([secret, blinding]);
    for (var i = 0; i < depth; i++) {
        path[i] * (path[i] - 1) === 0;
        hash[i] = Poseidon(2);
        hash[i].inputs[0] <== nodes[i] + path[i] * (siblings[i] - nodes[i]);
        hash[i].inputs[1] <== siblings[i] + nodes[i] - hash[i].inputs[0];
        nodes[i + 1] <== hash[i].out;
    }
    root <== nodes[depth];
    nullifier <== Poseidon(2)([topic, secret]);
}

component main {public [topic]} = Merkle(2);
