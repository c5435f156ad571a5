"""The Hugging Face encoder against plain, separate transformers calls, one text at a time."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from distseat.definitions import Stimulus
from distseat.encoders.huggingface import HuggingFaceEncoder, load_huggingface
from distseat.encoders.pooling import subtoken_positions
from distseat.errors import EncodingError, ModelError
from distseat.models import CATALOGUE, EncodingOptions, ModelSpec, VectorSpec, resolve

FAMILIES = ("bert", "gpt", "gpt2", "llama")
SENT = [VectorSpec("sent", pooling, layer) for pooling in ("cls", "mean", "max", "last") for layer in (0, 1, 3)]
CWORD = [
    VectorSpec("c-word", rule, layer)
    for rule in ("first-subword", "last-subword", "mean-subword")
    for layer in (0, 1, 3)
]
TEXTS = ("Ebony", "This is Leroy.", "The woman of color is here.", "Caterpillars are things.", "They are sick.")


def spec_of(directory: Path, **options: object) -> ModelSpec:
    return ModelSpec(name="tiny", source=str(directory), options=EncodingOptions(**options))


def encoder_of(directory: Path, *, token_budget: int = 1024, **options: object) -> HuggingFaceEncoder:
    return load_huggingface(resolve(spec_of(directory, **options)), token_budget=token_budget)


def stimulus(text: str, word: str) -> Stimulus:
    start = text.index(word)
    return Stimulus(text, word, start, start + len(word))


def plain_states(directory: Path, text: str) -> tuple[list[int], np.ndarray]:
    """Token ids and hidden states, shape (layers, tokens, dimension), of a text alone: no batch, no padding."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModel.from_pretrained(directory).eval()
    ids = tokenizer(text)["input_ids"]
    with torch.no_grad():
        output = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    return ids, torch.stack(output.hidden_states)[:, 0].numpy()


def pooled(states_td: np.ndarray, pooling: str) -> np.ndarray:
    oracle = {
        "cls": lambda: states_td[0],
        "mean": lambda: states_td.mean(axis=0),
        "max": lambda: states_td.max(axis=0),
        "last": lambda: states_td[-1],
    }
    return oracle[pooling]()


