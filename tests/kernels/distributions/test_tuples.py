import numpy as np
import pytest

from meanmap.core.errors import ColumnError, EmptyError, KindError, ShapeError
from meanmap.kernels import RBF, EmbeddingGaussian, ExpectedProduct, MeanVariance, TupleProduct, TupleSum


@pytest.fixture
def members():
    return EmbeddingGaussian(ExpectedProduct(RBF(2.0)), 0.3), MeanVariance(0.2, 0.05)


def test_products_and_sums_over_the_variables(tuples, members):
    first, second = members[0](tuples[0]), members[1](tuples[1])
    np.testing.assert_allclose(TupleProduct(members)(tuples), first * second, atol=1e-14)
    np.testing.assert_allclose(TupleSum(members)(tuples), first + second, atol=1e-14)
    np.testing.assert_allclose(TupleSum(members).diag(tuples), 2.0)
    assert np.linalg.eigvalsh(TupleProduct(members)(tuples)).min() > -1e-12
    named = TupleProduct({"z": members[0], "p": members[1]})
    np.testing.assert_allclose(named({"p": tuples[1], "z": tuples[0]}), first * second, atol=1e-14)


def test_product_of_expected_products_is_that_of_joint_embeddings(tuples):
    product = TupleProduct((ExpectedProduct(RBF(2.0)), ExpectedProduct(RBF(0.3), "logit")))
    joint = ExpectedProduct((RBF(2.0), RBF(0.3)), ("x", "logit"))
    np.testing.assert_allclose(product(tuples), joint(tuples), atol=1e-15)


def test_bad_members_are_named(tuples, members):
    with pytest.raises(KindError, match="expected kernels on distributions"):
        TupleProduct((RBF(1.0),))
    with pytest.raises(EmptyError, match="members is empty"):
        TupleSum(())
    with pytest.raises(ShapeError, match="members has 2 entries and x has 1 variable"):
        TupleSum(members)(tuples[0])
    with pytest.raises(
        ColumnError, match="members is given for the variables 'a', 'b' and x has the variables 'p', 'z'"
    ):
        TupleSum({"a": members[0], "b": members[1]})({"z": tuples[0], "p": tuples[1]})
