"""Any Hugging Face encoder or decoder: every asked layer of `word`, `sent` and `c-word` from one forward pass a text.

Only safetensors are loaded and no code of a model repository is run. Texts are padded on the right and masked, whatever
the tokenizer would do, so that padding never changes a vector; a unit's texts are sorted by length and batched by a
budget of tokens, so that there is little of it.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from distseat import __version__
from distseat.config import CPU_TOKEN_BUDGET
from distseat.definitions import Encoding, Stimulus
from distseat.encoders.pooling import pool, pooled_positions, subtoken_positions
from distseat.errors import EncodingError, ModelError
from distseat.models import ResolvedModel, VectorSpec, local_directory
from distseat.stores import EncodedUnit

__all__ = ["HuggingFaceEncoder", "load_huggingface"]

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_NO_PAD_TOKEN = 0  # masked, so any id will do
_MAX_PADDING = 24  # tokens that one step of length may add to a batch: beyond it a further call costs less


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """One text as the model reads it.

    Attributes
    ----------
    ids
        Token ids, special tokens included.
    special
        Whether each token was added by the tokenizer and stands for no text.
    offsets
        Character span of each token; None from a tokenizer that does not tell.
    names
        Each token as the vocabulary writes it.
    """

    ids: list[int]
    special: list[bool]
    offsets: list[tuple[int, int]] | None
    names: list[str]


def load_huggingface(
    model: ResolvedModel, *, device: str = "cpu", threads: int = 1, token_budget: int = CPU_TOKEN_BUDGET
) -> "HuggingFaceEncoder":
    """Load a model and its tokenizer at the exact revision.

    Parameters
    ----------
    device
        A torch device, as "cpu" or "cuda".
    threads
        CPU threads for torch in this process; vectors may differ in the last bit between numbers of threads.
    token_budget
        Most tokens, padding included, in one forward pass; a longer single text goes alone.

    Raises
    ------
    ModelError
        Files that are missing, damaged or not safetensors.
    """
    torch.set_num_threads(threads)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    spec = model.spec
    directory = local_directory(spec)
    source = str(directory) if directory else spec.source
    pinned: dict[str, Any] = {"local_files_only": True} if directory else {"revision": model.revision}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, **pinned)
        network, report = AutoModel.from_pretrained(
            source,
            dtype=_DTYPES[spec.options.dtype],
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **pinned,
        )
    except Exception as error:
        raise ModelError(f"model {spec.name} at {model.revision} cannot be loaded: {error}") from error
    _check_loaded(spec.name, report)
    if device == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            f"model {spec.name}: this machine has a GPU, but torch {torch.__version__} cannot use it; install the CUDA "
            "build of torch, or set `device: cpu`"
        )
    return HuggingFaceEncoder(model, tokenizer, network.eval().to(device), token_budget=token_budget)


class HuggingFaceEncoder:
    """A loaded transformer and its tokenizer.

    Parameters
    ----------
    model
        What was loaded.
    tokenizer, network
        From transformers; the network in eval mode on its device.
    token_budget
        Most tokens, padding included, in one forward pass.
    """

    def __init__(self, model: ResolvedModel, tokenizer: Any, network: Any, *, token_budget: int) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.network = network
        self.token_budget = token_budget
        self._max_tokens = _max_tokens(tokenizer, network.config)
        if model.spec.options.prefix_bos and tokenizer.bos_token_id is None:
            raise ModelError(
                f"model {model.spec.name}: prefix_bos is set, but its tokenizer has no beginning-of-sequence token; "
                "leave prefix_bos out"
            )

    @property
    def about(self) -> Mapping[str, str]:
        """Tokenizer, versions, device and threads: what the same bits need to be the same."""
        device = self.network.device
        options = {key: str(value) for key, value in asdict(self.model.spec.options).items()}
        return options | {
            "tokenizer": type(self.tokenizer).__name__,
            "distseat": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
            "threads": str(torch.get_num_threads()),
            "token_budget": str(self.token_budget),
        }

    def encode(self, stimuli: Sequence[Stimulus], specs: Sequence[VectorSpec]) -> EncodedUnit:
        """Encode stimuli, each distinct text once, into every asked vector.

        Raises
        ------
        EncodingError
            A text without tokens or too long for the model, a word that the tokenizer drops, a vector that is not
            finite.
        """
        texts = list(dict.fromkeys(stimulus.text for stimulus in stimuli))
        tokens = dict(zip(texts, self._tokenize(texts), strict=True))
        words = [self._word_tokens(stimulus, tokens[stimulus.text], specs) for stimulus in stimuli]
        parts = self._forward(stimuli, tokens, words, specs)
        vectors = {spec: _gathered(parts[spec], len(stimuli)) for spec in specs}
        self._check_finite(stimuli, vectors)
        return EncodedUnit(
            vectors=vectors,
            n_subtokens=np.array([len(word) or -1 for word in words], dtype=np.int32),
            positions=self._positions(stimuli, tokens, words, specs),
            n_tokens=sum(len(token.ids) for token in tokens.values()),
        )

    def _tokenize(self, texts: list[str]) -> list[TokenizedText]:
        fast = self.tokenizer.is_fast
        encoded = self.tokenizer(
            texts,
            padding=False,
            truncation=False,
            return_attention_mask=False,
            return_special_tokens_mask=True,
            return_offsets_mapping=fast,
        )
        return [self._tokenized(text, encoded, i) for i, text in enumerate(texts)]

    def _tokenized(self, text: str, encoded: Any, i: int) -> TokenizedText:
        ids: list[int] = list(encoded["input_ids"][i])
        special = [bool(flag) for flag in encoded["special_tokens_mask"][i]]
        offsets = [tuple(span) for span in encoded["offset_mapping"][i]] if self.tokenizer.is_fast else None
        if all(special):
            raise self._refused(text, "the tokenizer makes no token of it; remove it from its set")
        if self.model.spec.options.prefix_bos and ids[0] != self.tokenizer.bos_token_id:
            ids, special = [self.tokenizer.bos_token_id, *ids], [True, *special]
            offsets = [(0, 0), *offsets] if offsets is not None else None
        if len(ids) > self._max_tokens:
            raise self._refused(text, f"it has {len(ids)} tokens and the model reads {self._max_tokens}; shorten it")
        return TokenizedText(ids, special, offsets, self.tokenizer.convert_ids_to_tokens(ids))

    def _word_tokens(self, stimulus: Stimulus, tokens: TokenizedText, specs: Sequence[VectorSpec]) -> list[int]:
        """Positions of the sub-tokens of a stimulus's word; empty where nothing is known and nothing is asked."""
        asked = any(spec.encoding == "c-word" for spec in specs)
        if tokens.offsets is None:
            if asked:
                raise ModelError(
                    f"model {self.model.spec.name}: its tokenizer does not tell which characters a token stands for, "
                    "which c-word needs; leave c-word out of its encodings"
                )
            return []
        found = subtoken_positions(tokens.offsets, tokens.names, tokens.special, stimulus.start, stimulus.end)
        if asked and not found:
            raise self._refused(
                stimulus.text, f"the tokenizer drops its word {stimulus.word!r}; remove the word, or leave c-word out"
            )
        return found

    def _forward(
        self,
        stimuli: Sequence[Stimulus],
        tokens: Mapping[str, TokenizedText],
        words: Sequence[list[int]],
        specs: Sequence[VectorSpec],
    ) -> dict[VectorSpec, list[tuple[list[int], NDArray[np.float32]]]]:
        parts: dict[VectorSpec, list[tuple[list[int], NDArray[np.float32]]]] = {spec: [] for spec in specs}
        for rows in _batches([len(tokens[stimulus.text].ids) for stimulus in stimuli], self.token_budget):
            batch_texts = list(dict.fromkeys(stimuli[row].text for row in rows))
            line = {text: i for i, text in enumerate(batch_texts)}
            hidden, real, special = self._hidden_states([tokens[text] for text in batch_texts])
            at = torch.tensor([line[stimuli[row].text] for row in rows], device=hidden[0].device)
            seen = real & ~special if self.model.spec.options.special_tokens == "exclude" else real
            for spec in specs:
                state = hidden[spec.layer]
                if spec.encoding == "c-word":
                    pooled = pool(spec.pooling, state[at], seen[at], [words[row] for row in rows])
                else:
                    pooled = pool(spec.pooling, state, seen, [])[at]
                parts[spec].append((rows, pooled.float().cpu().numpy()))
        return parts

    def _hidden_states(
        self, tokens: Sequence[TokenizedText]
    ) -> tuple[tuple[torch.Tensor, ...], torch.Tensor, torch.Tensor]:
        """Hidden states of every layer, shape ``(n, longest, dimension)``, and which tokens are real, and special."""
        longest = max(len(token.ids) for token in tokens)
        pad = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else _NO_PAD_TOKEN
        lacking = [longest - len(token.ids) for token in tokens]
        ids = torch.tensor([token.ids + [pad] * n for token, n in zip(tokens, lacking, strict=True)])
        special = torch.tensor([token.special + [False] * n for token, n in zip(tokens, lacking, strict=True)])
        real = torch.tensor([[True] * (longest - n) + [False] * n for n in lacking])
        device = self.network.device
        ids, real, special = ids.to(device), real.to(device), special.to(device)
        with torch.inference_mode():
            output = self.network(input_ids=ids, attention_mask=real.long(), output_hidden_states=True)
        if len(output.hidden_states) != self.model.n_hidden_states:
            raise ModelError(
                f"model {self.model.spec.name}: gives {len(output.hidden_states)} hidden states, but its config.json "
                f"tells of {self.model.n_hidden_states}; layers cannot be told apart"
            )
        return output.hidden_states, real, special

    def _positions(
        self,
        stimuli: Sequence[Stimulus],
        tokens: Mapping[str, TokenizedText],
        words: Sequence[list[int]],
        specs: Sequence[VectorSpec],
    ) -> dict[tuple[Encoding, str], NDArray[np.int32]]:
        exclude = self.model.spec.options.special_tokens == "exclude"
        specials = [tokens[stimulus.text].special for stimulus in stimuli]
        return {
            (spec.encoding, spec.pooling): pooled_positions(spec.pooling, specials, words, exclude_special=exclude)
            for spec in specs
        }

    def _check_finite(self, stimuli: Sequence[Stimulus], vectors: Mapping[VectorSpec, NDArray[np.float32]]) -> None:
        for spec, values in vectors.items():
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if bad.size:
                raise self._refused(
                    stimuli[bad[0]].text,
                    f"its vector at layer {spec.layer} is not finite; use dtype float32, and check the weights",
                )

    def _refused(self, text: str, reason: str) -> EncodingError:
        told = text if len(text) <= 80 else text[:77] + "..."  # noqa: PLR2004 - a line of a terminal
        return EncodingError(f"model {self.model.spec.name}: {told!r}: {reason}")


