"""How fast sentences become vectors: distseat against the ways that people write, and against the machine.

Every published string becomes a mean-pooled vector of the last layer, with one model, one thread and float32: one text
at a time, in batches of 64 in file order, by sentence-transformers, and by distseat, which encodes each distinct text
once, in units sorted by length. No way of running this model can be faster than its matrix products: the floor is what
those of the forward pass, padding left out, take at the rate that torch reaches on the batches that really occur.

A shared machine is never equally fast for long. So the ways take turns, the rate is measured between the units of
distseat's own run, and what is told is the median over the rounds of what was compared within a round.

    python benchmarks/encode.py                     # two minutes or three; the slow ways on a sample, scaled
    python benchmarks/encode.py --full --rounds 1   # nothing is sampled: three minutes or four
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy and torch start
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the tokenizers would take every core
os.environ["HF_HUB_OFFLINE"] = "1"  # the model is on this machine; no way shall wait for a network

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
import sentence_transformers
import torch
import transformers
from numpy.typing import NDArray

import distseat
from distseat.config import CPU_TOKEN_BUDGET
from distseat.definitions import ROLES, Stimulus
from distseat.encoders.huggingface import load_huggingface
from distseat.models import CATALOGUE, ResolvedModel, VectorSpec, local_directory, resolve
from distseat.templates import load_tests

_MODEL: Final = "all-MiniLM-L6-v2"
_UNIT_STIMULI: Final = 512  # as planning cuts
_BATCH: Final = 64
_SAMPLED_TEXTS: Final = 600
_EVERY_BATCH: Final = 4
_WARM_UP: Final = 64  # texts that each way encodes before its time counts
_TOLERANCE: Final = 1e-5
_FLOOR_GOAL: Final = 0.85

Texts = Sequence[str]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to encode that distseat is compared with.

    Attributes
    ----------
    label
        As the table shows it.
    goal
        How many times faster distseat shall be.
    texts
        What is measured, in the order in which it is encoded.
    scale
        From the seconds of `texts` to those of every published string.
    encode
        From texts to vectors, shape ``(n, dimension)``.
    """

    label: str
    goal: float
    texts: Texts
    scale: float
    encode: Callable[[Texts], Vectors]


class OwnRun(NamedTuple):
    """One pass of distseat over every distinct text: its seconds, the floor's, and each text's vector."""

    seconds: float
    floor_s: float
    vectors: Mapping[str, Vectors]


class Round(NamedTuple):
    """What one round measured: seconds and largest difference by a way's label, and distseat's own run."""

    seconds: Mapping[str, float]
    differences: Mapping[str, float]
    own: OwnRun


