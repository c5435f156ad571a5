"""Association tests as data: what a test is, and the YAML files that hold them."""

from distseat.definitions.faults import Faults, nearest
from distseat.definitions.files import Definitions, load_definitions
from distseat.definitions.places import published_directory
from distseat.definitions.stimuli import (
    ENCODINGS,
    ROLES,
    AssociationTest,
    Encoding,
    FormRecipe,
    Grammar,
    Role,
    Stimulus,
    TestForm,
    encodings_of,
)
from distseat.definitions.yaml_text import read_yaml

__all__ = [
    "ENCODINGS",
    "ROLES",
    "AssociationTest",
    "Definitions",
    "Encoding",
    "Faults",
    "FormRecipe",
    "Grammar",
    "Role",
    "Stimulus",
    "TestForm",
    "encodings_of",
    "load_definitions",
    "nearest",
    "published_directory",
    "read_yaml",
]
