"""Torsion angles of chains whose atoms were placed by hand."""

import numpy as np
import pytest

from meanmap.core.errors import EmptyError, InputError
from meanmap.datasets import torsion_angles

LINE = "ATOM  {:5d}  {:<3s}{:1s}{:3s} {:1s}{:4d}    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00"
ANGLES = np.radians([[np.nan, 150.0], [-63.0, -43.0], [-118.0, 134.0], [57.0, np.nan]])


def placed(a, b, c, angle):
    """The atom behind a, b, c at a dihedral angle: bond 1.4, bond angle 110 degrees."""
    along = (c - b) / np.linalg.norm(c - b)
    normal = np.cross(b - a, along)
    normal /= np.linalg.norm(normal)
    bend = np.radians(110)
    x, y, z = -np.cos(bend), np.sin(bend) * np.cos(angle), np.sin(bend) * np.sin(angle)
    return c + 1.4 * (x * along + y * np.cross(normal, along) + z * normal)


def chain():
    """Atoms N, Cα, C of four residues with given φ and ψ, flat at the bonds between them."""
    atoms = [np.zeros(3), np.array([1.4, 0, 0]), np.array([1.9, 1.3, 0])]
    for i in range(1, len(ANGLES)):
        for angle in (ANGLES[i - 1, 1], np.pi, ANGLES[i, 0]):
            atoms.append(placed(*atoms[-3:], angle))
    return np.array(atoms).reshape(-1, 3, 3)


def text(atoms, skip=(), chain="A", place=" "):
    lines = []
    for i, residue in enumerate(atoms):
        for name, atom in zip(("N", "CA", "C"), residue, strict=True):
            if (i, name) not in skip:
                lines.append(LINE.format(len(lines) + 1, name, place, "ALA", chain, i + 1, *atom))
    return "\n".join(lines) + "\n"


def read(tmp_path, content):
    file = tmp_path / "hand.pdb"
    file.write_text(content)
    return torsion_angles(file)


def test_angles_are_those_the_atoms_were_placed_by(tmp_path):
    other = text(chain() + 50, chain="B")
    # A second place of the same atoms and a second model, far away, are not read.
    content = text(chain()) + text(chain()[::-1] * 3, place="B") + other + "ENDMDL\n" + text(chain()[::-1])
    found = read(tmp_path, "HEADER    BY HAND\n" + content)
    assert [backbone.chain for backbone in found] == ["A", "B"]
    assert found[0].residues.tolist() == ["ALA"] * 4
    for backbone in found:
        np.testing.assert_allclose(backbone.angles, ANGLES, atol=5e-3)


def test_gaps_and_missing_atoms_are_not_angles(tmp_path):
    atoms = chain()
    atoms[2:] += 10
    cut = read(tmp_path, text(atoms))[0].angles
    np.testing.assert_allclose(cut[[0, 3]], ANGLES[[0, 3]], atol=5e-3)
    np.testing.assert_array_equal(np.isnan(cut[[1, 2]]), [[False, True], [True, False]])
    lacking = read(tmp_path, text(chain(), skip=[(1, "CA")]))[0].angles
    assert np.isnan(lacking[1]).all()
    np.testing.assert_allclose(lacking[2:], ANGLES[2:], atol=5e-3)


def test_files_that_are_no_chains_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        torsion_angles(tmp_path / "nowhere.pdb")
    with pytest.raises(EmptyError, match="no backbone atoms"):
        read(tmp_path, "data_1ABC\n_atom_site.id\n")
    with pytest.raises(InputError, match="line 2: expected coordinates"):
        read(tmp_path, text(chain()[:1]).replace("1.400   0.000", "1.4oo   0.000"))
