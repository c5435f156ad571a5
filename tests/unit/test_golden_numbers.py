"""Published numbers from real vectors: GloVe 840B on WEAT 1, WEAT 7 and WEFAT of Caliskan et al. (2017)."""

import csv
from math import comb

import numpy as np
import pytest

import distseat
from distseat.statistics import Association, associate, permutation_test, seed_sequence

WEAT_1_P = 1.454e-9  # counted in full by `exact`, and bracketed by `lattice_bracket`


@pytest.fixture(scope="module")
def glove(repository) -> dict[str, np.ndarray]:
    path = repository.parent / "shared" / "reference" / "vectors" / "glove840b_weat1_weat7_wefat1.npz"
    if not path.exists():
        pytest.skip("the GloVe vectors are not part of the checkout: shared/reference/vectors is not beside it")
    with np.load(path, allow_pickle=False) as content:
        return dict(zip(content["words"].tolist(), content["vectors"], strict=True))


@pytest.fixture(scope="module")
def vectors(glove, published) -> dict[str, list[np.ndarray]]:
    """X, Y, A, B of the word-level tests of which every word has a vector, under the published definitions."""
    return {
        form.test_id: [np.array([glove[text] for text in form.texts(role)]) for role in "XYAB"]
        for form in published
        if form.form == "word" and all(s.text in glove for stimuli in form.stimuli.values() for s in stimuli)
    }


@pytest.fixture(scope="module")
def associations(vectors) -> dict[str, Association]:
    return {test_id: associate(x, y, a=a, b=b) for test_id, (x, y, a, b) in vectors.items()}


@pytest.fixture(scope="module")
def table_1(repository) -> dict[str, dict[str, str]]:
    path = repository / "tests" / "reference" / "published" / "caliskan_2017_table_1_glove840b.tsv"
    with path.open(encoding="utf-8", newline="") as stream:
        return {f"weat{row['weat']}": row for row in csv.DictReader(stream, delimiter="\t")}


@pytest.fixture(scope="module")
def women_percent(repository) -> dict[str, float]:
    path = repository / "tests" / "reference" / "published" / "bls_percent_women_20_occupations.tsv"
    with path.open(encoding="utf-8", newline="") as stream:
        return {row["occupation"]: float(row["percent_women"]) for row in csv.DictReader(stream, delimiter="\t")}


def lattice_bracket(joint: np.ndarray, n_x: int, *, n_steps: int = 5_000) -> tuple[float, float]:
    """Bounds of p by counting subsets on a coarse lattice of sums, item by item.

    Each score is off by half a step at most, so that two sums of n_x scores are off by n_x steps at most: p lies
    between the shares of subsets whose lattice sum is n_x steps above and below the observed one.
    """
    centred = joint - joint.mean()
    ticks = np.rint(centred / np.abs(centred).max() * n_steps).astype(int)
    ticks -= ticks.min()
    n_sums = int(np.sort(ticks)[-n_x:].sum()) + 1
    ways = np.zeros((n_x + 1, n_sums))  # of a size and a sum
    ways[0, 0] = 1
    for tick in ticks:
        ways[1:, tick:] += ways[:-1, : n_sums - tick].copy()
    observed = int(ticks[:n_x].sum())
    low, high = (ways[n_x, max(observed + off, 0) :].sum() / comb(len(joint), n_x) for off in (n_x, -n_x))
    return float(low), float(high)


# ---- effect sizes


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


@pytest.mark.parametrize("test_id", ["weat1", "weat7"])
def test_four_arrays_give_the_published_effect_sizes_as_well(vectors, associations, test_id):
    assert distseat.weat(*vectors[test_id]).effect_size == associations[test_id].effect_size


# ---- p-values


def test_the_normal_p_of_weat_7_is_the_published_one(vectors, table_1):
    found = distseat.weat(*vectors["weat7"], method="normal")
    assert found.method_used == "normal"
    assert found.p_value == pytest.approx(0.0174, abs=5e-5)
    assert found.p_value == pytest.approx(float(table_1["weat7"]["p"]), abs=1e-3)


def test_the_normal_p_of_weat_1_is_of_the_published_order(vectors, table_1):
    found = distseat.weat(*vectors["weat1"], method="normal")
    assert found.p_value == pytest.approx(5.2e-8, abs=5e-10)
    assert round(np.log10(found.p_value)) == round(np.log10(float(table_1["weat1"]["p"]))) == -7


def test_weat_7_has_its_exact_p(vectors):
    found = distseat.weat(*vectors["weat7"])
    assert found.method_used == "exact"
    assert found.p_floor == 1 / comb(16, 8) == 1 / 12_870
    assert found.p_value == pytest.approx(0.0157, abs=5e-5)
    assert found.p_value == 202 / 12_870
    assert found.p_standard_error == 0


def test_the_lattice_brackets_the_exact_p_of_weat_7(associations):
    low, high = lattice_bracket(associations["weat7"].joint, 8)
    assert low <= 202 / 12_870 <= high < 1.1 * low


def test_weat_1_reaches_the_floor_of_sampling(associations):
    found = permutation_test(associations["weat1"].joint, 25, seed=seed_sequence(0), method="sampled")
    assert found.method_used == "sampled"
    assert found.p_value == found.p_floor == 1e-5  # the exact p is WEAT_1_P


@pytest.mark.parametrize("seed", range(5))
def test_importance_sampling_finds_the_p_of_weat_1_far_below_that_floor(vectors, seed):
    found = distseat.weat(*vectors["weat1"], seed=seed)
    assert found.method_used == "importance"
    assert found.p_standard_error < 0.03 * found.p_value
    assert found.p_value == pytest.approx(WEAT_1_P, abs=4 * found.p_standard_error)


def test_the_p_of_weat_1_lies_in_the_bracket_of_the_lattice(associations):
    low, high = lattice_bracket(associations["weat1"].joint, 25)
    assert low <= WEAT_1_P <= high < 1.1 * low


@pytest.mark.slow
def test_weat_1_is_counted_in_full(vectors):
    found = distseat.weat(*vectors["weat1"], method="exact")
    assert found.method_used == "exact"
    assert found.p_value == pytest.approx(WEAT_1_P, rel=1e-3)
    assert found.p_floor == 1 / comb(50, 25)


# ---- WEFAT


def test_associations_of_occupations_go_with_the_share_of_women_in_them(glove, vectors, women_percent):
    _, _, male, female = vectors["weat7"]
    W = np.array([glove[occupation] for occupation in women_percent])
    found = distseat.wefat(W, female, male, values=list(women_percent.values()), words=list(women_percent))
    assert len(W) == 20
    assert found.fit.pearson_r == pytest.approx(0.910, abs=5e-4)
    assert found.fit.spearman_rho == pytest.approx(0.878, abs=5e-4)
    assert found.fit.pearson_p < 1e-7
    association = dict(zip(women_percent, found.association, strict=True))
    assert association["hairdresser"] > 0 > association["plumber"]
