"""Denoisers of SciPy, scikit-image and scikit-learn, and BM3D; and photographs."""

import warnings

import bm3d
import numpy as np
import skimage.data
from scipy.ndimage import median_filter
from serving import serve
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle
from sklearn.datasets import load_sample_images
from sklearn.ensemble import HistGradientBoostingRegressor

warnings.filterwarnings("ignore")

PHOTOGRAPHS = (
    skimage.data.camera,
    skimage.data.astronaut,
    skimage.data.coffee,
    skimage.data.chelsea,
    skimage.data.rocket,
)
SIZES = {"boosted 5 × 5": 5, "boosted 9 × 9": 9}


def photographs(count, side, seed):
    """Squares of different grey photographs, halved in size where they are large."""
    rng = np.random.default_rng(seed)
    whole = [read() for read in PHOTOGRAPHS] + list(load_sample_images().images)
    found = []
    for which in rng.permutation(len(whole))[:count]:
        image = whole[which].astype(float)
        image = image.mean(axis=2) if image.ndim == 3 else image
        if min(image.shape) > 400:
            image = image[::2, ::2]
        down, right = (rng.integers(size - side) for size in image.shape)
        found.append(image[down : down + side, right : right + side])
    return np.stack(found)


def prepare(model):
    """Answer questions about photographs, or about restoring the images behind those to learn from."""
    if "side" in model:
        return lambda count, seed: photographs(count, int(model["side"]), seed)
    clean, noisy, most, photons = model["clean"], model["noisy"], float(model["most"]), float(model["photons"])
    learned, shown = noisy[: len(clean)], noisy[len(clean) :]
    deviation = float(np.sqrt(np.mean((learned - clean) ** 2)))

    def variation(image, weight):
        return denoise_tv_chambolle(image / most, weight=weight) * most

    def means(image, share):
        settings = {"patch_size": 5, "patch_distance": 7, "fast_mode": True}
        return denoise_nl_means(image / most, h=share * deviation / most, sigma=deviation / most, **settings) * most

    def middle(image, size):
        return median_filter(image, size, mode="mirror")

    def collaborative(image, share):
        if not photons:
            return bm3d.bm3d(image, share * deviation)
        # Anscombe's transform makes the noise of photons nearly Gaussian with variance one.
        level = bm3d.bm3d(2 * np.sqrt(image * photons / most + 0.375), share)
        return np.maximum((level / 2) ** 2 - 0.125, 0) * most / photons

    def boosted(images, size):
        rows = np.concatenate([around(image, size) for image in learned])
        model = HistGradientBoostingRegressor(max_iter=200, early_stopping=True, random_state=0)
        model.fit(rows, clean.ravel())
        return np.stack([model.predict(around(image, size)).reshape(image.shape) for image in images])

    def tuned(method, strengths):
        errors = [np.mean([(method(n, s) - c) ** 2 for n, c in zip(learned, clean, strict=True)]) for s in strengths]
        best = strengths[int(np.argmin(errors))]
        return np.stack([method(image, best) for image in shown])

    def answer(method):
        if method in SIZES:
            return boosted(shown, SIZES[method])
        methods = {
            "median filter": (middle, (3, 5, 7)),
            "total variation": (variation, (0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4)),
            "non-local means": (means, (0.4, 0.6, 0.8, 1.1)),
            "BM3D": (collaborative, (0.7, 1.0, 1.4)),
        }
        return tuned(*methods[method])

    return answer


def around(image, size):
    """The pixels around each, (H W, size²)."""
    wide = np.pad(image, size // 2, mode="symmetric")
    return np.lib.stride_tricks.sliding_window_view(wide, (size, size)).reshape(image.size, -1)


serve(prepare)
