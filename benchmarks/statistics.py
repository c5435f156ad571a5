"""How fast p-values come: distseat against the published algorithm, on every published row, on one core.

The 98 rows are the published tests in word, sent and c-word; paragraphs are left out. distseat scores the targets and
makes the permutation test at 2% relative error and any depth. The published algorithm (May et al. 2019, appendix A) is
carried here in plain vectorised numpy: a matrix of cosines, every partition where there are 100,000 at most, else
99,999 drawn ones and the observed one, so that no p is below 1e-5. Both ways take each row in turn, on the same
vectors: first random ones, then those of the quickstart's model, whose p-values are deep. Gathering the vectors is not
timed; the kernels are compiled, and each way has run, before anything is.

    python benchmarks/statistics.py           # some minutes; reads out/quickstart/store, or encodes it first
    python benchmarks/statistics.py --quick   # every seventh row, one round
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy starts

import importlib
import sys
from pathlib import Path

if __name__ == "statistics":  # a script beside this one, whose directory Python searches first, means Python's own
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    del sys.modules[__name__]
    importlib.import_module(__name__)

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb, sqrt
from typing import Final

import numba
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import distseat
from distseat.definitions import ROLES, Encoding, Role, Stimulus, TestForm
from distseat.models import CATALOGUE, VectorSpec, resolve
from distseat.statistics import PermutationTest, associate, permutation_test, seed_sequence
from distseat.stores import EmbeddingStore
from distseat.templates import load_tests

_REPOSITORY: Final = Path(__file__).resolve().parents[1]
_MODEL: Final = "all-MiniLM-L6-v2"
_CONFIG: Final = _REPOSITORY / "examples" / "quickstart.yaml"
_STORE: Final = _REPOSITORY / "out" / "quickstart" / "store"
_DIMENSION: Final = 768
_RESOLUTION: Final = 1e-7  # as of a sweep's float32 vectors
_MAX_ENUMERATED: Final = 100_000
_N_DRAWS: Final = 99_999
_BLOCK: Final = 2048  # permutations held at once: the fastest of those tried
_EVERY_ROW: Final = 7  # of a quick run
_BIG_SET: Final = 1_000
_BIG_SHIFTS: Final = (0.0, 0.05)  # of X and A along one another: p about 1/2, and a deep one
_WIDEST: Final = 6.0  # standard errors between two estimates of one p

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
Sets = Mapping[Role, Vectors]
Lookup = Callable[[Encoding, Sequence[Stimulus]], Vectors]


@dataclass(frozen=True, slots=True)
class Row:
    """A published test in one form and one encoding."""

    form: TestForm
    encoding: Encoding

    @property
    def name(self) -> str:
        """As the tables show it."""
        return f"{self.form.test_id} {self.form.form} {self.encoding}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a row took and gave, both ways."""

    name: str
    seconds: float
    published_s: float
    test: PermutationTest
    published_p: float

    @property
    def standard_errors(self) -> float:
        """How far both p-values are apart; less than one draw of 100,000 is no difference."""
        p = self.published_p
        n = _N_DRAWS + 1
        error = sqrt(p * (1 - p) / n + self.test.p_standard_error**2 + 1 / n**2)
        return abs(p - max(self.test.p_value, 1 / n)) / error


@dataclass(frozen=True, slots=True)
class Pass:
    """All rows on vectors of one kind, once."""

    rows: Sequence[Measured]

    @property
    def seconds(self) -> float:
        """Of distseat."""
        return sum(row.seconds for row in self.rows)

    @property
    def published_s(self) -> float:
        """Of the published algorithm."""
        return sum(row.published_s for row in self.rows)


def main() -> int:
    """Measure and tell; 1 if some row's p-values disagree, whatever the times are."""
    arguments = _arguments()
    if arguments.memory is not None:
        print(_growth_of_big_test(arguments.memory))
        return 0
    step, n_rounds = (_EVERY_ROW, 1) if arguments.quick else (1, arguments.rounds)
    rows = _published_rows()[::step]
    with threadpool_limits(1), _store(arguments.store) as store:
        kinds: dict[str, Lookup] = {f"random {_DIMENSION}-d": _random_vectors, _MODEL: _stored_vectors(store, rows)}
        _warm_up()
        passes = {kind: [_pass(rows, lookup) for _ in range(n_rounds)] for kind, lookup in kinds.items()}
    _tell_setting(len(rows), n_rounds)
    for (kind, rounds), goal_s in zip(passes.items(), (5.0, 15.0), strict=True):
        _tell_times(kind, rounds, goal_s=goal_s)
    _tell_memory()
    return max([_tell_rows(kind, rounds) for kind, rounds in passes.items()])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Seconds for p-values of every published row, two ways.")
    parser.add_argument("--quick", action="store_true", help=f"every {_EVERY_ROW}th row, one round")
    parser.add_argument("--rounds", type=int, default=3, help="times that every row is measured (%(default)s)")
    parser.add_argument("--store", type=Path, default=_STORE, help="the quickstart's store (out/quickstart/store)")
    parser.add_argument("--memory", type=float, help=argparse.SUPPRESS)  # this script's own call, in a fresh process
    return parser.parse_args()


