"""YAML, read so that nothing is lost in silence."""

import yaml

__all__ = ["read_yaml"]

_MERGE = "tag:yaml.org,2002:merge"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


def read_yaml(text: str) -> object:
    """Parse YAML into plain values; dates stay texts.

    Raises
    ------
    ValueError
        Not YAML, or a key that stands twice (plain YAML readers keep the last and say nothing); one line, with the
        place.
    """
    try:
        return yaml.load(text, Loader=_Reader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"is not valid YAML: {place}{error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"is not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ValueError("is not valid YAML: it is nested too deep") from error


class _Reader(yaml.SafeLoader):
    """PyYAML's safe loader with unique keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own table, less one kind
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _unique_mapping(loader: _Reader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        if key_node.tag == _MERGE:
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a plain key was expected", key_node.start_mark)
        key = loader.construct_object(key_node)
        if not isinstance(key, str):
            problem = f"the key {key_node.value!r} is read as {key!r}, not as a text; put it in quotes"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", key_node.start_mark)
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


_Reader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)
