"""Point ids of the archive: the same document has the same id on every machine, in every run and in every store."""

from __future__ import annotations

import json
import unicodedata
import uuid

from lab.errors import InputError

NAMESPACE = uuid.UUID("8b0e0ef1-85a6-59aa-8ad0-54707a01a79a")
"""Namespace of the point ids: itself the UUIDv5 of ``urn:agent-memory-lab:archive`` in the namespace of URLs."""


def document_id(session: str, message: str) -> str:
    """Id of a message's document: a message's own id is unique in its session only, so both are in it.

    It is the JSON array of the two, because no joining sign is safe: both may hold any.

    Args:
        session: Id of the session.
        message: Id of the message in it.
    """
    return json.dumps([session, message], ensure_ascii=False, separators=(",", ":"))


def point_id(document: str) -> str:
    """Deterministic id of a document: the UUIDv5 (RFC 9562) of its id, in Unicode's composed form (NFC).

    ``São Paulo`` typed composed or decomposed is thus one document, as it looks like one. Nothing else is folded: case,
    compatibility forms (``①`` and ``1``) and the variation selectors of emoji stay apart.

    Args:
        document: Id of the document, any text that can be encoded.

    Raises:
        InputError: It holds half of a surrogate pair, which is no character.
    """
    try:
        return str(uuid.uuid5(NAMESPACE, unicodedata.normalize("NFC", document)))
    except UnicodeEncodeError as error:
        raise InputError(f"the document id {document!r} holds half a character", "give ids that are text") from error