def _published_rows() -> list[Row]:
    forms = [form for form in load_tests() if not form.form.startswith("paragraph")]
    return [Row(form, encoding) for form in forms for encoding in form.encodings]


def _random_vectors(encoding: Encoding, stimuli: Sequence[Stimulus]) -> Vectors:
    """One vector for a stimulus and encoding, wherever it stands."""
    seeds = [seed_sequence("random", encoding, stimulus.key) for stimulus in stimuli]
    return np.stack([np.random.default_rng(seed).standard_normal(_DIMENSION, dtype=np.float32) for seed in seeds])


@contextmanager
def _store(path: Path) -> Iterator[EmbeddingStore]:
    """The quickstart's store, or one that is encoded now and is gone afterwards."""
    if path.is_dir():
        yield EmbeddingStore(path)
        return
    with tempfile.TemporaryDirectory() as out:
        command = [str(Path(sys.executable).with_name("distseat")), "encode", str(_CONFIG), "--out", out]
        subprocess.run(command, check=True, stdout=sys.stderr)  # noqa: S603 - the project's own command
        yield EmbeddingStore(Path(out) / "store")


def _stored_vectors(store: EmbeddingStore, rows: Sequence[Row]) -> Lookup:
    """Last layer; sentences and words pooled by the mean, words in context by their first sub-token."""
    model = resolve(CATALOGUE[_MODEL])
    stored = {}
    for encoding in dict.fromkeys(row.encoding for row in rows):
        pooling = "first-subword" if encoding == "c-word" else "mean"
        spec = VectorSpec(encoding, pooling, model.n_hidden_states - 1)
        parts = [part.name for part in store.parts(model.key, encoding) if spec in part.specs]
        forms = [row.form for row in rows if row.encoding == encoding]
        keys = frozenset(stimulus.key for form in forms for role in ROLES for stimulus in form.stimuli[role])
        stored[encoding] = store.read(model.key, spec, parts, keys)
    return lambda encoding, stimuli: stored[encoding].of([stimulus.key for stimulus in stimuli])


def _warm_up() -> None:
    """Compile or load every kernel, and touch what numpy loads late: a row that is counted, one that is drawn."""
    rng = np.random.default_rng(0)
    for n in (8, 40):
        sets: Sets = {role: rng.standard_normal((n, 32), dtype=np.float32) for role in ROLES}
        _distseat(sets, seed_sequence("warm-up", n))
        _published(sets, rng)


def _pass(rows: Sequence[Row], lookup: Lookup) -> Pass:
    measured = []
    for row in rows:
        sets: Sets = {role: lookup(row.encoding, row.form.stimuli[role]) for role in ROLES}
        seed = seed_sequence(0, row.form.test_id, row.form.form, row.encoding)
        start = time.perf_counter()
        test = _distseat(sets, seed)
        between = time.perf_counter()
        published_p = _published(sets, np.random.default_rng(seed))
        end = time.perf_counter()
        measured.append(Measured(row.name, between - start, end - between, test, published_p))
    return Pass(measured)


def _distseat(sets: Sets, seed: np.random.SeedSequence) -> PermutationTest:
    association = associate(sets["X"], sets["Y"], a=sets["A"], b=sets["B"])
    return permutation_test(association.joint, len(sets["X"]), seed=seed, resolution=_RESOLUTION)


def _published(sets: Sets, rng: np.random.Generator) -> float:
    """The p-value of May et al. (2019), appendix A.

    With the sizes fixed, sum_X s - sum_Y s rises with the sum over X alone. The smallest of a row of random keys stand
    at the places of a random subset: partitioning them is faster than `rng.permuted`, which shuffles whole rows.
    """
    x, a = sets["X"], sets["A"]
    cosines = _unit(np.concatenate([x, sets["Y"]])) @ _unit(np.concatenate([a, sets["B"]])).T
    scores = cosines[:, : len(a)].mean(axis=1) - cosines[:, len(a) :].mean(axis=1)
    n, n_x = len(scores), len(x)
    observed = scores[:n_x].sum()
    if comb(n, n_x) <= _MAX_ENUMERATED:
        chosen = np.fromiter(chain.from_iterable(combinations(range(n), n_x)), dtype=np.intp).reshape(-1, n_x)
        return float((scores[chosen].sum(axis=1) >= observed).mean())
    n_at_least = 1
    for start in range(0, _N_DRAWS, _BLOCK):
        keys = rng.random((min(_BLOCK, _N_DRAWS - start), n), dtype=np.float32)
        chosen = np.argpartition(keys, n_x, axis=1)[:, :n_x]
        n_at_least += int((scores[chosen].sum(axis=1) >= observed).sum())
    return n_at_least / (_N_DRAWS + 1)


