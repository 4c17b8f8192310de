"""The state of a monitor before its first batch: kernels, landmarks, the first pool, and what else is watched."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.containers import refuse_unread
from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.core.points import count, on_host, rows
from meanmap.core.rng import Rng
from meanmap.core.tables.apart import watched
from meanmap.core.tables.kinds import ON_A_CIRCLE
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.order import alike_in_order
from meanmap.core.tables.picked import names_of
from meanmap.core.tables.schema import admitted
from meanmap.core.tables.table import Table
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.features.base import transformed
from meanmap.learning.default import is_default
from meanmap.stats.permutations import CentredFeatures
from meanmap.stats.samples.drift_far import FarCells
from meanmap.stats.samples.drift_frequent import FrequentLabels
from meanmap.stats.samples.drift_gaps import Gaps, check_complete
from meanmap.stats.samples.drift_lost import LostLabels
from meanmap.stats.samples.drift_notes import HARM
from meanmap.stats.samples.drift_observed import columns_of_rows, observed, of_one_number
from meanmap.stats.samples.drift_persistent import Persistent
from meanmap.stats.samples.drift_record import Record, by_column
from meanmap.stats.samples.drift_strata import Strata
from meanmap.stats.samples.feature_statistics import landmark_features
from meanmap.stats.samples.margin import Margin
from meanmap.stats.samples.run_length import check_run_length, limit_for
from meanmap.stats.samples.samples import columns_of, read_reference, read_samples
from meanmap.stats.samples.strangers import KnownLabels
from meanmap.stats.samples.subsets import blocks_of
from meanmap.stats.settings import check_draws

__all__ = ["MOST_KEPT", "first_state"]

# This part of the reference is used only to choose kernels and landmarks. Compared points must not be used for this
# choice, or new points would differ from old ones without any drift.
SHARE, LEAST, MOST = 0.25, 10, 500
# At most this many other points are kept for comparison, since features take ten kilobytes per point.
MOST_KEPT = 20_000
# Landmarks of one kernel, and of each of several: 64 of each detected less of a drift in correlation, in half the time.
LANDMARKS = 512, 256


def first_state(
    reference: Data,
    kernel: KernelLike,
    *,
    run_length: float,
    within: str | Sequence[str] | None,
    margin: float | None,
    n_permutations: int,
    scale: bool,
    missing: str,
    kinds: Mapping[str, Any] | None,
    rng: Seed,
) -> dict[str, Any]:
    """The fields of a monitor of this reference, as `DriftMonitor.of` takes it."""
    check_draws(n_permutations)
    check_run_length(run_length)
    random = Rng.of(rng)
    if random.seed is None:
        raise ParameterError("a monitor needs a concrete seed: create it outside jit.")
    asked = names_of(within), kinds or ()
    reference, left_out = watched(reference, *asked) if is_default(kernel) else (reference, {})
    came = reference
    gaps = None
    if policy_and_marks(missing)[0] == "drop":
        refuse_unread(reference, "reference")
        check_complete(reference, missing, 4 * LEAST)
    if within is None and margin is None and policy_and_marks(missing)[0] == "drop":
        gaps = Gaps.of(reference, missing, MOST_KEPT, np.random.default_rng([random.seed, 0]))
    (reference,), told = admitted((reference,), ("reference",), missing, told=kinds or ())
    standing = alike_in_order((reference,), ("the reference",), HARM)
    strata = None
    if within is not None:
        if margin is not None:
            raise ParameterError("a margin applies to all rows together: pass only one of within= and margin=.")
        reference, strata = Strata.of(reference, within)
    data, schema = read_reference(reference, kinds, kernel)
    n = count(data)
    check_rows(n, "reference", 4 * LEAST)
    order = random.generator.permutation(n)
    size = int(np.clip(SHARE * n, LEAST, MOST))
    with Door() as door:
        first = rows(data, np.sort(order[:size]))
        chosen = read_samples((first,), ("reference",), kernel, random.generator, door, scale, must_vary=False)
        number = LANDMARKS[len(chosen.kernels) > 1]
        known = KnownLabels.of(chosen.pooled)
        landmarks, number = known.landmarks(chosen.pooled, number, random.generator)
        features = landmark_features(chosen.kernels, landmarks, number, random.generator, door, np.float64)
        own = blocks_of(features, transformed(features, chosen.pooled))
        places = np.sort(order[size : size + MOST_KEPT])
        kept = jax.tree.map(on_host, known(features.read(rows(data, places), "reference", door)))
        pool = transformed(features, kept)
        allowed, heavy = (None, ()) if margin is None else Margin.of(margin, features, kept, pool, chosen, data)
        pool = pool if allowed is None else pool[:0]
    squares = tuple(CentredFeatures(block).norm ** 2 for block in own)
    each = columns_of(chosen) if chosen.by_columns else ()
    columns = schema.names if schema and isinstance(data, Table) else ()
    whole = bool(columns) and not (strata or allowed)
    values = {} if strata or allowed else observed(came, of_one_number(columns_of_rows(data)), missing, schema)
    singly = is_default(kernel) and bool(values)
    limit = limit_for(float(run_length) * (4 if gaps else 2) * (2 if singly else 1))
    circles = {name: schema[name].kind for name in columns if schema and schema[name].kind in ON_A_CIRCLE}
    lost = {} if gaps is None else by_column(dict(zip(gaps.names, gaps.pool.T, strict=True)), values)
    return {
        "features": features,
        "pool": pool,
        "mean_squares": squares,
        "names": columns,
        "run_length": float(run_length),
        "n_permutations": int(n_permutations),
        "seed": random.seed,
        "limit": limit,
        "schema": schema,
        "missing": missing,
        "notes": (*left_out.values(), *told, *standing, *chosen.doubts, *heavy),
        "standing": standing,
        "left_out": left_out,
        "margin": allowed,
        "strata": strata and strata.rows(places),
        "known": known,
        "gaps": gaps,
        "points": None if allowed else kept,
        "record": None if strata else Record.of(data, values, gaps, circles, MOST_KEPT, random.seed),
        "widths": {name: chosen.widths.get(name, 1) for name in each},
        "labels": LostLabels.of(data, float(run_length)) if whole else None,
        "frequent": FrequentLabels.of(data, float(run_length), singly) if whole else None,
        "far": FarCells.of(data, schema, float(run_length)) if whole and schema else None,
        "persistent": Persistent.of(values, lost, float(run_length), limit, random.seed) if singly else None,
    }
