"""Samples as users may hand them over, good and bad: containers, kinds of numbers, extremes."""

import numpy as np
import pandas
import polars
import scipy.sparse
from hypothesis import strategies as st

import meanmap as mm

# Two lengths only: every other one would be compiled anew.
LENGTHS = (12, 48)
EXTREME = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-300, 1e160, 1.7e308, -1.7e308, 1e19, 2.0**53 + 2]
WORDS = ["a", "b", "", "1", "é" * 40, "a\x00b", "nan"]
OBJECTS = np.array(["a", None, 1, 2.5, b"x", ("t",), 10**400, np.nan], dtype=object)
NOT_SAMPLES = [None, 3, "text", set("abc"), [], [[]], [[1, 2], [3]], np.zeros((0, 2)), object]
CONTAINERS = ["array", "array", "flat", "list", "dict", "pandas", "polars", "sparse", "table"]


@st.composite
def kinds(draw) -> tuple:
    """What is in a column: its kind, and what that needs to know."""
    return draw(
        st.one_of(
            st.tuples(st.just("normal"), st.sampled_from([1.0, 1.0, 1e-8, 1e8, 1e-160, 1e150])),
            st.tuples(st.just("ties"), st.sampled_from([np.float64, np.float32, np.int64, np.uint8, bool])),
            st.tuples(st.just("constant"), st.sampled_from([0.0, 1.0, 1e300])),
            st.tuples(st.just("extreme"), st.sampled_from(EXTREME), st.sampled_from([np.float64, np.float32])),
            st.sampled_from([("whole",), ("labels",), ("objects",), ("dates",), ("complex",)]),
        )
    )


def column(kind: tuple, n: int, rng: np.random.Generator) -> np.ndarray:
    """n values of a kind."""
    match kind:
        case "normal", scale:
            return rng.normal(size=n) * scale
        case "ties", dtype:
            return rng.integers(3, size=n).astype(dtype)
        case "constant", value:
            return np.full(n, value)
        case "extreme", value, dtype:
            values = rng.normal(size=n)
            values[rng.integers(n, size=2)] = value
            with np.errstate(over="ignore"):
                return values.astype(dtype, copy=False)
        case ("whole",):
            return rng.integers(-(2**62), 2**62, size=n)
        case ("labels",):
            return rng.choice(WORDS, size=n)
        case ("objects",):
            return OBJECTS[rng.integers(len(OBJECTS), size=n)]
        case ("dates",):
            return (np.datetime64("2020-01-01") + rng.integers(99, size=n)).astype("M8[ns]")
    return rng.normal(size=n) + 1j


def contained(parts: list[np.ndarray], container: str):
    """Columns in a container that users have."""
    if container == "flat":
        return parts[0]
    numbers = all(part.dtype.kind in "biuf" for part in parts)
    if container in ("array", "list", "sparse"):
        same = numbers or len({part.dtype.kind for part in parts}) == 1
        together = np.stack(parts if same else [part.astype(object) for part in parts], axis=1)
        if container == "sparse" and numbers:
            return scipy.sparse.csr_array(together)
        return together.tolist() if container == "list" else together
    named = {f"c{i}": part for i, part in enumerate(parts)}
    if container == "pandas":
        return pandas.DataFrame(named)
    if container == "polars" and all(part.dtype.kind in "biufU" for part in parts):
        return polars.DataFrame(named)
    if container == "table" and numbers and all((np.abs(part.astype(float)) < 1e150).all() for part in parts):
        return mm.Table.of(named)  # others it refuses
    return named


@st.composite
def triples(draw) -> tuple:
    """Three samples, mostly alike; now and then one that is none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, held = draw(st.sampled_from(LENGTHS)), draw(st.lists(kinds(), min_size=1, max_size=2))
    container, found = draw(st.sampled_from(CONTAINERS)), []
    for _ in range(3):
        odd = draw(st.integers(0, 11))
        if odd == 0:
            found.append(draw(st.sampled_from(NOT_SAMPLES)))
            continue
        own = draw(st.lists(kinds(), min_size=1, max_size=2)) if odd == 1 else held
        size = draw(st.sampled_from(LENGTHS)) if odd == 2 else n
        found.append(contained([column(kind, size, rng) for kind in own], container))
    return tuple(found)


def fingerprint(value) -> object:
    """Equal for equal contents, however nested."""
    if isinstance(value, mm.Table):
        return fingerprint(dict(value.columns))
    if isinstance(value, pandas.DataFrame):
        return fingerprint({name: value[name].to_numpy() for name in value})
    if isinstance(value, polars.DataFrame):
        return fingerprint(value.to_dict(as_series=False))
    if scipy.sparse.issparse(value):
        return fingerprint([value.data, value.indices, value.indptr])
    if isinstance(value, dict):
        return tuple((name, fingerprint(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(fingerprint, value))
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, repr(value.tolist()) if value.dtype == object else value.tobytes())
    return repr(value)
