"""Published numbers from real vectors: GloVe 840B on WEAT 1 and WEAT 7 of Caliskan et al. (2017)."""

import csv
from math import comb

import numpy as np
import pytest

from distseat.statistics import Association, associate, permutation_test, seed_sequence


@pytest.fixture(scope="module")
def glove(repository) -> dict[str, np.ndarray]:
    path = repository.parent / "shared" / "reference" / "vectors" / "glove840b_weat1_weat7_wefat1.npz"
    if not path.exists():
        pytest.skip("the GloVe vectors are not part of the checkout: shared/reference/vectors is not beside it")
    with np.load(path, allow_pickle=False) as content:
        return dict(zip(content["words"].tolist(), content["vectors"], strict=True))


@pytest.fixture(scope="module")
def associations(glove, published) -> dict[str, Association]:
    """The word-level tests of which every word has a vector, under the published definitions."""
    found = {}
    for form in published:
        if form.form == "word" and all(s.text in glove for stimuli in form.stimuli.values() for s in stimuli):
            x, y, a, b = (np.array([glove[text] for text in form.texts(role)]) for role in "XYAB")
            found[form.test_id] = associate(x, y, a=a, b=b)
    return found


@pytest.fixture(scope="module")
def table_1(repository) -> dict[str, dict[str, str]]:
    path = repository / "tests" / "reference" / "published" / "caliskan_2017_table_1_glove840b.tsv"
    with path.open(encoding="utf-8", newline="") as stream:
        return {f"weat{row['weat']}": row for row in csv.DictReader(stream, delimiter="\t")}


@pytest.mark.parametrize(("test_id", "d"), [("weat1", 1.504), ("weat7", 1.055)])
def test_effect_sizes_of_glove_have_three_known_decimals(associations, test_id, d):
    assert associations[test_id].effect_size == pytest.approx(d, abs=5e-4)


@pytest.mark.parametrize("test_id", ["weat1", "weat7"])
def test_effect_sizes_of_glove_are_the_published_ones(associations, table_1, test_id):
    # abs: half of the last published decimal
    published_d = float(table_1[test_id]["d"])
    assert associations[test_id].effect_size == pytest.approx(published_d, abs=0.005 + 1e-9)


@pytest.mark.parametrize("test_id", ["weat1", "weat7"])
def test_the_published_tests_have_the_published_sizes(associations, table_1, test_id):
    n_targets = int(table_1[test_id]["n_targets"])
    assert len(associations[test_id].scores_x) == len(associations[test_id].scores_y) == n_targets


def test_weat_7_has_its_exact_p(associations):
    joint = associations["weat7"].joint
    result = permutation_test(joint[:, None], 8, seed=seed_sequence(0))
    assert result.method == "exact"
    assert result.p_floor == 1 / comb(16, 8) == 1 / 12_870
    assert result.p_values[0] == pytest.approx(0.0157, abs=1e-4)
    assert (result.p_values[0] * 12_870) == pytest.approx(round(result.p_values[0] * 12_870), abs=1e-6)


def test_weat_1_reaches_the_floor_of_sampling(associations):
    result = permutation_test(associations["weat1"].joint[:, None], 25, seed=seed_sequence(0))
    assert result.method == "sampled"
    assert result.p_values[0] == result.p_floor == 1e-5  # the exact p is 2.6e-10
