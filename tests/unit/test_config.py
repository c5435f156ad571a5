"""A configuration is read once and checked once, and every fault is told together with its key and a way out."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from distseat.config import ModelEntry, ScoringOptions, SweepConfig, load_config
from distseat.errors import ConfigError, DistseatError, ModelError
from distseat.models import CATALOGUE, EncodingOptions, ModelSpec


@pytest.fixture
def load(tmp_path):
    """Write a text as configuration file and read it."""

    def load_text(text: str, **changes: object) -> SweepConfig:
        path = tmp_path / "sweep.yaml"
        path.write_text(text, encoding="utf-8")
        return load_config(path, **changes)

    return load_text


def faults_of(load, text: str, **changes: object) -> list[str]:
    """The lines of the error, less the first, which must count them."""
    with pytest.raises(ConfigError) as caught:
        load(text, **changes)
    first, *faults = str(caught.value).split("\n")
    assert first == f"configuration: {len(faults)} fault{'s' if len(faults) > 1 else ''}"
    return [fault.strip() for fault in faults]


def entry(**values: object) -> ModelEntry:
    return ModelEntry.model_validate(values)


# ---- what is well


def test_the_quickstart_is_a_whole_configuration(repository):
    config = load_config(repository / "examples" / "quickstart.yaml")
    assert [model.name for model in config.models] == ["all-MiniLM-L6-v2"]
    assert config.encodings == ["word", "sent", "c-word"]
    assert config.layers == ["first", "middle", "last"]
    assert config.test_ids is None
    assert (config.alpha, config.seed) == (0.01, 0)
    assert config.out == Path("out/quickstart")
    assert config.store_path == Path("out/quickstart/store")


def test_models_are_enough(load):
    config = load("models: [gpt2]\n")
    assert config.encodings == ["word", "sent", "c-word"]
    assert config.layers == ["last"]
    assert config.cword_pooling == ["first-subword"]
    assert config.tests == "all"
    assert config.test_sources == ["published"]
    assert (config.alpha, config.seed, config.device, config.threads) == (0.01, 0, "auto", 1)
    assert config.token_budget is None
    assert config.postprocessing == ["none"]
    assert (config.method, config.alternative) == ("auto", "greater")
    assert (config.interval, config.resample, config.correction) == ("bca", "targets", "holm")
    assert config.out == Path("out/sweep")


def test_a_model_is_a_name_or_a_mapping(load):
    config = load(
        "models:\n  - gpt2\n  - {name: bert-base-cased, pooling: mean, layers: 3, dtype: bfloat16}\n"
        "  - name: mine\n    source: owner/model\n    pooling: [cls, mean]\n    layers: [first, -2]\n"
    )
    assert config.models == [
        entry(name="gpt2"),
        entry(name="bert-base-cased", pooling=["mean"], layers=[3], dtype="bfloat16"),
        entry(name="mine", source="owner/model", pooling=["cls", "mean"], layers=["first", -2]),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("layers: 0", [0]),
        ("layers: -1", [-1]),
        ("layers: middle", ["middle"]),
        ("layers: all", ["all"]),
        ("layers: [first, 3, -1, last]", ["first", 3, -1, "last"]),
        ("encodings: sent", ["sent"]),
        ("encodings: [c-word, word]", ["c-word", "word"]),
        ("cword_pooling: mean-subword", ["mean-subword"]),
        ("test_sources: my/tests.yaml", ["my/tests.yaml"]),
        ("postprocessing: center", ["center"]),
        ("postprocessing: [standardize, none]", ["standardize", "none"]),
    ],
)
def test_a_value_alone_is_a_list_of_one(load, line, expected):
    assert getattr(load(f"models: [gpt2]\n{line}\n"), line.split(":")[0]) == expected


def test_tests_are_all_or_some_ids(load):
    assert load("models: [gpt2]\ntests: all\n").test_ids is None
    assert load("models: [gpt2]\ntests: [weat1, weat6b]\n").test_ids == ["weat1", "weat6b"]


def test_a_store_of_its_own_is_used(load):
    config = load("models: [gpt2]\nout: results\nstore: shared/vectors\n")
    assert (config.out, config.store_path) == (Path("results"), Path("shared/vectors"))


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("method", ["auto", "exact", "importance", "sampled", "normal"]),
        ("alternative", ["greater", "less", "two-sided"]),
        ("interval", ["bca", "percentile"]),
        ("resample", ["targets", "all"]),
        ("correction", ["holm", "bh"]),
    ],
)
def test_each_way_of_scoring_can_be_asked_for(load, key, values):
    for value in values:
        assert getattr(load(f"models: [gpt2]\n{key}: {value}\n"), key) == value


def test_scoring_knows_what_a_row_depends_on_and_nothing_of_decisions(load):
    plain = load("models: [gpt2]\n").scoring
    assert plain == ScoringOptions(seed=0, method="auto", alternative="greater", interval="bca", resample="targets")
    told = {"seed": 9, "method": "sampled", "alternative": "less", "interval": "percentile", "resample": "all"}
    text = "models: [gpt2]\n" + "".join(f"{key}: {value}\n" for key, value in told.items())
    assert dataclasses.asdict(load(text).scoring) == told
    other = load("models: [gpt2]\nalpha: 0.2\ncorrection: bh\npostprocessing: center\nlayers: all\n")
    assert other.scoring == plain


def test_what_is_not_told_of_scoring_can_be_given_later(load):
    config = load("models: [gpt2]\nmethod: exact\n", method="normal", correction="bh", interval=None)
    assert (config.method, config.correction, config.interval) == ("normal", "bh", "bca")


def test_a_configuration_comes_back_from_its_own_dump(load):
    text = "models: [gpt2]\npostprocessing: [none, center]\nmethod: exact\nalternative: two-sided\nresample: all\n"
    config = load(text)
    assert SweepConfig.model_validate(json.loads(config.model_dump_json())) == config


def test_changes_replace_the_values_of_the_file_and_none_leaves_them(load):
    text = "models: [gpt2]\nseed: 3\nout: here\n"
    config = load(text, seed=None, out=Path("there"), device="cpu", alpha=None)
    assert (config.seed, config.out, config.device, config.alpha) == (3, Path("there"), "cpu", 0.01)


def test_a_change_is_checked_as_the_file_is(load):
    (fault,) = faults_of(load, "models: [gpt2]\n", device="gpu")
    assert re.fullmatch(r"sweep\.yaml: device: .*'auto', 'cpu' or 'cuda'.*, found 'gpu'", fault)


def test_a_configuration_does_not_change_once_it_is_read(load):
    config = load("models: [gpt2]\n")
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 1


# ---- what is not


def test_all_faults_are_told_at_once_with_their_keys(load):
    faults = faults_of(
        load,
        "models: [{nam: gpt2}, {name: gpt2, pooling: [cls, meen], dtype: float8}]\n"
        "encodings: [word, words]\nlayer: last\nalpha: 1\nseed: -1\nthreads: 0\n"
        "method: exakt\ncorrection: fdr\npostprocessing: [centre]\n",
    )
    keys = [fault.removeprefix("sweep.yaml: ").split(": ")[0] for fault in faults]
    assert sorted(keys) == [
        "alpha",
        "correction",
        "encodings[1]",
        "layer",
        "method",
        "models[0].nam",
        "models[0].name",
        "models[1].dtype",
        "models[1].pooling[1]",
        "postprocessing[0]",
        "seed",
        "threads",
    ]


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("models: [gpt2]\nlayrs: last\n", "layrs", "no such key is known here; did you mean 'layers'"),
        ("models: [gpt2]\ntest_source: x\n", "test_source", "no such key .*; did you mean 'test_sources'"),
        ("models: [{name: gpt2, poling: cls}]\n", "models[0].poling", "no such key .*; did you mean 'pooling'"),
        ("models: [gpt2]\nzzzzzz: 1\n", "zzzzzz", "no such key is known here"),
        ("layers: last\n", "models", "this key is required"),
        ("{}\n", "models", "this key is required"),
        ("models: [{source: a/b}]\n", "models[0].name", "this key is required"),
        ("models: [{name: 3}]\n", "models[0].name", "a text was expected, found 3.*"),
        (
            "models: [{name: yes}]\n",
            "models[0].name",
            "a text was expected, found the yes/no value True; put .* quotes",
        ),
        ("models: [{name: ''}]\n", "models[0].name", ".*, found ''"),
        ("models: []\n", "models", ".*at least 1.*, found \\[\\]"),
        ("models: gpt2\n", "models", ".*list.*, found 'gpt2'"),
        ("models: [gpt2, 3]\n", "models[1]", ".*, found 3"),
        ("models: [gpt2]\nalpha: 0\n", "alpha", ".*greater than 0, found 0"),
        ("models: [gpt2]\nalpha: 1\n", "alpha", ".*less than 1, found 1"),
        ("models: [gpt2]\nalpha: .nan\n", "alpha", ".*, found nan"),
        ("models: [gpt2]\nalpha: 5%\n", "alpha", ".*number.*, found '5%'"),
        ("models: [gpt2]\nseed: -1\n", "seed", ".*greater than or equal to 0, found -1"),
        ("models: [gpt2]\nseed: 0.5\n", "seed", ".*(integer|whole number).*, found 0.5"),
        ("models: [gpt2]\nthreads: 0\n", "threads", ".*greater than or equal to 1, found 0"),
        ("models: [gpt2]\ntoken_budget: 0\n", "token_budget", ".*greater than or equal to 1, found 0"),
        ("models: [{name: gpt2, num_gpus: -1}]\n", "models[0].num_gpus", ".*greater than or equal to 0, found -1"),
        ("models: [gpt2]\ndevice: gpu\n", "device", ".*'auto', 'cpu' or 'cuda'.*, found 'gpu'"),
        ("models: [gpt2]\nencodings: words\n", "encodings", ".*'word', 'sent' or 'c-word'.*, found 'words'"),
        ("models: [gpt2]\nencodings: [sent, words]\n", "encodings[1]", ".*'sent' or 'c-word'.*, found 'words'"),
        ("models: [gpt2]\nencodings: []\n", "encodings", ".*at least 1.*, found \\[\\]"),
        ("models: [gpt2]\nlayers: []\n", "layers", ".*at least 1.*, found \\[\\]"),
        ("models: [gpt2]\ncword_pooling: [first]\n", "cword_pooling[0]", ".*'first-subword'.*, found 'first'"),
        ("models: [{name: gpt2, pooling: [meen]}]\n", "models[0].pooling[0]", ".*'max' or 'last'.*, found 'meen'"),
        (
            "models: [{name: gpt2, special_tokens: none}]\n",
            "models[0].special_tokens",
            ".*'include' or 'exclude'.*, found 'none'",
        ),
        ("models: [gpt2]\ntests: []\n", "tests", ".*at least 1.*, found \\[\\]"),
        ("models: [gpt2]\ntest_sources: []\n", "test_sources", ".*at least 1.*, found \\[\\]"),
        ("models: [gpt2]\nmethods: exact\n", "methods", "no such key .*; did you mean 'method'"),
        ("models: [gpt2]\nalternatives: less\n", "alternatives", "no such key .*; did you mean 'alternative'"),
        ("models: [gpt2]\nresampling: all\n", "resampling", "no such key .*; did you mean 'resample'"),
        (
            "models: [gpt2]\npost_processing: center\n",
            "post_processing",
            "no such key .*; did you mean 'postprocessing'",
        ),
        ("models: [gpt2]\ncorrections: bh\n", "corrections", "no such key .*; did you mean 'correction'"),
        (
            "models: [gpt2]\nmethod: permutation\n",
            "method",
            "'auto', 'exact', 'importance', 'sampled' or 'normal' was expected, found 'permutation'",
        ),
        ("models: [gpt2]\nmethod: [exact]\n", "method", ".*'exact', .*, found \\['exact'\\]"),
        ("models: [gpt2]\nmethod: Exact\n", "method", ".*'exact', .*, found 'Exact'"),
        (
            "models: [gpt2]\nalternative: two_sided\n",
            "alternative",
            "'greater', 'less' or 'two-sided' was expected, found 'two_sided'",
        ),
        ("models: [gpt2]\nalternative: yes\n", "alternative", "'greater', .*, found the yes/no value True"),
        ("models: [gpt2]\ninterval: BCa\n", "interval", "'bca' or 'percentile' was expected, found 'BCa'"),
        ("models: [gpt2]\ninterval: 0.95\n", "interval", "'bca' or 'percentile' was expected, found 0.95"),
        ("models: [gpt2]\nresample: words\n", "resample", "'targets' or 'all' was expected, found 'words'"),
        ("models: [gpt2]\ncorrection: bonferroni\n", "correction", "'holm' or 'bh' was expected, found 'bonferroni'"),
        ("models: [gpt2]\ncorrection: null\n", "correction", "'holm' or 'bh' was expected, found None"),
        (
            "models: [gpt2]\npostprocessing: centre\n",
            "postprocessing",
            "'none', 'center' or 'standardize' was expected, found 'centre'",
        ),
        ("models: [gpt2]\npostprocessing: [none, zca]\n", "postprocessing[1]", "'none', 'center' or .*, found 'zca'"),
        ("models: [gpt2]\npostprocessing: []\n", "postprocessing", ".*at least 1.*, found \\[\\]"),
        (
            "models: [gpt2]\npostprocessing: [center, none, center]\n",
            "postprocessing",
            "'center' stands twice; keep one, found .*",
        ),
        ("models: [gpt2]\npostprocessing: no\n", "postprocessing", "'none', .*, found the yes/no value False"),
    ],
)
def test_a_fault_is_told_with_key_expectation_and_value(load, text, key, told):
    (fault,) = faults_of(load, text)
    assert re.fullmatch(rf"sweep\.yaml: {re.escape(key)}: {told}", fault), fault


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("layers: second", "layers"),
        ("layers: [last, second]", "layers[1]"),
        ("layers: [last, 1.5]", "layers[1]"),
        ("tests: weat1", "tests"),
    ],
)
def test_one_mistake_is_one_fault_at_the_key_that_the_user_wrote(load, line, key):
    faults = faults_of(load, f"models: [gpt2]\n{line}\n")
    assert [fault.split(": ")[1] for fault in faults] == [key], faults
    assert faults[0].count("found") == 1, faults


@pytest.mark.parametrize("line", ["layers: yes", "layers: [last, no]", "seed: on", "threads: yes", "token_budget: yes"])
def test_a_yes_or_no_is_no_number(load, line):
    (fault,) = faults_of(load, f"models: [gpt2]\n{line}\n")
    assert f"sweep.yaml: {line.split(':')[0]}" in fault


@pytest.mark.parametrize("seed", [2**63, 10**30])
def test_a_seed_that_the_results_cannot_hold_is_refused_before_the_work(load, seed):
    """The column `seed` of the results is a 64-bit integer; a larger one would fail when the first rows are written."""
    (fault,) = faults_of(load, f"models: [gpt2]\nseed: {seed}\n")
    assert "seed: " in fault
    assert load(f"models: [gpt2]\nseed: {2**63 - 1}\n").seed == 2**63 - 1


@pytest.mark.parametrize("text", ["", "[]\n", "- gpt2\n", "gpt2\n", "3\n", "# nothing\n"])
def test_what_is_not_a_mapping_is_refused_with_an_example(load, text):
    with pytest.raises(ConfigError, match=r"sweep\.yaml: a mapping with the key `models` .*see examples/quickstart"):
        load(text)


def test_a_key_that_stands_twice_is_told_with_its_line(load):
    with pytest.raises(ConfigError, match=r"(?s)sweep\.yaml: is not valid YAML.*line 3.*the key 'seed' stands twice"):
        load("models: [gpt2]\nseed: 1\nseed: 2\n")
    with pytest.raises(ConfigError, match=r"(?s)key 'name' stands twice"):
        load("models: [{name: gpt2, name: gpt2-xl}]\n")


@pytest.mark.parametrize(
    "text", ["models: [gpt2\n", "models: [gpt2]\n\tseed: 1\n", "a: b: c\n", "models: [gpt2]\n\x00"]
)
def test_broken_yaml_is_told_with_its_file(load, text):
    with pytest.raises(ConfigError, match=r"sweep\.yaml: is not valid YAML: (line \d+, column \d+: )?."):
        load(text)


@pytest.mark.parametrize(
    "text", ["models: [gpt2]\nout: {{ directory }}\n", "? [models]\n: [gpt2]\n", "models: [gpt2]\n3: x\n"]
)
def test_a_key_that_is_no_text_is_told_with_its_file(load, text):
    """As in a template that nothing has filled in: {{ x }} is a mapping whose key is a mapping."""
    with pytest.raises(ConfigError, match=r"sweep\.yaml: "):
        load(text)


def test_bytes_that_are_not_utf_8_are_told_with_their_file(tmp_path):
    (tmp_path / "sweep.yaml").write_bytes(b"models: [gpt2]\nout: caf\xe9\n")
    with pytest.raises(ConfigError, match=r"sweep\.yaml: is not text in UTF-8 \(.*0xe9.*\); save it as UTF-8"):
        load_config(tmp_path / "sweep.yaml")


def test_yaml_makes_no_python_objects(load):
    with pytest.raises(ConfigError, match="is not valid YAML"):
        load("models: !!python/object/apply:os.getcwd []\n")


def test_a_missing_file_is_told_with_its_path(tmp_path):
    expected = r"absent\.yaml: cannot be read \(No such file or directory\); give a configuration file"
    with pytest.raises(ConfigError, match=expected):
        load_config(tmp_path / "absent.yaml")


def test_a_directory_is_no_configuration(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\); give a configuration file"):
        load_config(tmp_path)


def test_the_error_is_also_a_value_error():
    assert issubclass(ConfigError, ValueError)
    assert issubclass(ConfigError, DistseatError)


# ---- which model an entry means


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_name_of_the_catalogue_is_that_model(name):
    assert entry(name=name).spec() == CATALOGUE[name]


def test_an_entry_changes_what_it_names():
    options = {"dtype": "float16", "special_tokens": "exclude", "prefix_bos": True}
    spec = entry(name="gpt2", revision="v1", num_gpus=0.5, **options).spec()
    assert spec.revision == "v1"
    assert spec.num_gpus == 0.5
    assert spec.options == EncodingOptions(**options)
    assert (spec.name, spec.source, spec.pooling) == ("gpt2", "openai-community/gpt2", "last")


def test_no_gpu_at_all_can_be_asked_for():
    assert entry(name="gpt2", num_gpus=0).spec().num_gpus == 0


def test_a_hugging_face_id_is_its_own_source():
    assert entry(name="owner/model").spec() == ModelSpec(name="owner/model", source="owner/model")


def test_a_source_can_be_called_anything():
    assert entry(name="mine", source="owner/model").spec() == ModelSpec(name="mine", source="owner/model")


def test_another_source_of_a_known_name_keeps_its_pooling_and_drops_what_is_known_of_its_files():
    known = CATALOGUE["all-MiniLM-L6-v2"]
    spec = entry(name=known.name, source="owner/copy").spec()
    assert (spec.source, spec.pooling) == ("owner/copy", known.pooling)
    assert (spec.revision, spec.weights_sha256) == (None, None)


def test_a_directory_given_as_name_is_called_by_its_last_part(tmp_path):
    (tmp_path / "my-model").mkdir()
    for given in (tmp_path / "my-model", tmp_path / "." / "my-model" / ".." / "my-model"):
        spec = entry(name=str(given)).spec()
        assert spec.name == "my-model"
        assert Path(spec.source) == (tmp_path / "my-model").resolve()


def test_a_directory_relative_to_the_working_directory_is_found_from_anywhere(tmp_path, monkeypatch):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    specs = [entry(name="./models/mine").spec(), entry(name="mine", source="models/mine").spec()]
    monkeypatch.chdir(tmp_path / "elsewhere")
    for spec in specs:
        assert spec.name == "mine"
        assert Path(spec.source) == (tmp_path / "models" / "mine").resolve()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("bert-base-case", "bert-base-cased"), ("gpt-2", "gpt2"), ("all-minilm-L6-v2", "all-MiniLM-L6-v2")],
)
def test_an_unknown_name_is_told_with_the_nearest_and_what_else_can_be_given(name, hint):
    expected = rf"model '{name}' is not in the catalogue; did you mean '{hint}'; .*Hugging Face id.*directory"
    with pytest.raises(ModelError, match=expected):
        entry(name=name).spec()


def test_a_name_unlike_all_others_has_no_hint():
    with pytest.raises(ModelError, match="model 'zzz' is not in the catalogue; `distseat models list` shows all"):
        entry(name="zzz").spec()
