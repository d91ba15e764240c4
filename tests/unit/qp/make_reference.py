#!/usr/bin/python3
"""Writes data/box_qp.txt: box QPs solved by cvxopt (Debian: python3-cvxopt), the independent solver that
box_qp_test.cpp compares with. The problems come from a small generator that both sides share, so that only
sizes, seeds and solutions are stored."""
import os
from cvxopt import matrix, solvers


class Lcg:
    """x <- 1664525 x + 1013904223 mod 2^32; numbers in [-1, 1)."""
    def __init__(self, seed):
        self.x = seed

    def __call__(self):
        self.x = (1664525 * self.x + 1013904223) % 2**32
        return self.x / 2**31 - 1.0


def problem(n, rank, seed):
    r = Lcg(seed)
    B = [[r() for _ in range(n)] for _ in range(rank)]
    H = [[sum(B[k][i] * B[k][j] for k in range(rank)) + (0.01 if i == j else 0.0) for j in range(n)] for i in range(n)]
    g = [r() for _ in range(n)]
    lo, hi = [], []
    for i in range(n):
        kind = i % 4  # two-sided, one-sided [0, inf), free (an equality's multiplier), narrow
        a, b = abs(r()), abs(r())
        lo.append({0: -a, 1: 0.0, 2: None, 3: -0.1 * a}[kind])
        hi.append({0: b, 1: None, 2: None, 3: 0.1 * b}[kind])
    return H, g, lo, hi


def solve(n, rank, seed):
    H, g, lo, hi = problem(n, rank, seed)
    rows, rhs = [], []
    for i in range(n):
        if lo[i] is not None:
            rows.append([-1.0 if j == i else 0.0 for j in range(n)])
            rhs.append(-lo[i])
        if hi[i] is not None:
            rows.append([1.0 if j == i else 0.0 for j in range(n)])
            rhs.append(hi[i])
    G = matrix([[row[j] for row in rows] for j in range(n)])
    solvers.options.update(show_progress=False, abstol=1e-13, reltol=1e-13, feastol=1e-13, maxiters=200)
    s = solvers.qp(matrix([[H[i][j] for i in range(n)] for j in range(n)]), matrix(g), G, matrix(rhs))
    return list(s['x']), s['primal objective']


here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, 'data', 'box_qp.txt'), 'w') as out:
    out.write('# n rank seed objective x... (make_reference.py, cvxopt)\n')
    for n, rank, seed in [(4, 4, 1), (12, 12, 2), (30, 30, 3), (30, 10, 4), (60, 60, 5), (60, 20, 6)]:
        x, objective = solve(n, rank, seed)
        out.write(f'{n} {rank} {seed} {objective:.12g} ' + ' '.join(f'{v:.10g}' for v in x) + '\n')
