"""Whether p-values and intervals keep what they promise: the tables of docs/methods.md, in Markdown.

- Level: of data sets in which X and Y do not differ, the share with p at or below a level. Partitions are finitely
  many, so p takes only certain values; attainable is the largest of these at or below the level.
- Alike sentences: s_ij = sqrt(.9) u_i + sqrt(.1) e_ij for sentence j of word i, with the sentences a word has in the
  published C7, and a common offset. Nothing differs between X and Y but their words.
- Coverage: of data sets with a known d, the share whose interval holds it.

Data sets come in blocks with a seed each: the tables do not depend on the number of processes.

    python benchmarks/calibration.py           # some minutes on two cores
    python benchmarks/calibration.py --quick   # a twentieth of the data sets
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy starts

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import comb, floor, sqrt
from multiprocessing import get_context
from typing import Final

import numpy as np
from numpy.typing import NDArray

import distseat
from distseat.statistics import (
    Association,
    Method,
    Resamples,
    WordScores,
    effect_size_interval,
    permutation_test,
    seed_sequence,
)
from distseat.templates import load_tests

_BLOCK: Final = 250  # data sets of a task
_QUICK: Final = 20
_N_DRAWS: Final = 100_000  # of the sampled test, the observed partition among them
_MAX_ENUMERATED: Final = 100_000
_WIDEST: Final = 4.5  # standard errors of a level that is kept
_LEVEL: Final = 0.05  # of alike sentences
_ALIKE: Final = 0.9  # of the variance of sentences lies between words
_OFFSET: Final = 2.0
_N_RESAMPLES: Final = 1_999

Floats = NDArray[np.float64]
Work = Callable[[int, int], Floats]  # from a block's number and data sets to a row a data set


@dataclass(frozen=True, slots=True)
class Null:
    """Data sets without a difference, and the method that tests them."""

    method: Method
    n_words: int
    n_data_sets: int
    levels: tuple[float, ...]

    @property
    def is_counted(self) -> bool:
        """Whether p is a share of all partitions: always, but for those that are drawn unweighted."""
        return self.method != "sampled" or comb(2 * self.n_words, self.n_words) <= _MAX_ENUMERATED

    def attainable(self, level: float) -> float:
        """The largest p at or below a level."""
        total = comb(2 * self.n_words, self.n_words) if self.is_counted else _N_DRAWS
        return floor(level * total) / total


@dataclass(frozen=True, slots=True)
class Words:
    """The word of each target of a sentence test."""

    x: Sequence[str]
    y: Sequence[str]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Data sets of normal scores whose effect size d is known."""

    n_words: int
    d: float
    n_data_sets: int

    @property
    def difference(self) -> float:
        """Of the means of X and Y, in deviations within a set.

        Equal halves of two normals of variance 1 have, together, variance 1 + difference^2 / 4. So d = difference /
        sqrt(1 + difference^2 / 4), which is solved for the difference.
        """
        return self.d / sqrt(1 - self.d**2 / 4)


NULLS: Final = (
    Null("exact", 8, 200_000, (0.05, 0.01, 0.001)),
    Null("importance", 8, 20_000, (0.05, 0.01)),
    Null("sampled", 8, 20_000, (0.05, 0.01)),
    Null("sampled", 11, 20_000, (0.05, 0.01)),
)
N_ALIKE: Final = 10_000
COVERAGES: Final = tuple(Coverage(n_words, d, 2_000) for n_words in (8, 16, 32) for d in (0.0, 0.8, 1.5))


