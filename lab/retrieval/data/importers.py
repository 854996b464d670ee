"""Chooses the importer for a set by its spec: ``beir:PATH``, ``squad+pt-BR:PATH``, ``locomo:PATH`` … or a folder."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from lab.errors import InputError
from lab.retrieval.data.clinc_oos import import_clinc_oos
from lab.retrieval.data.generate import generate
from lab.retrieval.data.load import load_set
from lab.retrieval.data.locomo import import_locomo
from lab.retrieval.data.pooled import import_beir, import_trec
from lab.retrieval.data.squad import import_squad
from lab.retrieval.testset import TestSet
from lab.text import printable

FORMS = ("beir", "trec", "squad", "clinc-oos", "locomo", "generated")

_SPEC = re.compile(r"(?P<form>[a-z][a-z-]*)(?:\+(?P<option>[A-Za-z0-9-]+))?:(?P<path>.*)", re.DOTALL)


def import_set(spec: str) -> TestSet:
    """Loads a set of our own form or imports one of another.

    Args:
        spec: A folder; or ``form:path``. After the form may stand an option: for ``beir``, ``trec`` and ``squad`` the
            language of the texts (``squad+pt-BR:…``), which decides the stopwords; for ``locomo`` the word
            ``adversarial``, which adds its category 5. ``generated:5000`` makes that many facts by template,
            ``generated+7:5000`` from another seed.

    Raises:
        InputError: No such form or option, or the data are broken.
    """
    parts = _SPEC.fullmatch(spec)
    if not parts or (parts["form"] not in FORMS and Path(spec).exists()):
        return load_set(Path(spec))
    form, option, path = parts["form"], parts["option"] or "", Path(parts["path"])
    if form not in FORMS:
        close = difflib.get_close_matches(form, FORMS, n=1)
        mend = f"did you mean {close[0]}:…?" if close else f"forms: {', '.join(FORMS)}; or name a folder"
        raise InputError(f"no importer is called {printable(form)}", mend)
    if not parts["path"]:
        raise InputError(f"{printable(spec)} names no path", f"write {form}:PATH")
    if form == "locomo":
        if option not in ("", "adversarial"):
            raise InputError(f"locomo has no option {option}", "write locomo:PATH or locomo+adversarial:PATH")
        return import_locomo(path, adversarial=bool(option))
    if form == "generated":
        if not (parts["path"].isdecimal() and (option or "0").isdecimal()):
            raise InputError(
                f"{printable(spec)} names no number of facts", "write generated:5000 or generated+SEED:5000"
            )
        return generate(int(parts["path"]), seed=int(option or 0))
    if form == "clinc-oos":
        if option:
            raise InputError(f"clinc-oos has no option {option}", "write clinc-oos:PATH")
        return import_clinc_oos(path)
    by_language = {"beir": import_beir, "trec": import_trec, "squad": import_squad}
    return by_language[form](path, language=option)