def _unit(vectors: Vectors) -> Floats:
    wide = vectors.astype(np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))


def _growth_of_big_test(shift: float) -> str:
    """Bytes of memory that a process gains at its peak by a test of 1,000 v 1,000, vectors included, and its p."""
    before = _status_bytes("VmRSS")
    rng = np.random.default_rng(0)
    with threadpool_limits(1):
        sets = {role: rng.standard_normal((_BIG_SET, _DIMENSION), dtype=np.float32) for role in ROLES}
        sets["X"] += shift
        sets["A"] += shift
        association = associate(sets["X"], sets["Y"], a=sets["A"], b=sets["B"])
        seed = seed_sequence("memory")
        test = permutation_test(association.joint, _BIG_SET, seed=seed, method="importance", resolution=_RESOLUTION)
    return f"{_status_bytes('VmHWM') - before} {test.log10_p}"


def _status_bytes(field: str) -> int:
    """A line of Linux's account of this process; `ru_maxrss` would begin with the peak of the process that forked."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def _tell_setting(n_rows: int, n_rounds: int) -> None:
    print(f"distseat {distseat.__version__}, numpy {np.__version__}, numba {numba.__version__}; one core, one thread")
    print(f"{n_rows} published rows: scores and p-values, 2% relative error at any depth, resolution {_RESOLUTION:.0e}")
    print("published algorithm: plain vectorised numpy, 100,000 permutations, no p below 1e-5; the same vectors")
    print(f"kernels compiled and both ways run before anything is timed; medians of {n_rounds} round(s)\n")
    print(f"{'what':<48}{'measured':>10}{'goal':>8}  {'met':<5}by round")


def _tell_times(kind: str, rounds: Sequence[Pass], *, goal_s: float) -> None:
    own, published = [each.seconds for each in rounds], [each.published_s for each in rounds]
    ratios = [theirs / ours for ours, theirs in zip(own, published, strict=True)]
    _tell_line(f"{kind}: distseat, s", own, f"< {goal_s:.0f}", is_met=float(np.median(own)) < goal_s)
    _tell_line(f"{kind}: published algorithm, s", published, "", is_met=None)
    _tell_line(f"{kind}: times faster", ratios, ">= 5", is_met=float(np.median(ratios)) >= 5)


def _tell_line(what: str, by_round: Sequence[float], goal: str, *, is_met: bool | None) -> None:
    met = {None: "", True: "yes", False: "no"}[is_met]
    told = " ".join(f"{value:.2f}" for value in by_round)
    print(f"{what:<48}{np.median(by_round):>10.2f}{goal:>8}  {met:<5}{told}")


def _tell_memory() -> None:
    for shift in _BIG_SHIFTS:
        command = [sys.executable, __file__, "--memory", str(shift)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this script itself
        growth, log10_p = map(float, done.stdout.split())
        what = f"memory of {_BIG_SET} v {_BIG_SET}, p = 1e{log10_p:.1f}, MB"
        _tell_line(what, [growth / 1e6], "< 300", is_met=growth < 300e6)
    print("memory: growth at the peak since the imports of a fresh process, importance sampling, vectors included")


def _tell_rows(kind: str, rounds: Sequence[Pass]) -> int:
    """What stands behind the totals, of the first round; 1 if both ways disagree."""
    rows = rounds[0].rows
    deepest = min(rows, key=lambda row: row.test.log10_p)
    slowest = max(rows, key=lambda row: row.seconds)
    furthest = max(rows, key=lambda row: row.standard_errors)
    n_beyond = sum(row.test.log10_p < -5 for row in rows)
    methods = [row.test.method_used for row in rows]
    counts = ", ".join(f"{methods.count(method)} {method}" for method in sorted(set(methods)))
    print(f"\n{kind}: {counts}; {n_beyond} of {len(rows)} rows have p < 1e-5")
    print(f"  smallest: log10 p = {deepest.test.log10_p:.1f} ({deepest.name})")
    print(f"  slowest: {slowest.seconds:.2f} s ({slowest.name}, log10 p = {slowest.test.log10_p:.1f})")
    verdict = "they agree" if furthest.standard_errors < _WIDEST else "ERROR: they disagree"
    print(
        f"  largest difference of both ways' p: {furthest.standard_errors:.1f} standard errors ({furthest.name}: "
        f"{furthest.test.p_value:.3g} and {furthest.published_p:.3g}; limit {_WIDEST:.0f}): {verdict}"
    )
    return int(furthest.standard_errors >= _WIDEST)


if __name__ == "__main__":
    sys.exit(main())
