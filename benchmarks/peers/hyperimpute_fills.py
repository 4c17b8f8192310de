"""Tables filled in by HyperImpute, with a learner chosen for each column, as it comes."""

import numpy as np
import pandas as pd
from hyperimpute.plugins.imputers import Imputers
from serving import serve


def prepare(model):
    """`rows` (sets, n, d) with NaN in gaps; the answer is each of them filled in."""
    rows = model["rows"]

    def answer():
        frames = [pd.DataFrame(table, columns=[f"x{j}" for j in range(rows.shape[2])]) for table in rows]
        filled = [Imputers().get("hyperimpute", random_state=0).fit_transform(frame) for frame in frames]
        return np.stack([table.to_numpy(dtype=float) for table in filled])

    return answer


serve(prepare)
