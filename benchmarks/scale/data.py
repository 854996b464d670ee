"""What is measured on: databases of generated facts, questions, and vectors that are real or perturbed real ones."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.errors import EmbeddingFailed, InputError
from lab.retrieval.build_database import RELATIONS_TABLE, state_relations
from lab.retrieval.data.generate import generate, generated_facts
from lab.retrieval.embedders.base import Embedder, Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.sidecar import Sidecar
from lab.retrieval.factstore import entities
from lab.retrieval.factstore.schema import migrate
from lab.retrieval.stopwords import STOPWORDS, folded, stopwords

SEED = 20261130
REAL = 2_000
"""Facts that have a real vector: the first ones."""

NOISE = 0.3
"""Length of the random vector that is added to a real one of length 1; their cosine is 1 / √(1 + 0.3²) = 0.958."""

TOPICS, ASKED_OF = 79, 500
"""Questions, and the size of the set that they are drawn for: every larger set holds those facts, too."""

ODD = ("=>", "The Who", "what is it?", "???", "e o que é isso")
"""Questions in which no word is left: signs and stopwords."""

_CHUNK = 20_000
_WORD = re.compile(r"[^\W_]+")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        text: As a user types it.
        terms: What plain FTS5 is asked; empty where the question has no word but stopwords.
        vector: Shape (dimensions,); real.
    """

    text: str
    terms: str
    vector: Vectors


@dataclass(frozen=True)
class Inputs:
    """The files of one size.

    Attributes:
        folder: Where they lie; that of the questions is the one above.
    """

    folder: Path

    @property
    def database(self) -> Path:
        """Facts and entities in the fact store's shape, written in bulk: no vectors of the agent's plugin in it."""
        return self.folder / "facts.db"

    @property
    def sidecar(self) -> Path:
        """All vectors, as the lab keeps them."""
        return self.folder / "vectors.sqlite"

    @property
    def matrix(self) -> Path:
        """All vectors, by ascending fact id, as NumPy keeps them."""
        return self.folder / "matrix.npy"

    def questions(self) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
        """The drawn questions, and those without a word."""
        texts = json.loads((self.folder.parent / "questions.json").read_text("utf-8"))
        vectors = np.load(self.folder.parent / "questions.npy")
        made = [Question(text, plain_terms(text), vector) for text, vector in zip(texts, vectors, strict=True)]
        return tuple(made[: -len(ODD)]), tuple(made[-len(ODD) :])

    def embedder(self) -> KnownVectors:
        """Knows the questions' vectors and the identity of the facts'; computes nothing."""
        told = json.loads((self.folder.parent / "model.json").read_text("utf-8"))
        told["prefixes"] = tuple((kind, prefix) for kind, prefix in told["prefixes"])
        drawn, odd = self.questions()
        known = {(Kind.QUERY, question.text): question.vector for question in (*drawn, *odd)}
        return KnownVectors(ModelIdentity(**{**told, "notes": tuple(told["notes"])}), known)


class KnownVectors:
    """An embedder that looks vectors up, and makes others by perturbing known ones of documents.

    A text without a known vector gets that of the document which its digest picks, plus a random direction of length
    ``NOISE`` which its digest seeds, at unit length again. Such vectors lie as closely as real ones, are all different
    and are the same in every run. They say nothing about what the text means: they measure speed, not quality.

    Args:
        identity: What the vectors are kept under.
        known: Vectors by kind and text.
        sources: Shape (documents, dimensions); None where nothing may be made.
    """

    def __init__(
        self, identity: ModelIdentity, known: Mapping[tuple[Kind, str], Vectors], sources: Vectors | None = None
    ) -> None:
        self._identity, self._known, self._sources = identity, known, sources

    @property
    def identity(self) -> ModelIdentity:
        """The model."""
        return self._identity

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:  # noqa: ARG002
        """Looks up or perturbs; see ``Embedder``.

        Raises:
            EmbeddingFailed: A text has no vector, and none may be made.
        """
        rows = [self._vector(text, kind) for text in texts]
        return np.asarray(rows, dtype=np.float32).reshape(len(texts), self._identity.dimensions)

    def close(self) -> None:
        """Nothing to let go of."""

    def _vector(self, text: str, kind: Kind) -> Vectors:
        known = self._known.get((kind, text))
        if known is not None:
            return known
        if self._sources is None:
            raise EmbeddingFailed("a text has no vector that was made before", "prepare again", cause="model_missing")
        digest = hashlib.sha256(text.encode()).digest()
        source = self._sources[int.from_bytes(digest[:8]) % len(self._sources)]
        noise = np.random.default_rng(int.from_bytes(digest[8:16])).standard_normal(source.size)
        moved = source + NOISE * noise / np.linalg.norm(noise)
        return np.asarray(moved / np.linalg.norm(moved), dtype=np.float32)


