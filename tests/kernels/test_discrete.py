"""Kernels of labels, texts and row numbers."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from meanmap.core import InputError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.kernels import RBF, Delta, Hamming, OnColumns, Precomputed, Spectrum


class TestDelta:
    @pytest.mark.oldest
    def test_labels_of_different_calls_are_compared_by_value(self):
        np.testing.assert_array_equal(Delta()(["b", "a"], ["a", "c", "b"]), [[0, 0, 1], [1, 0, 0]])
        np.testing.assert_array_equal(Delta()([1.0, 2.0], [2.5, 1.0]), [[0, 1], [0, 0]])
        np.testing.assert_array_equal(Delta()([1, 2], [1.0, 2.5]), [[1, 0], [0, 0]])
        np.testing.assert_array_equal(Delta()(np.array([1, 2]), jnp.array([2, 1])), [[0, 1], [1, 0]])
        np.testing.assert_array_equal(Delta()(pd.Categorical(["b", "a"]), ["b", "b"]), [[1, 1], [0, 0]])

    def test_embedding_of_a_category_is_its_probability_table(self):
        sample = ["a"] * 3 + ["b"] * 1
        np.testing.assert_allclose(Delta().mean(["a", "b", "c"], sample), [0.75, 0.25, 0])

    def test_real_labels_in_jax_are_refused(self):
        with pytest.raises(KindError, match="x is a JAX array of float32; expected integer labels"):
            Delta()(jnp.ones(3))

    def test_other_columns(self):
        with pytest.raises(ShapeError, match="x and y differ in their columns"):
            Delta()(["a"], [["a", "b"]])


class TestHamming:
    def test_tends_to_delta(self):
        labels = [["a", "x"], ["a", "y"], ["b", "y"]]
        np.testing.assert_allclose(Hamming(1e-3)(labels), Delta()(labels), atol=1e-100)

    @pytest.mark.parametrize("lengthscale", [0, -1, np.nan, [1.0], "a"])
    def test_lengthscales_that_are_refused(self, lengthscale):
        with pytest.raises((ParameterError, ShapeError, KindError), match="lengthscale"):
            Hamming(lengthscale)


class TestSpectrum:
    def test_substrings_are_compared_wherever_they_stand(self):
        assert Spectrum(2)(["abcd"], ["cdab"])[0, 0] == pytest.approx(2 / 3)
        assert Spectrum(4)(["abcd"], ["cdab"])[0, 0] == 0
        assert Spectrum(1, normalise=False)(["aab"], ["ab"])[0, 0] == 3

    def test_any_alphabet(self):
        np.testing.assert_allclose(Spectrum(1)(["жж", "猫", "é"]), np.eye(3))

    def test_on_a_column_of_a_table(self):
        data = {"text": ["abab", "abba", "cccc"], "size": [1.0, 2.0, 3.0]}
        kernel = OnColumns(Spectrum(2), "text") * OnColumns(RBF(1.0), "size")
        expected = Spectrum(2)(data["text"]) * RBF(1.0)(data["size"])
        np.testing.assert_allclose(kernel(data), expected)
        np.testing.assert_allclose(kernel.mean(data), expected.mean(axis=1))
        with pytest.raises(ShapeError, match="has 2 columns; expected one column of texts"):
            OnColumns(Spectrum(2), ["text", "size"])(data)

    def test_a_frame_is_read_by_its_column_not_by_its_name(self):
        np.testing.assert_allclose(Spectrum(1)(pd.DataFrame({"abc": ["a", "b"]})), np.eye(2))

    @pytest.mark.parametrize("normalise", [True, False])
    def test_short_texts_are_like_themselves_alone(self, normalise):
        texts = ["abcde", "ab", "", "ab", "abc"]
        gram = Spectrum(4, normalise=normalise)(texts)
        expected = np.eye(5)
        expected[1, 3] = expected[3, 1] = 1.0
        expected[0, 0] = 1.0 if normalise else 2.0
        np.testing.assert_allclose(gram, expected)

    @pytest.mark.parametrize("length", [0, -1, 1.5, True, "2"])
    def test_lengths_that_are_refused(self, length):
        with pytest.raises(ParameterError, match=r"length is .*; expected a whole number of at least 1"):
            Spectrum(length)

    @pytest.mark.parametrize(
        ("texts", "error", "message"),
        [
            ("abc", KindError, "x is 'abc'; expected a list of strings"),
            (["abc", 1], KindError, r"x holds 1 \(int\) in row 1; expected strings"),
            (["abc", None], KindError, r"x holds None \(NoneType\) in row 1; expected strings"),
        ],
    )
    def test_texts_that_are_refused(self, texts, error, message):
        with pytest.raises(error, match=message):
            Spectrum(3)(texts)


class TestPrecomputed:
    @pytest.mark.parametrize(
        ("matrix", "error", "message"),
        [
            ([[1.0, 2.0], [3.0, 1.0]], InputError, "matrix is not symmetric; expected a Gram matrix"),
            (np.ones((2, 3)), ShapeError, r"matrix has shape \(2, 3\); expected a square Gram matrix"),
            (np.ones(3), ShapeError, r"matrix has shape \(3,\)"),
            (np.ones((0, 0)), ShapeError, r"matrix has shape \(0, 0\)"),
            ([[np.nan]], NonFiniteError, "matrix holds 1 value"),
            ([["a"]], KindError, "matrix holds <U1 values"),
            ([[1, 2], [3]], ShapeError, "matrix is ragged"),
        ],
    )
    def test_matrices_that_are_refused(self, matrix, error, message):
        with pytest.raises(error, match=message):
            Precomputed(matrix)

    def test_asymmetry_in_jax_is_refused(self):
        with pytest.raises(InputError, match="not symmetric"):
            Precomputed(jnp.array([[1.0, 2.0], [3.0, 1.0]]))

    @pytest.mark.parametrize("rows", [[0, 2], [-1], [0.5], [True, False]])
    def test_row_numbers_that_are_refused(self, rows):
        with pytest.raises((InputError, KindError), match="row numbers"):
            Precomputed(np.eye(2))(rows)

    def test_whole_numbers_in_jax_become_real(self):
        assert Precomputed(jnp.eye(2, dtype=int))([0, 1]).dtype == jnp.float32

    def test_the_matrix_is_copied(self):
        mine = np.eye(2)
        kernel = Precomputed(mine)
        mine[0, 0] = 7
        np.testing.assert_array_equal(kernel([0, 1]), np.eye(2))
