"""The parts by themselves, against what they must be: derivatives, other solvers, theory, the C++ methods."""

import runpy

import numpy as np
import pytest

import limber
from conftest import ROOT

sparse = pytest.importorskip("scipy.sparse")
import scipy.linalg  # noqa: E402
import scipy.sparse.linalg  # noqa: E402

RNG = np.random.default_rng(7)


def bent(mesh):
    x = mesh.vertices.copy()
    x[:, 1] += 0.5 * x[:, 0] ** 2
    return x + 0.003 * RNG.standard_normal(x.shape)


@pytest.fixture
def mesh():
    return limber.Mesh.box(size=(0.3, 0.1, 0.1), nodes=(7, 3, 3))


@pytest.mark.parametrize("model", ["stable-neo-hookean", "corotational", "fixed-corotated", "arap", "st-venant-kirchhoff"])
def test_force_and_stiffness_are_derivatives(mesh, model):
    elements = limber.Elements(mesh, model=model, young=1e5 * (1 + RNG.random(len(mesh.cells))), poisson=0.3)
    x, d = bent(mesh), RNG.standard_normal(mesh.vertices.shape)
    e = 1e-6
    slope = (elements.energy(x + e * d) - elements.energy(x - e * d)) / (2 * e)
    assert -np.sum(elements.force(x) * d) == pytest.approx(slope, rel=1e-6)
    K = elements.stiffness(x, projected=False)
    change = (elements.force(x - e * d) - elements.force(x + e * d)) / (2 * e)
    assert (K @ d.ravel()).reshape(d.shape) == pytest.approx(change, rel=1e-5, abs=1e-5 * np.abs(change).max())
    assert np.allclose(elements.stiffness_times(x, d, projected=False).ravel(), K @ d.ravel(), rtol=1e-11, atol=1e-9)
    P = elements.stiffness(x).toarray()
    assert np.allclose(P, P.T) and np.linalg.eigvalsh(P).min() > -1e-9 * np.abs(P).max()
    assert K.has_canonical_format and K.indices.dtype == np.int32


def test_elements_know_their_sizes(mesh):
    elements = limber.Elements(mesh, density=500)
    assert len(elements) == len(mesh.cells) and elements.nodes == len(mesh.vertices)
    assert elements.volume.sum() == pytest.approx(0.003) and elements.mass.sum() == pytest.approx(1.5)
    A = np.array([[1.2, 0.1, 0], [0, 0.9, 0], [0, 0.2, 1.0]])
    assert np.allclose(elements.deformation_gradients(mesh.vertices @ A.T), A)
    psi = limber.Material(young=1e5).psi(A)
    assert elements.energy_densities(mesh.vertices @ A.T) == pytest.approx(np.full(len(elements), psi))
    with pytest.raises(limber.UsageError, match="young"):
        limber.Elements(mesh, young=np.ones(3))
    with pytest.raises(limber.SceneError, match="young|Young"):
        limber.Elements(mesh, young=-1.0)
    with pytest.raises(limber.UsageError, match="shape"):
        elements.energy(np.zeros((4, 3)))


def test_plane_triangles_and_cloth():
    sheet = limber.Mesh.rectangle(size=(1, 1), nodes=(4, 4))
    plane, cloth = limber.Elements(sheet, thickness=0.1), limber.Elements(sheet, thickness=0.1, kind="cloth")
    assert plane.volume.sum() == pytest.approx(0.1)
    turned = sheet.vertices @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]).T
    assert cloth.energy(turned) == pytest.approx(0, abs=1e-9)
    assert cloth.energy(1.1 * turned) > 1


def test_material_with_fibres():
    F = np.eye(3) + 0.1 * RNG.standard_normal((3, 3))
    for fibre in (None, {"model": "fung", "stiffness": 3e4, "direction": [1, 2, 0]}):
        m = limber.Material("stable-neo-hookean", young=1e5, poisson=0.4, fibre=fibre)
        P, H = m.pk1(F, 0.1), m.dpk1(F, 0.1)
        for k in range(9):
            d = np.zeros(9)
            d[k] = 1e-6
            D = d.reshape(3, 3, order="F")
            assert (m.psi(F + D, 0.1) - m.psi(F - D, 0.1)) / 2e-6 == pytest.approx(P.ravel(order="F")[k], rel=1e-5, abs=1e-2)
            column = (m.pk1(F + D, 0.1) - m.pk1(F - D, 0.1)).ravel(order="F") / 2e-6
            assert column == pytest.approx(H[:, k], rel=1e-4, abs=1)
        assert np.linalg.eigvalsh(m.dpk1(F, 0.1, projected=True)).min() > -1e-6
    with pytest.raises(limber.SceneError, match="stable-neo-hookean"):
        limber.Material("jelly")