def plain_terms(text: str) -> str:
    """What plain FTS5 is asked: the words but stopwords, quoted and joined by OR.

    Without the stopwords, because the systems drop them as well: otherwise the floor would do more than they do.
    """
    dropped = stopwords(STOPWORDS)
    return " OR ".join(f'"{word}"' for word in _WORD.findall(text) if folded(word) not in dropped)


def prepare(folder: Path, size: int, real: Embedder, tell: Progress, count: int = REAL) -> Inputs:
    """Makes the input of one size where it is not there yet.

    Args:
        folder: Where all sizes lie.
        size: Facts.
        real: The model.
        tell: Told one line before each step that may take long.
        count: Facts that get a real vector.

    Raises:
        EmbeddingFailed: The model gives no vectors.
        EnvironmentUnusable: The disk is full.
    """
    inputs = Inputs(folder / str(size))
    inputs.folder.mkdir(parents=True, exist_ok=True)
    if not inputs.database.is_file():
        tell(f"{size:,} facts: writing the database")
        write_database(size, inputs.database)
    if not inputs.matrix.is_file():
        _write_vectors(inputs, size, _perturbing(folder, real, tell, count), tell)
    return inputs


def write_database(size: int, path: Path) -> None:
    """Writes facts, entities and stated relations in the fact store's shape, in one transaction.

    By hand and not by ``build_database``: that one looks for each name among all entities, which takes a time that
    grows with the square of the facts, and writes 8 kB of HRR vector for each fact, which no system here reads.
    """
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    ids: dict[str, int] = {}
    with closing(sqlite3.connect(partial, isolation_level=None)) as connection:
        migrate(connection)
        connection.execute(RELATIONS_TABLE)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for number, fact in enumerate(itertools.islice(generated_facts(SEED), size), 1):
            stored = connection.execute(
                "INSERT OR IGNORE INTO facts(fact_id, content, category, tags, trust_score, created_at, updated_at, "
                "author) VALUES (?, ?, ?, '', ?, ?, ?, ?)",
                (number, fact.text, fact.category, fact.trust, *[fact.created_at[:19].replace("T", " ")] * 2,
                 fact.author.value),
            )  # fmt: skip
            if not stored.rowcount:
                raise InputError(f"fact {number} of the generator repeats an earlier text", "mend its templates")
            state_relations(connection, number, fact)
            for name in entities.names_in(fact.text):
                if name.lower() not in ids:
                    ids[name.lower()] = len(ids) + 1
                    connection.execute("INSERT INTO entities(entity_id, name) VALUES (?, ?)", (len(ids), name))
                connection.execute("INSERT OR IGNORE INTO fact_entities VALUES (?, ?)", (number, ids[name.lower()]))
        connection.execute("COMMIT")
    partial.replace(path)


def _perturbing(folder: Path, real: Embedder, tell: Progress, count: int) -> KnownVectors:
    """Real vectors of the first facts and of all questions; what it embeds is kept for the next size and run."""
    facts = [fact.text for fact in itertools.islice(generated_facts(SEED), count)]
    questions = [*(topic.text for topic in generate(ASKED_OF, TOPICS, SEED).topics), *ODD]
    sidecar = Sidecar(folder / "real.sqlite")
    tell(f"embedding {count:,} facts and {len(questions)} questions, where that is not done yet")
    sources = sidecar.vectors(real, facts, Kind.DOCUMENT).matrix
    asked = sidecar.vectors(real, questions, Kind.QUERY).matrix
    model = real.identity
    told = f"{model.digest}\n{SEED}\n{count}\n{NOISE}"
    identity = dataclasses.replace(
        model,
        backend="scale",
        model=f"{model.model}: {count} real vectors, the others perturbed by {NOISE}",
        digest=hashlib.sha256(told.encode()).hexdigest(),
        notes=("perturbed vectors measure speed, not quality",),
    )
    np.save(folder / "questions.npy", asked)
    (folder / "questions.json").write_text(json.dumps(questions, ensure_ascii=False), "utf-8")
    (folder / "model.json").write_text(json.dumps(dataclasses.asdict(identity)), "utf-8")
    known = {(Kind.DOCUMENT, text): vector for text, vector in zip(facts, sources, strict=True)}
    return KnownVectors(identity, known, sources)


def _write_vectors(inputs: Inputs, size: int, made: KnownVectors, tell: Progress) -> None:
    partial = inputs.folder / "matrix.partial.npy"
    matrix = np.lib.format.open_memmap(partial, "w+", np.float32, (size, made.identity.dimensions))
    facts = itertools.islice(generated_facts(SEED), size)
    sidecar = Sidecar(inputs.sidecar)
    for start in range(0, size, _CHUNK):
        tell(f"{size:,} facts: vectors from {start:,}")
        texts = [fact.text for fact in itertools.islice(facts, _CHUNK)]
        matrix[start : start + len(texts)] = sidecar.vectors(made, texts, Kind.DOCUMENT).matrix
    matrix.flush()
    del matrix
    partial.replace(inputs.matrix)
