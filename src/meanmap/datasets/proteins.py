"""Proteins: torsion angles of the backbone, from files in the format of the Protein Data Bank."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from meanmap.core.errors import EmptyError, InputError
from meanmap.core.values import Value

__all__ = ["Backbone", "torsion_angles"]

BACKBONE = "N", "CA", "C"
# Ångström: residues whose C and N are farther apart are not joined.
LONGEST_BOND = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Backbone(Value):
    """One chain of a protein.

    Attributes
    ----------
    chain : str
        The letter of the chain.
    residues : (n,) array of str
        Names in three letters, as "ALA".
    angles : (n, 2) array
        φ and ψ in radians between −π and π; NaN at ends, at gaps, and where an atom is missing.
    """

    chain: str
    residues: Any
    angles: Any


def torsion_angles(path: Any) -> list[Backbone]:
    """The chains of a PDB file with the angles φ (C′, N, Cα, C) and ψ (N, Cα, C, N′) of each residue.

    Uses the first model and the first location of each atom; chains are cut by NaN where residues are not connected.
    The chains are data for `mm.KernelField`: pairs of neighbours without NaN, on `mm.kernels.Torus`.

    Examples
    --------
    >>> for backbone in torsion_angles("1abc.pdb"):  # doctest: +SKIP
    ...     print(backbone.chain, np.degrees(backbone.angles))
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {str(file)!r}; expected a file in PDB format.")
    chains: dict[str, dict[str, tuple[str, dict[str, np.ndarray]]]] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        if line.startswith("ENDMDL"):
            break
        name = line[12:16].strip()
        # Chemically modified residues are listed as HETATM, with the same atoms; water and ligands lack these.
        if line[:6] not in ("ATOM  ", "HETATM") or name not in BACKBONE:
            continue
        try:
            place = np.array([float(line[start : start + 8]) for start in (30, 38, 46)])
        except ValueError:
            raise InputError(f"{file.name}, line {number}: expected coordinates in columns 31 to 54.") from None
        residues = chains.setdefault(line[21:22].strip() or "A", {})
        residues.setdefault(line[22:27], (line[17:20].strip(), {}))[1].setdefault(name, place)
    if not chains:
        raise EmptyError(f"{file.name} has no backbone atoms (ATOM records in PDB format; mmCIF is another format).")
    return [_backbone(chain, list(residues.values())) for chain, residues in chains.items()]


def _backbone(chain: str, residues: list[tuple[str, dict[str, np.ndarray]]]) -> Backbone:
    unknown = np.full(3, np.nan)
    n, alpha, c = (np.array([atoms.get(name, unknown) for _, atoms in residues]) for name in BACKBONE)
    angles = np.full((len(residues), 2), np.nan)
    angles[1:, 0] = _dihedral(c[:-1], n[1:], alpha[1:], c[1:])
    angles[:-1, 1] = _dihedral(n[:-1], alpha[:-1], c[:-1], n[1:])
    apart = ~(np.linalg.norm(n[1:] - c[:-1], axis=1) <= LONGEST_BOND)
    angles[1:, 0][apart] = np.nan
    angles[:-1, 1][apart] = np.nan
    return Backbone(chain, np.array([name for name, _ in residues]), angles)


def _dihedral(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The angle between the planes abc and bcd, seen along b → c, clockwise positive (IUPAC)."""
    along = c - b
    first, second = np.cross(b - a, along), np.cross(along, d - c)
    up = np.sum((b - a) * second, axis=1) * np.linalg.norm(along, axis=1)
    return np.arctan2(up, np.sum(first * second, axis=1))
