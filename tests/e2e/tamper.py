#!/usr/bin/env python3
"""Makes false proofs out of a true one: tamper.py PROOF.json PUBLIC.json OUT

Writes OUT/NAME.proof.json and OUT/NAME.public.json, each pair wrong in one way; a verifier must refuse them all.
Points outside the subgroup are found by taking roots of the curve equation at small x (both fields have q = 3 mod 4).
"""
import copy
import json
import sys

CURVES = {
    "bn128": dict(
        q=21888242871839275222246405745257275088696311157297823662689037894645226208583,
        r=21888242871839275222246405745257275088548364400416034343698204186575808495617,
        xi=(9, 1), b=3, divide=True, cofactor1=False),
    "bls12381": dict(
        q=int("1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab", 16),
        r=int("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 16),
        xi=(1, 1), b=4, divide=False, cofactor1=True),
}


class Fq2:
    """a + b u with u^2 = -1, as pairs."""

    def __init__(self, q):
        self.q = q

    def mul(self, x, y):
        return ((x[0] * y[0] - x[1] * y[1]) % self.q, (x[0] * y[1] + x[1] * y[0]) % self.q)

    def add(self, x, y):
        return ((x[0] + y[0]) % self.q, (x[1] + y[1]) % self.q)

    def invert(self, x):
        n = pow(x[0] * x[0] + x[1] * x[1], -1, self.q)
        return (x[0] * n % self.q, -x[1] * n % self.q)

    def root(self, x):
        """The complex method; None when x is no square."""
        n = fq_root(x[0] * x[0] + x[1] * x[1], self.q)
        if n is None:
            return None
        for sign in (n, -n):
            real = fq_root((x[0] + sign) * pow(2, -1, self.q), self.q)
            if real:
                root = (real, x[1] * pow(2 * real, -1, self.q) % self.q)
                if self.mul(root, root) == (x[0] % self.q, x[1] % self.q):
                    return root
        return None


def fq_root(x, q):
    root = pow(x % q, (q + 1) // 4, q)
    return root if root * root % q == x % q else None


def on_g1(curve):
    """Some point of the curve; for a large cofactor it is not in the subgroup, but for luck of 1 in 2^125."""
    x = 1
    while fq_root(x**3 + curve["b"], curve["q"]) is None:
        x += 1
    return [str(x), str(fq_root(x**3 + curve["b"], curve["q"])), "1"]


def on_g2(curve):
    f = Fq2(curve["q"])
    b = (curve["b"], 0)
    b = f.mul(b, f.invert(curve["xi"])) if curve["divide"] else f.mul(b, curve["xi"])
    x = (1, 1)
    while f.root(f.add(f.mul(f.mul(x, x), x), b)) is None:
        x = (x[0] + 1, 1)
    y = f.root(f.add(f.mul(f.mul(x, x), x), b))
    return [[str(x[0]), str(x[1])], [str(y[0]), str(y[1])], ["1", "0"]]


COORDINATES = [("pi_a", 0), ("pi_a", 1), ("pi_b", 0, 0), ("pi_b", 0, 1), ("pi_b", 1, 0), ("pi_b", 1, 1),
               ("pi_c", 0), ("pi_c", 1)]


def changed(proof, path, change):
    proof = copy.deepcopy(proof)
    at = proof
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = str(change(int(at[path[-1]])))
    return proof


def false_proofs(proof, curve):
    q = curve["q"]
    for path in COORDINATES:
        name = "-".join(map(str, path))
        yield "bit-" + name, changed(proof, path, lambda v: v ^ 1)
        yield "alias-" + name, changed(proof, path, lambda v: v + q)
    yield "negated-pi_a", changed(proof, ("pi_a", 1), lambda v: q - v)
    yield "negated-pi_c", changed(proof, ("pi_c", 1), lambda v: q - v)
    yield "swapped-pi_a-pi_c", {**proof, "pi_a": proof["pi_c"], "pi_c": proof["pi_a"]}
    for point in ("pi_a", "pi_c"):
        yield "infinity-" + point, {**proof, point: ["0", "1", "0"]}
    yield "infinity-pi_b", {**proof, "pi_b": [["0", "0"], ["1", "0"], ["0", "0"]]}
    yield "subgroup-pi_b", {**proof, "pi_b": on_g2(curve)}
    if curve["cofactor1"]:
        yield "subgroup-pi_a", {**proof, "pi_a": on_g1(curve)}
        yield "subgroup-pi_c", {**proof, "pi_c": on_g1(curve)}


def false_publics(publics, curve):
    for i, value in enumerate(publics):
        yield f"public-{i}-plus-1", publics[:i] + [str((int(value) + 1) % curve["r"])] + publics[i + 1:]
        yield f"public-{i}-plus-r", publics[:i] + [str(int(value) + curve["r"])] + publics[i + 1:]
    yield "public-one-more", publics + ["0"]
    if publics:
        yield "public-one-less", publics[:-1]


def main():
    proof, publics = (json.load(open(path)) for path in sys.argv[1:3])
    curve = CURVES[proof["curve"]]
    cases = [(name, wrong, publics) for name, wrong in false_proofs(proof, curve)]
    cases += [(name, proof, wrong) for name, wrong in false_publics(publics, curve)]
    for name, wrong_proof, wrong_publics in cases:
        json.dump(wrong_proof, open(f"{sys.argv[3]}/{name}.proof.json", "w"))
        json.dump(wrong_publics, open(f"{sys.argv[3]}/{name}.public.json", "w"))


main()
