"""What a run leaves behind: parts of embeddings, rows of results."""

from distseat.stores.embeddings import EmbeddingStore, EncodedUnit, PartContent, StoredVectors
from distseat.stores.results import (
    FamilyMember,
    ResultRow,
    RowKey,
    RowWords,
    commit_members,
    commit_rows,
    commit_words,
    publish_results,
    read_members,
    read_rows,
    read_words,
)

__all__ = [
    "EmbeddingStore",
    "EncodedUnit",
    "FamilyMember",
    "PartContent",
    "ResultRow",
    "RowKey",
    "RowWords",
    "StoredVectors",
    "commit_members",
    "commit_rows",
    "commit_words",
    "publish_results",
    "read_members",
    "read_rows",
    "read_words",
]