def main() -> int:
    """Measure and tell; 1 if a level that should be kept is not."""
    arguments = _arguments()
    share = _QUICK if arguments.quick else 1
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        told = partial(_in_blocks, pool)
        print(f"distseat {distseat.__version__}, numpy {np.__version__}", flush=True)
        kept = [_tell_levels(told, share), _tell_alike(told, N_ALIKE // share)]
        _tell_coverage(told, share)
    return 0 if all(kept) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Levels of p-values and coverage of intervals, by simulation.")
    parser.add_argument("--quick", action="store_true", help=f"one of {_QUICK} data sets")
    parser.add_argument("--processes", type=int, default=2, help="processes that share the work (%(default)s)")
    return parser.parse_args()


def _in_blocks(pool: ProcessPoolExecutor, work: Work, n_data_sets: int) -> Floats:
    blocks = range(-(-n_data_sets // _BLOCK))
    sizes = [min(_BLOCK, n_data_sets - block * _BLOCK) for block in blocks]
    return np.concatenate(list(pool.map(work, blocks, sizes)))


def _null_p_values(null: Null, block: int, n_data_sets: int) -> Floats:
    """Shape ``(n_data_sets, 1)``; the same data sets for every method."""
    rng = np.random.default_rng(seed_sequence("null", null.n_words, block))
    seeds = seed_sequence("null", null.method, null.n_words, block).spawn(n_data_sets)
    scores = rng.standard_normal((n_data_sets, 2 * null.n_words))
    tests = (
        permutation_test(each, null.n_words, seed=seed, method=null.method)
        for each, seed in zip(scores, seeds, strict=True)
    )
    return np.array([[test.p_value] for test in tests])


def _alike_p_values(words: Words, block: int, n_data_sets: int) -> Floats:
    """p-values of sentences and of words, shape ``(n_data_sets, 2)``."""
    seed = seed_sequence("alike", block)
    rng = np.random.default_rng(seed)
    return np.array([_alike_pair(words, rng, each) for each in seed.spawn(n_data_sets)])


def _alike_pair(words: Words, rng: np.random.Generator, seed: np.random.SeedSequence) -> tuple[float, float]:
    sentences = Association(scores_x=_alike_scores(words.x, rng), scores_y=_alike_scores(words.y, rng))
    by_word = WordScores.of(sentences, words.x, words.y).association
    p_sentences, p_words = (
        permutation_test(of.joint, len(of.scores_x), seed=each).p_value
        for of, each in zip((sentences, by_word), seed.spawn(2), strict=True)
    )
    return p_sentences, p_words


def _alike_scores(words: Sequence[str], rng: np.random.Generator) -> Floats:
    _, index = np.unique(words, return_inverse=True)
    of_words = rng.standard_normal(index.max() + 1)[index]
    return np.asarray(_OFFSET + sqrt(_ALIKE) * of_words + sqrt(1 - _ALIKE) * rng.standard_normal(len(words)))


def _covered(case: Coverage, block: int, n_data_sets: int) -> Floats:
    """Whether the BCa and the percentile interval hold d, shape ``(n_data_sets, 2)``."""
    seed = seed_sequence("coverage", case.n_words, str(case.d), block)
    rng = np.random.default_rng(seed)
    return np.array([_covered_pair(case, rng, each) for each in seed.spawn(n_data_sets)], dtype=np.float64)


def _covered_pair(case: Coverage, rng: np.random.Generator, seed: np.random.SeedSequence) -> tuple[bool, bool]:
    n = case.n_words
    words = Association(scores_x=rng.standard_normal(n) + case.difference, scores_y=rng.standard_normal(n))
    drawn = Resamples.draw((n, n), seed=seed, n_resamples=_N_RESAMPLES)
    bca, percentile = (effect_size_interval(words, drawn, method=method) for method in ("bca", "percentile"))
    return bca.low <= case.d <= bca.high, percentile.low <= case.d <= percentile.high


def _tell_levels(told: Callable[[Work, int], Floats], share: int) -> bool:
    print("\nLevel: X and Y of iid normal scores\n")
    _tell_header("method", "words", "data sets", "level", "attainable", "p <= level", "standard error", "off by, s.e.")
    off_by = []
    for null in NULLS:
        p_values = told(partial(_null_p_values, null), null.n_data_sets // share)
        counted = " (counts all)" if null.method == "sampled" and null.is_counted else ""
        for level in null.levels:
            attainable, found = null.attainable(level), float((p_values <= level).mean())
            error = sqrt(attainable * (1 - attainable) / len(p_values))
            off_by.append((found - attainable) / error)
            words = f"{null.n_words} v {null.n_words}"
            rates = (f"{attainable:.6f}", f"{found:.6f}", f"{error:.6f}", f"{off_by[-1]:+.1f}")
            _tell_row(null.method + counted, words, f"{len(p_values):,}", str(level), *rates)
    return max(map(abs, off_by)) < _WIDEST


def _tell_alike(told: Callable[[Work, int], Floats], n_data_sets: int) -> bool:
    form = next(form for form in load_tests() if (form.test_id, form.form) == ("weat7", "sent"))
    words = Words(*([stimulus.word for stimulus in form.stimuli[role]] for role in ("X", "Y")))
    shares = (told(partial(_alike_p_values, words), n_data_sets) <= _LEVEL).mean(axis=0)
    print(f"\nAlike sentences: level {_LEVEL}, {n_data_sets:,} data sets, sentences a word as in C7\n")
    _tell_header("unit", "targets", "p <= level", "standard error")
    sizes = f"{len(words.x)} v {len(words.y)}", f"{len(set(words.x))} v {len(set(words.y))}"
    for unit, size, found in zip(("stimulus", "word"), sizes, map(float, shares), strict=True):
        _tell_row(unit, size, f"{found:.4f}", f"{sqrt(found * (1 - found) / n_data_sets):.4f}")
    error = sqrt(_LEVEL * (1 - _LEVEL) / n_data_sets)
    return bool(abs(shares[1] - _LEVEL) < _WIDEST * error)


def _tell_coverage(told: Callable[[Work, int], Floats], share: int) -> None:
    print(f"\nCoverage of the 95% interval of d: words of normal scores, {_N_RESAMPLES:,} resamples\n")
    _tell_header("words", "true d", "data sets", "BCa", "percentile", "standard error")
    for case in COVERAGES:
        found = told(partial(_covered, case), case.n_data_sets // share)
        bca, percentile = (f"{rate:.3f}" for rate in found.mean(axis=0))
        error = sqrt(0.05 * 0.95 / len(found))
        _tell_row(f"{case.n_words} v {case.n_words}", str(case.d), f"{len(found):,}", bca, percentile, f"{error:.3f}")


def _tell_header(*titles: str) -> None:
    _tell_row(*titles)
    _tell_row(*["---"] * len(titles))


def _tell_row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
