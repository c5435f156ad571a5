"""Tests of one model to rows: what is measured on its vectors, p-values, intervals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from threadpoolctl import threadpool_limits

from distseat.config import ScoringOptions
from distseat.definitions import Encoding, TestForm
from distseat.errors import AssociationError
from distseat.models import ResolvedModel, VectorSpec
from distseat.scoring.measuring import Measured, ReadVectors, measure
from distseat.statistics import (
    FLOAT32_NOISE,
    Association,
    Attributes,
    PermutationTest,
    Postprocessing,
    Resamples,
    WordScores,
    effect_size_interval,
    permutation_test,
    seed_sequence,
)
from distseat.stores import ResultRow, RowWords

__all__ = ["Scored", "score_forms"]


@dataclass(frozen=True, slots=True)
class Scored:
    """A row, and the words behind it where they are known and the row is not void."""

    row: ResultRow
    words: RowWords | None


def score_forms(
    model: ResolvedModel,
    forms: Sequence[TestForm],
    specs: Sequence[VectorSpec],
    *,
    read: ReadVectors,
    options: ScoringOptions,
    postprocessings: Sequence[Postprocessing] = ("none",),
    population: Mapping[Encoding, Sequence[str]] | None = None,
) -> list[Scored]:
    """Score tests of one model on several kinds of vector; rows come in the order of vectors, postprocessing, tests.

    One layer is read at a time. BLAS runs on one thread, so that a row's bits depend on nothing but its vectors.

    Parameters
    ----------
    read
        Gives the vectors of a kind for some stimulus keys.
    options
        What is computed, and the seed of what is drawn: resamples, and partitions of method sampled, come from (seed,
        test, form, unit) whatever the model; importance samples from the model and its vectors as well.
    population
        For each encoding the keys of the stimuli that vectors are centred on, where `postprocessings` asks for it.

    Raises
    ------
    StorageError
        Vectors are missing or damaged.
    AssociationError
        A vector is zero or not finite; the message names the test, the vector and the stimulus.
    """
    with threadpool_limits(limits=1):
        measured = [
            each
            for spec in specs
            for each in measure(model, forms, spec, postprocessings, read, population or {}, options)
        ]
        scored: dict[int, Scored] = {}
        for form in forms:
            mine = [i for i, each in enumerate(measured) if each.form is form]
            scored |= dict(zip(mine, _tested(model, form, [measured[i] for i in mine], options), strict=True))
    return [scored[i] for i in range(len(measured))]


def _tested(
    model: ResolvedModel, form: TestForm, measured: Sequence[Measured], options: ScoringOptions
) -> Iterator[Scored]:
    """p-values and intervals of one form on every kind of vector; one set of resamples serves them all."""
    stream = seed_sequence(options.seed, form.test_id, form.form, "bootstrap")
    resamples: dict[tuple[int, ...], Resamples] = {}
    for each in measured:
        if each.association is None:
            yield Scored(each.row, None)
            continue
        test = _p_value(model, each.row, each.association, "stimulus", options)
        found = _p_fields(test, "")
        if each.words is not None:
            sizes = _sizes(each.words, each.attributes)
            if sizes not in resamples:
                resamples[sizes] = Resamples.draw(sizes, seed=stream)
            # With one stimulus a word both units are one test, told twice.
            is_plain = sum(sizes[:2]) == len(each.association.joint)
            by_word = test if is_plain else _p_value(model, each.row, each.words.association, "word", options)
            found |= _p_fields(by_word, "_word") | _size_fields(each.words, resamples[sizes], each.attributes, options)
        yield Scored(replace(each.row, **found), _row_words(each.row, each.words))


def _sizes(words: WordScores, attributes: Attributes | None) -> tuple[int, ...]:
    """Words of each set that is drawn from."""
    targets = (len(words.words_x), len(words.words_y))
    return (*targets, len(attributes.stimuli_a), len(attributes.stimuli_b)) if attributes else targets


def _size_fields(
    words: WordScores, resamples: Resamples, attributes: Attributes | None, options: ScoringOptions
) -> dict[str, Any]:
    """Effect size over words with its interval, and how many words there are."""
    of = words.association
    interval = effect_size_interval(of, resamples, attributes=attributes, method=options.interval)
    is_known = isfinite(interval.low) and isfinite(interval.high)
    return {
        "n_words_x": len(words.words_x),
        "n_words_y": len(words.words_y),
        "effect_size_word": of.effect_size,
        "interval_low": interval.low if is_known else None,
        "interval_high": interval.high if is_known else None,
    }


def _p_value(
    model: ResolvedModel, row: ResultRow, association: Association, unit: str, options: ScoringOptions
) -> PermutationTest:
    shared = (options.seed, row.test, row.form, unit)
    own = (model.key, row.encoding, row.pooling, row.layer, row.postprocessing)
    try:
        return permutation_test(
            association.joint,
            len(association.scores_x),
            seed=seed_sequence(*shared) if options.method == "sampled" else seed_sequence(*shared, *own),
            method=options.method,
            alternative=options.alternative,
            resolution=FLOAT32_NOISE.resolution,
        )
    except AssociationError as error:
        raise AssociationError(f"test {row.test} {row.form}: by {unit}, {error}") from error


def _p_fields(found: PermutationTest, unit: str) -> dict[str, Any]:
    return {
        f"p_value{unit}": found.p_value,
        f"log10_p{unit}": found.log10_p,
        f"p_standard_error{unit}": found.p_standard_error,
        f"p_floor{unit}": found.p_floor,
        f"p_less{unit}": found.p_less,
        f"method_used{unit}": found.method_used,
    }


def _row_words(row: ResultRow, words: WordScores | None) -> RowWords | None:
    if words is None:
        return None
    return RowWords(
        key=row.key,
        words_x=words.words_x,
        words_y=words.words_y,
        scores_x=tuple(words.association.scores_x.tolist()),
        scores_y=tuple(words.association.scores_y.tolist()),
    )