class Own:
    """distseat's encoder, with the matrix rate measured between its units.

    Parameters
    ----------
    stimuli
        What is encoded, in the order that plans are cut in.
    """

    def __init__(self, model: ResolvedModel, stimuli: Sequence[Stimulus], *, token_budget: int) -> None:
        self.spec = VectorSpec("sent", "mean", model.n_hidden_states - 1)
        self.units = [stimuli[start : start + _UNIT_STIMULI] for start in range(0, len(stimuli), _UNIT_STIMULI)]
        self.encoder = load_huggingface(model, threads=1, token_budget=token_budget)
        self.encoder.network.register_forward_pre_hook(self._note_batch, with_kwargs=True)
        blocks = self.encoder.network.encoder.layer
        self.weights = [[m.weight for m in block.modules() if isinstance(m, torch.nn.Linear)] for block in blocks]
        self.flop = [self._forward_flop([stimulus.text for stimulus in unit]) for unit in self.units]
        self.batch_tokens: list[int] = []

    def run(self) -> OwnRun:
        """Encode every unit, and after each measure what its matrix products take without all the rest."""
        seconds = floor_s = 0.0
        vectors: dict[str, Vectors] = {}
        for unit, flop in zip(self.units, self.flop, strict=True):
            self.batch_tokens.clear()
            start = time.perf_counter()
            encoded = self.encoder.encode(unit, [self.spec])
            seconds += time.perf_counter() - start
            vectors |= zip((stimulus.text for stimulus in unit), encoded.vectors[self.spec], strict=True)
            floor_s += flop / _matrix_rate(self.weights, self.batch_tokens)
        return OwnRun(seconds, floor_s, vectors)

    def _note_batch(self, network: torch.nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:  # noqa: ARG002 - torch's signature
        self.batch_tokens.append(named["input_ids"].numel())

    def _forward_flop(self, texts: list[str]) -> int:
        """Of the linear layers, and of queries x keys and attention x values; padding is no part of it."""
        lengths = [len(ids) for ids in self.encoder.tokenizer(texts)["input_ids"]]
        n_weights = sum(weight.numel() for block in self.weights for weight in block)
        dimension: int = self.encoder.network.config.hidden_size
        attention = 4 * dimension * sum(length**2 for length in lengths)
        return int(2 * n_weights * sum(lengths) + attention * len(self.weights))


def main() -> int:
    """Measure and tell; 1 if some way's vectors differ from distseat's, whatever the times are."""
    arguments = _arguments()
    torch.set_num_threads(1)
    stimuli = [s for form in load_tests() for role in ROLES for s in form.stimuli[role]]
    model = resolve(CATALOGUE[_MODEL])
    own = Own(model, _planned(stimuli), token_budget=arguments.token_budget)
    ways = _ways(model, [stimulus.text for stimulus in stimuli], sampled=not arguments.full)
    for way in ways:
        way.encode(way.texts[:_WARM_UP])
    own.encoder.encode(own.units[-1], [own.spec])
    rounds = [_round(ways, own) for _ in range(arguments.rounds)]
    _tell_machine(arguments.token_budget)
    _tell_sampling(sampled=not arguments.full)
    _tell_times(ways, rounds, n_published=len(stimuli))
    _tell_floor(rounds, sum(own.flop))
    return _tell_differences(ways, rounds)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Seconds to encode every published string, four ways.")
    parser.add_argument("--full", action="store_true", help="measure the slow ways on every string, not on a sample")
    parser.add_argument("--rounds", type=int, default=3, help="times that every way is measured (%(default)s)")
    parser.add_argument(
        "--token-budget",
        type=int,
        default=CPU_TOKEN_BUDGET,
        help="of distseat's batches (%(default)s, a sweep's on a CPU)",
    )
    return parser.parse_args()


def _planned(stimuli: Iterable[Stimulus]) -> list[Stimulus]:
    distinct = {stimulus.key: stimulus for stimulus in stimuli}
    return sorted(distinct.values(), key=lambda s: (len(s.text), s.text, s.start, s.end))


def _ways(model: ResolvedModel, texts: Texts, *, sampled: bool) -> list[Way]:
    directory = str(local_directory(model.spec))
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    network = transformers.AutoModel.from_pretrained(directory, dtype=torch.float32).eval()
    plain = partial(_plain_transformers, tokenizer, network)
    singles = _sample_of_texts(texts) if sampled else texts
    in_batches = _sample_of_batches(texts) if sampled else texts
    padded = partial(_padded_tokens, tokenizer)
    return [
        Way("a one at a time", 25.0, singles, len(texts) / len(singles), partial(plain, batch_size=1)),
        Way("b batches of 64", 4.5, in_batches, padded(texts) / padded(in_batches), partial(plain, batch_size=_BATCH)),
        Way("c sentence-transf.", 1.1, list(dict.fromkeys(texts)), 1.0, _sentence_transformers(directory)),
    ]


def _sample_of_texts(texts: Texts) -> list[str]:
    chosen = np.random.default_rng(0).choice(len(texts), size=_SAMPLED_TEXTS, replace=False)
    return [texts[row] for row in sorted(chosen)]


def _sample_of_batches(texts: Texts) -> list[str]:
    """Whole batches as they stand in the files: what padding costs depends on which texts stand together."""
    step = _EVERY_BATCH * _BATCH
    return [text for start in range(0, len(texts), step) for text in texts[start : start + _BATCH]]


def _padded_tokens(tokenizer: Any, texts: Texts) -> int:
    """The work of batches in file order; their count would mislead, because the few long texts stand together."""
    lengths = [len(ids) for ids in tokenizer(list(texts))["input_ids"]]
    batches = [lengths[start : start + _BATCH] for start in range(0, len(lengths), _BATCH)]
    return sum(len(batch) * max(batch) for batch in batches)


def _plain_transformers(tokenizer: Any, network: Any, texts: Texts, *, batch_size: int) -> Vectors:
    pooled = []
    for start in range(0, len(texts), batch_size):
        batch = tokenizer(list(texts[start : start + batch_size]), padding=True, return_tensors="pt")
        with torch.inference_mode():
            states = network(**batch).last_hidden_state
        seen = batch["attention_mask"].unsqueeze(-1).float()
        pooled.append(((states * seen).sum(dim=1) / seen.sum(dim=1)).numpy())
    return np.concatenate(pooled)


def _sentence_transformers(directory: str) -> Callable[[Texts], Vectors]:
    """Without the model's third module, which scales vectors to length 1."""
    whole = sentence_transformers.SentenceTransformer(directory, device="cpu")
    model = sentence_transformers.SentenceTransformer(modules=list(whole)[:2], device="cpu")

    def encode(texts: Texts) -> Vectors:
        return np.asarray(model.encode(list(texts), show_progress_bar=False), dtype=np.float32)

    return encode


def _matrix_rate(blocks: Sequence[Sequence[torch.Tensor]], batch_tokens: Sequence[int]) -> float:
    """FLOP/s of the products of one block for each batch.

    The blocks take turns: a weight that the batch before did not use is not in the nearest cache, as in a forward pass.
    """
    flop, seconds = 0, 0.0
    widest = max(max(weight.shape) for weight in blocks[0])
    memory = torch.ones(2, max(batch_tokens) * widest)
    with torch.inference_mode():
        for i, rows in enumerate(batch_tokens):
            for weight in blocks[i % len(blocks)]:
                n_out, n_in = weight.shape
                states = memory[0, : rows * n_in].view(rows, n_in)
                out = memory[1, : rows * n_out].view(rows, n_out)
                start = time.perf_counter()
                torch.mm(states, weight.T, out=out)
                seconds += time.perf_counter() - start
                flop += 2 * rows * weight.numel()
    return flop / seconds


def _round(ways: Sequence[Way], own: Own) -> Round:
    seconds: dict[str, float] = {}
    vectors: dict[str, Vectors] = {}
    for way in ways:
        start = time.perf_counter()
        vectors[way.label] = way.encode(way.texts)
        seconds[way.label] = (time.perf_counter() - start) * way.scale
    run = own.run()
    differences = {way.label: _largest_difference(way.texts, vectors[way.label], run.vectors) for way in ways}
    return Round(seconds, differences, run)


def _largest_difference(texts: Texts, vectors: Vectors, own: Mapping[str, Vectors]) -> float:
    return float(np.abs(vectors - np.stack([own[text] for text in texts])).max())


def _tell_machine(token_budget: int) -> None:
    print(
        f"distseat {distseat.__version__}, torch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}), "
        f"transformers {transformers.__version__}, sentence-transformers {sentence_transformers.__version__}"
    )
    print(
        f"{_MODEL}, CPU, float32, threads: {torch.get_num_threads()}; distseat in units of {_UNIT_STIMULI} stimuli, "
        f"batches of {token_budget:,} tokens"
    )


def _tell_sampling(*, sampled: bool) -> None:
    if not sampled:
        print("every way is measured on all that it encodes")
        return
    print(
        f"measured on a sample, --full measures all: a on {_SAMPLED_TEXTS} random strings, scaled by strings, "
        f"b on every {_EVERY_BATCH}th batch, scaled by padded tokens"
    )


def _tell_times(ways: Sequence[Way], rounds: Sequence[Round], *, n_published: int) -> None:
    n_distinct = len(rounds[0].own.vectors)
    print(
        f"seconds for all {n_published:,} published strings, {n_distinct:,} of them distinct; strings/s are published"
    )
    print(f"ones; ratio is to d, in the last line the floor's share of d; medians of {len(rounds)} round(s)\n")
    print(
        f"{'way':<20}{'measured':>9}{'seconds':>9}{'strings/s':>11}{'ratio':>8}{'goal':>8}  {'met':<5}seconds by round"
    )
    for way in ways:
        by_round = [told.seconds[way.label] for told in rounds]
        ratio = median(told.seconds[way.label] / told.own.seconds for told in rounds)
        compared = f"{ratio:>7.1f}x{way.goal:>7.1f}x  {_met(ratio, way.goal):<5}"
        print(_line(way.label, len(way.texts), by_round, n_published, compared))
    print(_line("d distseat", n_distinct, [told.own.seconds for told in rounds], n_published, " " * 23))


def _line(label: str, n_measured: int, by_round: Sequence[float], n_published: int, compared: str) -> str:
    seconds = median(by_round)
    told = " ".join(f"{value:.1f}" for value in by_round)
    return f"{label:<20}{n_measured:>9,}{seconds:>9.1f}{n_published / seconds:>11,.0f}{compared}{told}"


def _tell_floor(rounds: Sequence[Round], flop: int) -> None:
    floors = [told.own.floor_s for told in rounds]
    share = median(told.own.floor_s / told.own.seconds for told in rounds)
    compared = f"{share:>8.2f}{_FLOOR_GOAL:>8.2f}  {_met(share, _FLOOR_GOAL):<5}"
    told = " ".join(f"{value:.1f}" for value in floors)
    print(f"{'floor / d':<20}{'':>9}{median(floors):>9.1f}{'':>11}{compared}{told}")
    rates = " ".join(f"{flop / value / 1e9:.0f}" for value in floors)
    print(f"\nfloor: {flop / 1e12:.3f} TFLOP of matrix products without padding; GFLOP/s by round: {rates}")


def _tell_differences(ways: Sequence[Way], rounds: Sequence[Round]) -> int:
    largest = {way.label: max(told.differences[way.label] for told in rounds) for way in ways}
    told = ", ".join(f"{label[0]} {value:.1e}" for label, value in largest.items())
    same = all(value < _TOLERANCE for value in largest.values())
    verdict = "the same vectors" if same else "ERROR: not the same vectors"
    print(f"largest difference of a vector's component from distseat's: {told} (limit {_TOLERANCE:.0e}): {verdict}")
    return 0 if same else 1


def _met(value: float, goal: float) -> str:
    return "yes" if value >= goal else "no"


if __name__ == "__main__":
    sys.exit(main())