@pytest.mark.parametrize("n", [1, 2, 3, 50, 301])
def test_cholesky_of_any_size(n):
    A = sparse.random(n, n, 0.05, random_state=3, format="csr")
    A = (A @ A.T + sparse.identity(n)).tocsr()
    factor = limber.Cholesky(A)
    B = RNG.standard_normal((n, 4))
    assert np.allclose(A @ factor.solve(B), B, atol=1e-9) and np.allclose(A @ factor.solve(B[:, 0]), B[:, 0], atol=1e-9)
    assert np.allclose(factor.factor(3 * A).solve(B), np.linalg.solve(3 * A.toarray(), B))
    assert factor.stats["factorizations"] == 2 and factor.stats["analyses"] == 1


def test_cholesky_refuses_what_it_cannot_factor():
    A = sparse.diags([1.0, 2.0, -3.0, 4.0]).tocsr()
    with pytest.raises(limber.SimulationError) as caught:
        limber.Cholesky(A)
    assert caught.value.place == "row 2"
    good = limber.Cholesky(abs(A))
    with pytest.raises(limber.UsageError, match="other places"):
        good.factor(sparse.csr_matrix(np.full((4, 4), 1.0) + 4 * np.eye(4)))
    with pytest.raises(limber.UsageError, match="shape"):
        good.solve(np.ones(5))
    with pytest.raises(limber.UsageError, match="symmetric"):
        limber.Cholesky(sparse.csr_matrix(np.ones((2, 3))))


def test_condensation_is_its_definition(mesh):
    elements = limber.Elements(mesh)
    x = bent(mesh)
    K = elements.stiffness(x)
    held = np.zeros((len(x), 3), bool)
    held[mesh.node_sets["x0"]] = True
    dynamic = [30, 41, 62]
    d = np.array([3 * i + k for i in dynamic for k in range(3)])
    q = np.setdiff1d(np.flatnonzero(~held.ravel()), d)
    c = limber.Condensation(K, dynamic, held)
    A = K.toarray()
    J = np.zeros((A.shape[0], len(d)))
    J[q] = -np.linalg.solve(A[np.ix_(q, q)], A[np.ix_(q, d)])
    J[d] = np.eye(len(d))
    assert np.array_equal(c.dofs, d) and np.allclose(c.J, J, rtol=0, atol=1e-10)
    assert np.allclose(c.S, J.T @ A @ J, rtol=1e-9, atol=1e-9 * np.abs(c.S).max())
    b = RNG.standard_normal(A.shape[0])
    expected = np.zeros_like(b)
    expected[q] = np.linalg.solve(A[np.ix_(q, q)], b[q])
    assert np.allclose(c.solve(b), expected, rtol=1e-8, atol=1e-12)
    assert c.solve(b.reshape(-1, 3)).shape == x.shape


def test_condensation_of_a_free_body_keeps_its_rigid_motions(mesh):
    c = limber.Condensation(limber.Elements(mesh).stiffness(mesh.vertices), [0, 20, 40, 62])
    for axis in np.eye(3):
        moved = np.tile(axis, len(mesh.vertices)), np.cross(axis, mesh.vertices).ravel()
        for v in moved:
            assert c.J @ v[c.dofs] == pytest.approx(v, abs=1e-9)


def test_eigenmodes(mesh):
    elements = limber.Elements(mesh)
    held = np.zeros((len(mesh.vertices), 3), bool)
    held[mesh.node_sets["x0"]] = True
    free = np.flatnonzero(~held.ravel())
    modes = limber.eigenmodes(elements, 10, mesh.vertices, held)
    K = elements.stiffness(mesh.vertices).toarray()[np.ix_(free, free)]
    M = np.diag(np.repeat(elements.mass, 3)[free])
    values = scipy.linalg.eigh(K, M, eigvals_only=True)[:10]
    assert modes.omega == pytest.approx(np.sqrt(values), rel=1e-8)
    assert np.all(modes.vectors[held.ravel()] == 0)
    gram = modes.vectors.T @ (np.repeat(elements.mass, 3)[:, None] * modes.vectors)
    assert np.allclose(gram, np.eye(10), atol=1e-9)
    # A free body has six motions that cost nothing.
    omega = limber.eigenmodes(elements, 8, mesh.vertices).omega
    assert np.all(omega[:6] < 1e-3 * omega[6])


def test_conjac_in_forty_lines_is_the_method(capsys):
    difference = runpy.run_path(str(ROOT / "examples/python/conjac.py"))["main"]()
    assert difference < 1e-10
    text = (ROOT / "examples/python/conjac.py").read_text().split("def step(")[1].split("def main")[0]
    assert len(text.splitlines()) <= 40
    assert "4 dynamic nodes of 375" in capsys.readouterr().out


URDF = """<robot name="two">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0 -0.3"/><mass value="1"/>
    <inertia ixx="0.05" iyy="0.05" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -1"/><axis xyz="0 1 0"/></joint>
</robot>"""


