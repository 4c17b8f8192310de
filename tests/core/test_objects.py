"""Columns of Python objects: declared categories are labels whatever they are, and all else has a remedy that works."""

import datetime
import enum
import ipaddress
import re
import uuid
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.errors import KindError

ROWS = 60
Y = np.random.default_rng(0).normal(size=ROWS)
BINS = pd.cut(Y, 4)
Colour = enum.Enum("Colour", ["RED", "GREEN"])
OBJECTS = {
    "bins": pd.Series(pd.Series(BINS).astype(object)),
    "intervals": pd.Series(pd.arrays.IntervalArray(np.asarray(BINS, dtype=object))),
    "months": pd.Series(pd.period_range("2020-01", periods=12, freq="M").repeat(ROWS // 12)),
    "times of day": [datetime.time(i % 24, 30) for i in range(ROWS)],
    "times of day, of polars": pl.Series("t", [datetime.time(i % 24, 30) for i in range(ROWS)]),
    "ids": [uuid.UUID(int=i % 12) for i in range(ROWS)],
    "fractions": [Fraction(i, 3) for i in range(ROWS)],
    "members": [Colour.RED, Colour.GREEN] * (ROWS // 2),
    "addresses": [ipaddress.ip_address(i % 12) for i in range(ROWS)],
    "long numbers": [2**70, 1, -(2**80)] * (ROWS // 3),
    "long numbers in an array": np.array([2**70, 1, -(2**80)] * (ROWS // 3), dtype=object),
}
CATEGORIES = {
    "bins": BINS,
    "months": pd.Categorical(pd.period_range("2020-01", periods=12, freq="M").repeat(ROWS // 12)),
    "times of day": pd.Categorical([datetime.time(i % 12) for i in range(ROWS)]),
    "ids": pd.Categorical([uuid.UUID(int=i % 12) for i in range(ROWS)]),
}


@pytest.mark.parametrize("door", ["alone", "in a table"])
@pytest.mark.parametrize("name", OBJECTS)
def test_every_remedy_for_objects_works_as_it_stands(name, door):
    x = OBJECTS[name] if door == "alone" else {"a": OBJECTS[name], "b": Y}
    with pytest.raises(KindError, match="As labels: ") as error:
        mm.independence_test(x, Y, n_permutations=19, rng=0)
    remedies = re.findall(r"\[\S+(?: [^\[\]]*?)? for v in x(?:\['a'\])?\]", str(error.value))
    assert remedies
    for remedy in remedies:
        column = eval(remedy, {"x": x, "float": float, "str": str})
        again = column if door == "alone" else {"a": column, "b": Y}
        assert 0 < mm.independence_test(again, Y, n_permutations=19, rng=0).pvalue <= 1


@pytest.mark.parametrize("name", CATEGORIES)
def test_declared_categories_are_labels_whatever_they_are(name):
    objects = CATEGORIES[name]
    texts = objects.rename_categories([str(each) for each in objects.categories])
    for made in (lambda c: c, pd.Series, lambda c: pd.DataFrame({"a": c, "b": Y})):
        p = [mm.independence_test(made(c), Y, n_permutations=99, rng=0).pvalue for c in (objects, texts)]
        assert p[0] == p[1]
    known, same = (mm.Schema.of(pd.DataFrame({"a": c})) for c in (objects, texts))
    assert known["a"] == same["a"]


ASK = {
    "y": lambda v: mm.independence_test(Y, v),
    "y, two samples": lambda v: mm.two_sample_test(Y, v),
    "y, effect": lambda v: mm.independence_effect(Y, v),
    "y, close": lambda v: mm.closeness_test(Y, v),
    "y, conditional": lambda v: mm.conditional_independence_test(Y, v, Y[::-1]),
    "z": lambda v: mm.conditional_independence_test(Y, Y[::-1], v),
    "within": lambda v: mm.independence_test(Y, Y[::-1], within=v),
    "clusters": lambda v: mm.independence_test(Y, Y[::-1], clusters=v),
    "samples[2]": lambda v: mm.k_sample_test([Y, Y[::-1], v]),
    "variables[2]": lambda v: mm.joint_independence_test([Y, Y[::-1], v]),
}


@pytest.mark.parametrize("made", [list, pd.Series], ids=["list", "Series"])
@pytest.mark.parametrize("called", ASK)
def test_the_one_at_fault_is_named(called, made):
    name = re.escape(called.split(",")[0])
    ids = made([uuid.UUID(int=i % 12) for i in range(ROWS)])
    with pytest.raises(KindError, match=rf"^{name} holds Python objects such as UUID.* \[str\(v\) for v in {name}\]"):
        ASK[called](ids)
    with pytest.raises(KindError, match=rf"^{name} holds dicts, .* pandas.DataFrame\({name}\)"):
        ASK[called](made([{"a": 1.0}] * ROWS))
    if called not in ("clusters", "within"):
        times = made([datetime.datetime(2020, 1, 1, tzinfo=zone) for zone in (None, datetime.UTC)] * (ROWS // 2))
        with pytest.raises(KindError, match=rf"^{name} holds times with a zone and times without one"):
            ASK[called](times)
