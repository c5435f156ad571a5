"""What a run leaves behind: parts of embeddings, rows of results."""

from distseat.stores.embeddings import EmbeddingStore, EncodedUnit, PartContent, StoredVectors
from distseat.stores.results import ResultRow, commit_rows, publish_results, read_rows

__all__ = [
    "EmbeddingStore",
    "EncodedUnit",
    "PartContent",
    "ResultRow",
    "StoredVectors",
    "commit_rows",
    "publish_results",
    "read_rows",
]