def test_a_mechanism_from_urdf(tmp_path):
    (tmp_path / "two.urdf").write_text(URDF)
    arm = limber.Mechanism(tmp_path / "two.urdf")
    assert len(arm.links) == 2 and arm.mass.tolist() == [2.0, 1.0] and len(arm.q) == 2
    assert [j["type"] for j in arm.joints] == ["revolute", "revolute"]
    q, v, g = np.array([0.4, -0.9]), np.array([0.7, 0.2]), np.array([0, 0, -9.81])

    # The double pendulum of the textbook, angles about y from the downward vertical.
    def energies(q, v):
        a, b = q[0], q[0] + q[1]
        p1 = -0.5 * np.array([np.sin(a), np.cos(a)])
        p2 = -1.0 * np.array([np.sin(a), np.cos(a)]) - 0.3 * np.array([np.sin(b), np.cos(b)])
        v2 = -v[0] * np.array([np.cos(a), -np.sin(a)]) - 0.3 * (v[0] + v[1]) * np.array([np.cos(b), -np.sin(b)])
        kinetic = 0.5 * 2 * 0.25 * v[0]**2 + 0.5 * 0.1 * v[0]**2 + 0.5 * v2 @ v2 + 0.5 * 0.05 * (v[0] + v[1])**2
        return kinetic, 9.81 * (2 * p1[1] + p2[1])

    kinetic, gravity, springs = arm.energy(q, v, g)
    assert (kinetic, gravity) == pytest.approx(energies(q, v), rel=1e-12) and springs == 0
    M = arm.mass_matrix(q)
    assert 0.5 * v @ M @ v == pytest.approx(kinetic, rel=1e-12)
    J = arm.jacobian(q)
    assert J.shape == (12, 2)
    # Energy is kept along the acceleration: dE/dt = 0.
    a = arm.acceleration(q, v, gravity=g)
    e = 1e-5
    change = sum(arm.energy(q + e * v, v + e * a, g)) - sum(arm.energy(q - e * v, v - e * a, g))
    assert change / (2 * e) == pytest.approx(0, abs=1e-7)
    assert arm.integrate(q, v, 0.1) == pytest.approx(q + 0.1 * v)
    moved = (arm.poses(q + e * v) - arm.poses(q - e * v)) / (2 * e)
    assert moved.shape == (2, 4, 4) and np.allclose(arm.poses(q)[:, 3], [0, 0, 0, 1])


def test_mechanisms_of_scenes():
    chain = limber.Mechanism(ROOT / "scenes/joints/chain.json")
    sim = limber.Simulation(ROOT / "scenes/joints/chain.json")
    assert len(chain.links) > 1 and np.array_equal(chain.q, sim.q) and np.array_equal(chain.v, sim.qdot)
    M = chain.mass_matrix(chain.q)
    assert np.allclose(M, M.T) and np.linalg.eigvalsh(M).min() > 0
    with pytest.raises(limber.UsageError, match="expected"):
        chain.poses(np.zeros(1))


def test_obstacles(tmp_path):
    things = limber.Obstacles([{"shape": "plane", "point": [0, 0, 0], "normal": [0, 1, 0]},
                               {"shape": "box", "point": [0, 2, 0], "size": [1, 1, 1]},
                               {"shape": "sphere", "point": [3, 1, 0], "radius": 0.5,
                                "motion": [{"t": 0}, {"t": 1, "translation": [1, 0, 0]}]}])
    near = things.closest([[0, 0.25, 0], [0, 1.4, 0], [0.1, 2, 0], [3, 1, 0.25]])
    assert near.distance == pytest.approx([0.25, 0.1, -0.4, -0.25]) and near.obstacle.tolist() == [0, 1, 1, 2]
    assert near.normal[0] == pytest.approx([0, 1, 0]) and near.point[1] == pytest.approx([0, 1.5, 0])
    assert things.closest([[4, 1, 0.6]], t=1.0).distance == pytest.approx([0.1])


def test_contacts_of_a_simulation():
    scene = {"limber": 1, "time": {"step": 0.01, "end": 1}, "method": {"type": "implicit"},
             "bodies": [{"name": "a", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [3, 3, 3]}, "translation": [0, 0.001, 0]}],
             "obstacles": [{"shape": "plane", "point": [0, 0, 0], "normal": [0, 1, 0]}]}
    sim = limber.Simulation(scene)
    assert len(sim.touching()["node"]) == 0
    sim.v = np.tile([0, -1.0, 0], (27, 1))
    coming = sim.touching_next()
    assert sorted(coming["node"]) == sorted(sim.model.node_sets["a/y0"]) and np.allclose(coming["normal"], [0, 1, 0])
    assert coming["depth"] == pytest.approx(np.full(9, -0.001))
    sim.x = sim.x - [0, 0.003, 0]
    assert sim.touching()["depth"] == pytest.approx(np.full(9, 0.002))
    overlapping = limber.Simulation({"limber": 1, "bodies": [
        {"name": "a", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [3, 3, 3]}},
        {"name": "b", "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "nodes": [3, 3, 3]}, "translation": [0.01, 0.095, 0.012]}]})
    pairs = overlapping.bodies_touching()
    assert len(pairs["node"]) > 0 and np.all(pairs["gap"] < 0) and pairs["face"].shape == (len(pairs["node"]), 3)
    assert np.allclose(pairs["weight"].sum(axis=1), 1)
