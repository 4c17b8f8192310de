"""The status of a run agrees with its notes: what a note calls wrong is not said to have converged, and the reverse."""

import re
import zlib

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.inference.record import Record
from meanmap.ep.inference.sampled import Sampled
from meanmap.ep.inference.verdict import Ending
from meanmap.ep.oracles.host import HostOracle

WRONG = "converged, but standard deviations may be wrong"
SAMPLED = "converged, but errors of sampling are large"

A = ep.Variable("a", ep.Normal(0.0, 1.0))


def plate(oracle=None, members=4):
    z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=members)
    return ep.Density(lambda z, a: -((z - a) ** 2), z, A, name="d", oracle=oracle)


def record(doubt, *, oracle=None, members=4, effective=None, hosts=None):
    """Of a run that converged and stated this doubt."""
    factor = plate(oracle, members)
    made = Record((factor,), hosts or {})
    made.end(Ending(converged=True))
    made.doubt = {"d": np.broadcast_to(np.asarray(doubt, float), members)}
    made.effective = {} if effective is None else {"d": np.full(members, effective)}
    return made


class Doubting(HostOracle):
    """Whose audits failed."""

    def answer(self, questions):
        raise NotImplementedError

    def notes(self, factor):
        return ("12 audits: errors were 3 times the stated ones; do not trust the stated ones",)

    def doubts_itself(self, factor):
        return True


def with_(made, **told):
    for name, value in told.items():
        setattr(made, name, value)
    return made


# What a run found, its status, and what its notes say.
TABLE = {
    "nothing": (lambda: record(0.0), "converged", None),
    "little doubt": (lambda: record(1e-3), "converged", "off by 0.001 standard"),
    "doubt": (lambda: record([0.3, 0, 0, 0]), WRONG, r"d at \[0\]: beliefs may be off by 0.3 standard"),
    "much doubt": (lambda: record(3.0), WRONG, "off by a standard deviation or more"),
    "doubt that is no number": (lambda: record(np.nan), WRONG, "off by a standard deviation or more"),
    "doubt that adds up": (lambda: record(0.04, members=16), WRONG, "may add up to 0.16"),
    "doubt of samples": (
        lambda: record(0.2, oracle=ep.ImportanceSampling(100), effective=60.0),
        SAMPLED,
        "off by 0.2 standard",
    ),
    "little doubt of samples": (
        lambda: record(0.04, oracle=ep.ImportanceSampling(100), effective=60.0, members=2),
        "converged",
        None,
    ),
    "doubt of a mode": (lambda: record(0.2, oracle=ep.Laplace(), effective=600.0), WRONG, "off by 0.2 standard"),
    "audits that failed": (lambda: record(0.0, hosts={0: Doubting()}), WRONG, "do not trust the stated ones"),
    "points that miss": (
        lambda: record(3.0, effective=2.0),
        "converged, but samples missed most of the mass",
        "do not use its beliefs",
    ),
    "few points": (lambda: with_(record(0.0), sampled=Sampled({}, {"d": 12.0})), SAMPLED, None),
    "too narrow": (
        lambda: with_(record(0.0), advice=("too small",), narrow=True),
        "converged, but standard deviations may be too small",
        "too small",
    ),
    "too narrow, and doubted": (lambda: with_(record(0.3), advice=("too small",), narrow=True), WRONG, "off by 0.3"),
    "elsewhere": (
        lambda: with_(record(0.0), elsewhere="another mode"),
        "converged, but at one of several modes",
        "another mode",
    ),
    "apart": (lambda: with_(record(0.0), apart="draws differ"), WRONG, "draws differ"),
    "not converged": (lambda: with_(record(3.0), converged=False), "stopped before converging", "or more"),
}


@pytest.mark.parametrize("name", TABLE)
def test_status_and_notes_agree(name):
    make, status, said = TABLE[name]
    report = make().report("allow", -1.0, {})
    assert report.status == status
    if said is None:
        assert not any("off" in note or "add up" in note for note in report.notes)
    else:
        assert any(re.search(said, note) for note in report.notes)


def noise(a):
    return zlib.crc32(np.float64(a).tobytes()) / 2**32 * 3


RUNS = {
    "no digits left": (lambda a: 1e16 - (a - 1) ** 2 / 2e-8, ep.Normal(0.0, 1e-16)),
    "constant of no digits": (lambda a: 1e300 - (a - 1) ** 2, ep.Normal(0.0, 1.0)),
    "jumps everywhere": (lambda a: 3 * jnp.sin(1e9 * a), ep.Normal(0.0, 1.0)),
    "jumps everywhere on the host": (noise, ep.Normal(0.0, 1.0)),
    "a peak of one number": (lambda a: -1e300 * (a - 1) ** 2, ep.Normal(0.0, 1.0)),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_that_cannot_be_right_say_so(name):
    log_factor, prior = RUNS[name]
    post = ep.infer(ep.FactorGraph(ep.Density(log_factor, ep.Variable("a", prior), name="mine")))
    assert post.report.status in (WRONG, "stopped before converging", "stopped with messages left out")
