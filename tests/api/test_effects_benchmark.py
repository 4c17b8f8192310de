"""The script behind the table of effects asks what it says."""

import numpy as np
import pytest

from benchmarks import effects
from benchmarks.effect_models import MODELS


def test_models_have_names_of_their_own_and_two_have_no_answer():
    assert len({model.name for model in MODELS}) == 52
    assert [model.name for model in MODELS if not model.identified] == ["hidden, instrument", "hidden on all sides"]


@pytest.mark.parametrize("model", [model for model in MODELS if model.identified], ids=lambda model: model.name)
def test_a_table_has_what_is_adjusted_for_and_both_ends(model):
    table = model.table(np.random.default_rng(0), 300)
    assert {"t", "y", *model.adjusted} <= set(table)
    assert not [name for name in table if name.startswith("hidden")]
    first, last = model.ends
    if table["t"].dtype.kind == "f" and len(np.unique(table["t"])) > 2:
        assert table["t"].min() < first < last < table["t"].max()
    else:
        assert {first, last} <= set(table["t"])


def test_without_its_confounder_a_model_is_refused_and_others_are_judged(monkeypatch):
    monkeypatch.setattr(effects, "METHODS", {"effect": effects.ours, "least squares": effects.least_squares})
    by_name = {model.name: model for model in MODELS}
    hidden = effects.compared(by_name["hidden, instrument"], 200, 2)
    assert (hidden["refused"], "effect" in hidden) == (2, False)
    judged = effects.compared(by_name["third label"], 300, 2)
    assert judged["effect"][2] == judged["least squares"][2] == 2
    assert all(abs(judged[name][0]) < 4 / np.sqrt(2) for name in ("effect", "least squares"))


def test_a_page_has_no_line_for_what_was_not_measured_at_a_number_of_rows():
    judged = {"truth": 1.0, "tables": 12, "refused": 0, "effect": [0.1, 11, 12, 0.07]}
    page = effects.page({"one; 300": judged | {"forests": [0.2, 6, 7, 0.1]}, "one; 1000": judged})
    assert page.split("Bias in standard errors")[0].count("- forests") == 1