def _check_loaded(name: str, report: Mapping[str, Any]) -> None:
    """A weight that the files lack would be drawn at random; only a head that no hidden state passes may be missing."""
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise ModelError(
            f"model {name}: its files lack {len(missing)} weights, such as {missing[0]}; "
            "they are damaged or of another architecture than config.json says: fetch them again"
        )


def _processor() -> str:
    """The CPU's model and the vector instructions that torch takes: what bits of float32 depend on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return " ".join([*names[:1], torch.backends.cpu.get_cpu_capability()])


def _max_tokens(tokenizer: Any, config: Any) -> int:
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    return min((int(limit) for limit in limits if limit and limit > 0), default=sys.maxsize)


def _batches(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Rows in order of length, cut so that a batch padded to its longest keeps within the budget and pads little."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        padding = len(batch) * (lengths[row] - lengths[batch[-1]]) if batch else 0
        if batch and ((len(batch) + 1) * lengths[row] > token_budget or padding > _MAX_PADDING):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _gathered(parts: Sequence[tuple[list[int], NDArray[np.float32]]], n: int) -> NDArray[np.float32]:
    gathered = np.empty((n, parts[0][1].shape[1]), dtype=np.float32)
    for rows, vectors in parts:
        gathered[rows] = vectors
    return gathered
