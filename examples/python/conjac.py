"""A method of one's own in forty lines: ConJac's Algorithm 1 (Weidner, Kim, Sueda) on top of limber's parts.

It is compared with limber's own, which is written in C++: bin/python examples/python/conjac.py [PICTURE.png]
"""

import sys

import numpy as np

import limber

BETA, GAMMA, STEPS = 0.5, 1 / 3, 200
SCENE = {
    "limber": 1,
    "name": "conjac",
    "gravity": [0, 0, -9.81],
    "time": {"step": 0.005, "end": 1},
    "method": {"type": "conjac", "time_rule": "linear-implicit", "beta": BETA, "gamma": GAMMA, "dynamic": [{"auto": 4}]},
    "bodies": [{"mesh": {"shape": "bar", "size": [0.14, 0.04, 0.04], "nodes": [15, 5, 5]}, "material": {"young": 2e4}}],
    "constraints": [{"nodes": {"set": "x0"}}],
}


def step(elements, x, v, h, dynamic, held, loads):
    """One step of all nodes, (3n,) each; only those of `dynamic` have unknowns."""
    M = np.repeat(elements.mass, 3)
    _, f, K, _ = elements.assemble(x)                   # line 4: forces and stiffness
    f = f + loads
    c = limber.Condensation(K, dynamic, held)           # line 5: J = [-K_qq^-1 K_qd; I] (Eqs. 6, 7) and S = J'KJ
    correction = c.solve(f)                             # h b_q = K_qq^-1 f_q (Eq. 12)
    A = c.J.T @ (M[:, None] * c.J) + BETA * h**2 * c.S  # line 6: the small system (Eq. 11)
    v_d = np.linalg.solve(A, c.J.T @ (M * v + h * f))
    v = c.J @ v_d                                       # line 7: all velocities (Eq. 1)
    return x + h * v + GAMMA * correction, v            # line 8: positions, stabilised (Eq. 13)


def main(picture=None):
    theirs = limber.Simulation(SCENE)
    elements, h = theirs.elements, theirs.scene.step
    dynamic, held = np.flatnonzero(theirs.fields["dynamic"]), theirs.held
    loads = np.outer(elements.mass, SCENE["gravity"]).ravel()
    tip = theirs.model.node_sets["bar/x1"][0]
    x, v = theirs.x.ravel(), theirs.v.ravel()
    difference, heights = 0.0, []
    for _ in range(STEPS):
        x, v = step(elements, x, v, h, dynamic, held, loads)
        theirs.step()
        difference = max(difference, np.abs(x - theirs.x.ravel()).max() / theirs.model.size)
        heights.append((theirs.t, x[3 * tip + 2], theirs.x[tip, 2]))
    print(f"{STEPS} steps, {len(dynamic)} dynamic nodes of {theirs.nodes}: the tip swings by "
          f"{np.ptp([z for _, z, _ in heights]):.4f} m, and C++ and Python differ by {difference:.1e} of the body's size")
    if picture:
        import matplotlib.pyplot as plt
        t, mine, reference = np.array(heights).T
        figure, axis = plt.subplots(figsize=(6, 3.75), constrained_layout=True)
        axis.plot(t, reference, lw=5, alpha=0.35, label="limber's method")
        axis.plot(t, mine, lw=1.2, label="forty lines of Python")
        axis.set(xlabel="t [s]", ylabel="height of the tip [m]", title=f"ConJac, Algorithm 1 (largest difference {difference:.0e})")
        axis.legend()
        figure.savefig(picture, dpi=100)
    return difference


if __name__ == "__main__":
    main(*sys.argv[1:])