@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_vectors_equal_a_plain_call_on_the_text_alone(family, tiny_model):
    directory = tiny_model(family)
    stimuli = [Stimulus(text, text, 0, len(text)) for text in TEXTS]
    encoded = encoder_of(directory).encode(stimuli, SENT)
    for row, text in enumerate(TEXTS):
        _, states = plain_states(directory, text)
        for spec in SENT:
            np.testing.assert_allclose(
                encoded.vectors[spec][row],
                pooled(states[spec.layer], spec.pooling),
                atol=1e-5,
                err_msg=f"{text} {spec}",
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_never_changes_a_vector(family, tiny_model, published_stimuli):
    sample = published_stimuli[:: len(published_stimuli) // 60]
    batched = encoder_of(tiny_model(family), token_budget=4096).encode(sample, [*SENT, *CWORD])
    alone = encoder_of(tiny_model(family), token_budget=1)
    for row, one in enumerate(sample):
        single = alone.encode([one], [*SENT, *CWORD])
        for spec in (*SENT, *CWORD):
            assert np.abs(single.vectors[spec][0] - batched.vectors[spec][row]).max() < 1e-5, (one.text, spec)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_published_words_are_found_at_their_first_letter(family, tiny_model, published):
    """For every published c-word stimulus: the chosen sub-token holds the first letter of the span, no earlier one."""
    encoder = encoder_of(tiny_model(family))
    stimuli = {s.key: s for f in published if "c-word" in f.encodings for role in f.stimuli.values() for s in role}
    tokens = encoder._tokenize([s.text for s in stimuli.values()])
    for one, token in zip(stimuli.values(), tokens, strict=True):
        first = subtoken_positions(token.offsets, token.names, token.special, one.start, one.end)[0]
        start, end = token.offsets[first]
        assert start <= one.start < end, (one, token)
        assert one.text[start:end].strip().startswith(one.text[one.start]), (one, token)


@pytest.mark.parametrize("family", FAMILIES)
def test_cword_vectors_are_the_states_of_the_words_own_tokens(family, tiny_model):
    directory = tiny_model(family)
    stimuli = [stimulus("This is Leroy.", "Leroy"), stimulus("The bagpipe is there.", "bagpipe")]
    encoded = encoder_of(directory).encode(stimuli, CWORD)
    for row, one in enumerate(stimuli):
        _, states = plain_states(directory, one.text)
        inside = tokens_of_word(directory, one)
        for spec in CWORD:
            expected = {
                "first-subword": states[spec.layer][inside[0]],
                "last-subword": states[spec.layer][inside[-1]],
                "mean-subword": states[spec.layer][inside].mean(axis=0),
            }[spec.pooling]
            np.testing.assert_allclose(encoded.vectors[spec][row], expected, atol=1e-5)
        assert encoded.n_subtokens[row] == len(inside)
        assert encoded.positions["c-word", "first-subword"][row] == inside[0]
        assert encoded.positions["c-word", "mean-subword"][row] == -1


def tokens_of_word(directory: Path, one: Stimulus) -> list[int]:
    """An independent way to a word's tokens: the tokens that go when the text before it and after it is decoded."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    offsets = tokenizer(one.text, return_offsets_mapping=True)["offset_mapping"]
    letters = [set(range(a, b)) & set(range(one.start, one.end)) for a, b in offsets]
    return [position for position, shared in enumerate(letters) if shared]


def test_each_vector_is_the_same_whatever_else_is_asked_for(tiny_model, published_stimuli):
    encoder = encoder_of(tiny_model("bert"))
    some = published_stimuli[100:140]
    both = encoder.encode(some, [*SENT, *CWORD])
    for spec in (SENT[3], CWORD[2]):
        np.testing.assert_array_equal(encoder.encode(some, [spec]).vectors[spec], both.vectors[spec])


def test_the_same_unit_gives_the_same_bits(tiny_model, published_stimuli):
    some = published_stimuli[:64]
    one, two = (encoder_of(tiny_model("gpt2")).encode(some, SENT) for _ in range(2))
    for spec in SENT:
        np.testing.assert_array_equal(one.vectors[spec], two.vectors[spec])


def test_excluded_special_tokens_are_not_averaged(tiny_model):
    directory = tiny_model("bert")
    _, states = plain_states(directory, "This is Leroy.")
    specs = [VectorSpec("sent", pooling, 3) for pooling in ("mean", "last", "max")]
    encoded = encoder_of(directory, special_tokens="exclude").encode([stimulus("This is Leroy.", "Leroy")], specs)
    np.testing.assert_allclose(encoded.vectors[specs[0]][0], states[3][1:-1].mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(encoded.vectors[specs[1]][0], states[3][-2], atol=1e-5)
    np.testing.assert_allclose(encoded.vectors[specs[2]][0], states[3][1:-1].max(axis=0), atol=1e-5)


def test_a_prefixed_beginning_moves_every_position_by_one(tiny_model):
    directory = tiny_model("gpt2")
    one = stimulus("Leroy is here.", "Leroy")
    spec = VectorSpec("c-word", "first-subword", 3)
    bare = encoder_of(directory).encode([one], [spec])
    prefixed = encoder_of(directory, prefix_bos=True).encode([one], [spec])
    assert bare.positions["c-word", "first-subword"][0] == 0
    assert prefixed.positions["c-word", "first-subword"][0] == 1
    assert np.abs(bare.vectors[spec] - prefixed.vectors[spec]).max() > 1e-3


def test_a_beginning_that_the_tokenizer_adds_itself_is_not_added_twice(tiny_model):
    one, spec = stimulus("Leroy is here.", "Leroy"), VectorSpec("c-word", "first-subword", 3)
    prefixed = encoder_of(tiny_model("llama"), prefix_bos=True).encode([one], [spec])
    np.testing.assert_array_equal(
        prefixed.vectors[spec], encoder_of(tiny_model("llama")).encode([one], [spec]).vectors[spec]
    )


def test_a_tokenizer_without_a_beginning_refuses_prefix_bos(tiny_model):
    with pytest.raises(ModelError, match="no beginning-of-sequence token; leave prefix_bos out"):
        encoder_of(tiny_model("gpt"), prefix_bos=True)


def test_one_text_with_two_spans_is_one_text_and_two_words(tiny_model):
    text = "The woman of color is here."
    two = [stimulus(text, "woman"), stimulus(text, "color")]
    spec = VectorSpec("c-word", "first-subword", 3)
    encoded = encoder_of(tiny_model("bert")).encode(two, [spec, SENT[0]])
    assert np.abs(encoded.vectors[spec][0] - encoded.vectors[spec][1]).max() > 1e-3
    np.testing.assert_array_equal(encoded.vectors[SENT[0]][0], encoded.vectors[SENT[0]][1])


def test_a_word_that_the_tokenizer_drops_is_named(tiny_model):
    zero_width = Stimulus("This is \u200d here.", "\u200d", 8, 9)
    with pytest.raises(EncodingError, match=r"tiny: .*drops its word .*remove the word, or leave c-word out"):
        encoder_of(tiny_model("bert")).encode([zero_width], CWORD)


def test_a_text_of_which_nothing_is_left_is_named(tiny_model):
    with pytest.raises(EncodingError, match="makes no token of it"):
        encoder_of(tiny_model("bert")).encode([Stimulus("\u200d", "\u200d", 0, 1)], SENT)


def test_a_text_too_long_for_the_model_is_refused_and_not_cut(tiny_model):
    long = "They are sick. " * 300
    with pytest.raises(EncodingError, match=r"tokens and the model reads 512; shorten it"):
        encoder_of(tiny_model("bert")).encode([Stimulus(long, "They", 0, 4)], SENT)


def test_a_vector_that_is_not_finite_is_named(tiny_model, tmp_path):
    directory = shutil.copytree(tiny_model("bert"), tmp_path / "infinite")
    model = transformers.AutoModel.from_pretrained(directory)
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias.fill_(torch.inf)
    model.save_pretrained(directory)
    with pytest.raises(EncodingError, match=r"'This is Leroy\.': its vector at layer 3 is not finite"):
        encoder_of(directory).encode([stimulus("This is Leroy.", "Leroy")], [SENT[2]])


def test_weights_that_the_files_lack_are_not_drawn_at_random(tiny_model, tmp_path):
    directory = shutil.copytree(tiny_model("bert"), tmp_path / "deeper")
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
    with pytest.raises(ModelError, match=r"its files lack \d+ weights, such as encoder\.layer\.3"):
        encoder_of(directory)


def test_a_damaged_weights_file_is_a_model_error(tiny_model, tmp_path):
    directory = shutil.copytree(tiny_model("bert"), tmp_path / "cut")
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(ModelError, match=r"tiny at sha256:.* cannot be loaded"):
        encoder_of(directory)


def test_bfloat16_is_near_float32_and_said(tiny_model, published_stimuli):
    some = published_stimuli[:32]
    full = encoder_of(tiny_model("bert")).encode(some, [SENT[5]]).vectors[SENT[5]]
    half = encoder_of(tiny_model("bert"), dtype="bfloat16").encode(some, [SENT[5]]).vectors[SENT[5]]
    assert half.dtype == np.float32
    assert 0 < np.abs(full - half).max() < 0.1 * np.abs(full).max()
    assert spec_of(tiny_model("bert")).options != spec_of(tiny_model("bert"), dtype="bfloat16").options


def test_the_real_model_gives_the_vectors_of_sentence_transformers(published_stimuli):
    from sentence_transformers import SentenceTransformer

    model = resolve(CATALOGUE["all-MiniLM-L6-v2"])
    texts = [s.text for s in published_stimuli[::100]]
    spec = VectorSpec("sent", "mean", 6)
    ours = load_huggingface(model).encode([Stimulus(t, t, 0, len(t)) for t in texts], [spec]).vectors[spec]
    from distseat.models import local_directory

    theirs = SentenceTransformer(str(local_directory(model.spec)), device="cpu").encode(texts)
    ours = ours / np.linalg.norm(ours, axis=1, keepdims=True)
    assert np.abs(ours - theirs / np.linalg.norm(theirs, axis=1, keepdims=True)).max() < 1e-5


@pytest.fixture
def hub(tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hugging Face cache that holds org/tiny at one commit, and no way to the hub."""
    import huggingface_hub.constants

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--org--tiny"
    shutil.copytree(tiny_model("bert"), repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return repository


def test_a_hub_id_is_resolved_to_its_commit_and_loaded_at_it(hub):
    model = resolve(ModelSpec(name="org/tiny", source="org/tiny"))
    assert (model.revision, model.n_hidden_states) == ("0123456789abcdef0123456789abcdef01234567", 4)
    encoded = load_huggingface(model).encode([stimulus("This is Leroy.", "Leroy")], [SENT[0]])
    assert encoded.vectors[SENT[0]].shape == (1, 48)


def test_an_unknown_revision_is_told(hub):
    with pytest.raises(
        ModelError, match="org/tiny at revision v9 is not in the local cache and the hub cannot be reached"
    ):
        resolve(ModelSpec(name="org/tiny", source="org/tiny", revision="v9"))


def test_a_hub_model_without_safetensors_is_refused_before_anything_runs(hub):
    for weights in hub.glob("snapshots/*/*.safetensors"):
        weights.unlink()
    with pytest.raises(ModelError, match=r"no \.safetensors file .*other formats can run code.*save_pretrained"):
        resolve(ModelSpec(name="org/tiny", source="org/tiny"))
