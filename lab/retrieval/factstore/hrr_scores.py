"""HRR similarity of a query and candidates in the two modes, as a term of the lexical score."""

from __future__ import annotations

from collections.abc import Sequence

from . import hrr
from .entities import names_in
from .lexical import Candidate


def hrr_scores(mode: str, query: str, candidates: Sequence[Candidate]) -> list[float]:
    """Scores from 0 to 1.

    ``bundle`` compares upstream's query vector with upstream's stored vectors and shifts the similarity to 0 … 1, as
    upstream does: a near-constant 0.5. ``textv1`` compares vectors of one kind and takes the similarity as it is,
    nothing shared being 0.
    """
    if mode == "bundle":
        similar = hrr.similarities(hrr.encode_words(query), [_stored(candidate) for candidate in candidates])
        return [(float(value) + 1) / 2 for value in similar]
    vectors = [hrr.encode_terms(candidate.content) for candidate in candidates]
    return [max(0.0, float(value)) for value in hrr.similarities(hrr.encode_terms(query), vectors)]


def _stored(candidate: Candidate) -> hrr.Phases:
    """The stored vector, or the one that upstream would have stored."""
    vector = hrr.from_bytes(candidate.hrr_vector)
    return vector if vector is not None else hrr.encode_fact(candidate.content, names_in(candidate.content))
