"""Which prefix an embedding model wants before a query and before a document, from the models' own cards."""

from __future__ import annotations

from fnmatch import fnmatchcase

from lab.retrieval.embedders.base import Kind

Prefixes = tuple[tuple[str, str], ...]

_RETRIEVE = "Represent this sentence for searching relevant passages: "

# Pattern of the model's name without namespace and tag, prefix of a query, prefix of a document. The first that fits.
_TABLE = (
    ("bge-m3*", "", ""),
    ("bge-*-en*", _RETRIEVE, ""),
    ("bge-large", _RETRIEVE, ""),
    ("nomic-embed-text*", "search_query: ", "search_document: "),
    ("mxbai-embed-*", _RETRIEVE, ""),
    ("snowflake-arctic-embed2*", "query: ", ""),
    ("snowflake-arctic-embed*", _RETRIEVE, ""),
    ("embeddinggemma*", "task: search result | query: ", "title: none | text: "),
    ("*e5-*", "query: ", "passage: "),
    ("all-minilm*", "", ""),
    ("paraphrase-multilingual*", "", ""),
)


def prefixes_of(model: str) -> Prefixes | None:
    """Prefixes of a model by kind.

    Args:
        model: Name as Ollama knows it, with or without namespace and tag.

    Returns:
        None where the model is not in the table.
    """
    family = model.rpartition("/")[2].partition(":")[0].lower()
    for pattern, query, document in _TABLE:
        if fnmatchcase(family, pattern):
            return (Kind.QUERY, query), (Kind.DOCUMENT, document)
    return None
