"""Labels without an intercept, beside the same model with one."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import fit


def test_means_of_labels_have_the_prior_of_the_intercept():
    """The log evidence was 33 lower where the mean of the response is far from 0, though the model is the same."""
    rng = np.random.default_rng(17_500_000)
    c, g, x = rng.integers(0, 3, 240), rng.integers(0, 12, 240), 5 + rng.normal(size=240)
    y = 1000 + 0.3 * c + 0.5 * rng.normal(size=12)[g] + 0.4 * x + rng.normal(size=240)
    data = {"y": y, "c": np.array(list("abc"))[c], "g": g, "x": x}
    for also in ("", " + x"):
        labels, plain = fit(f"y ~ 0 + c{also} + (1 | g)", data), fit(f"y ~ c{also} + (1 | g)", data)
        # Coefficients have other priors, of two standard deviations of 2.5 in place of differences.
        assert labels.log_evidence == pytest.approx(plain.log_evidence, abs=2)
        own, other = labels.to_frame(), plain.to_frame()
        means = other.loc["Intercept", "estimate"] + np.array([0, *other["estimate"].iloc[1:3]])
        np.testing.assert_allclose(own["estimate"].iloc[:3], means, atol=0.1)
        np.testing.assert_allclose(own.iloc[3:, :2], other.iloc[3:, :2], rtol=0.1, atol=0.02)
        np.testing.assert_allclose(labels.predict(), plain.predict(), atol=0.1)
        np.testing.assert_allclose(labels.contrasts("c"), plain.contrasts("c"), atol=0.1)
    assert "no intercept: its prior is that of each of c[a], c[b], c[c]" in str(labels)
    given = fit("y ~ 0 + c + (1 | g)", data, priors={"c[a]": (900.0, 0.1)}).to_frame()
    assert given.loc["c[a]", "estimate"] < 950
