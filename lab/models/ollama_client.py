"""Ollama's official client as the lab uses it: made late, asked for names and versions, its failures named."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType
from typing import Any

from lab.errors import EnvironmentUnusable
from lab.models.failures import Cause, ServerFailed, one_line

INSTALL = "pip install -e '.[models]' in the lab's folder"
ADDRESS = "set OLLAMA_HOST to http://HOST:PORT"
DOUBLE = "-shim"
"""Ending of the version of a server that speaks Ollama's protocol and is not Ollama: results must not bear its name."""


def ollama_package() -> ModuleType:
    """Imports the official client.

    Raises:
        EnvironmentUnusable: It is not installed, or cannot be loaded here, or ``OLLAMA_HOST`` is no address.
    """
    try:
        return importlib.import_module("ollama")
    except ModuleNotFoundError as error:
        raise EnvironmentUnusable(f"the package {error.name or 'ollama'} is not installed", INSTALL) from error
    except (ImportError, OSError) as error:
        raise EnvironmentUnusable(f"the package ollama cannot be loaded: {error}", INSTALL) from error
    except _address_errors() as error:  # it makes a client of its own while it is imported
        raise _no_address(error) from error


def _address_errors() -> tuple[type[Exception], ...]:
    return ValueError, importlib.import_module("httpx").InvalidURL


def _no_address(error: Exception) -> EnvironmentUnusable:
    return EnvironmentUnusable(f"the address of Ollama is not one: {one_line(error)}", ADDRESS)


@cache
def _trusted() -> Any:
    # Loading the certificates takes longer than a talk with a local server, and each talk has a client of its own.
    return importlib.import_module("httpx").create_ssl_context()


def ollama_client(host: str | None = None) -> Any:
    """Makes a client; nothing is sent yet.

    Args:
        host: Address of the server; by default that of ``OLLAMA_HOST``, and without it the local one.

    Returns:
        ``ollama.AsyncClient``; Any because the package is imported late.

    Raises:
        EnvironmentUnusable: The client is not installed, or the address is none.
    """
    package = ollama_package()
    try:
        return package.AsyncClient(host=host, verify=_trusted())
    except _address_errors() as error:
        raise _no_address(error) from error


def client_url(client: Any) -> str:
    """Address that a client speaks to, without user and password, should it have them."""
    url = client._client.base_url
    path = url.path.rstrip("/")
    host = f"[{url.host}]" if ":" in url.host else url.host  # IPv6
    return one_line(f"{url.scheme}://{host}:{url.port or (443 if url.scheme == 'https' else 80)}{path}")


def full_name(model: str) -> str:
    """Name of a model as Ollama lists it: with its tag."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


async def listed_digest(client: Any, model: str) -> str:
    """Digest that the server has for a model now; empty where it does not list it."""
    name = full_name(model).casefold()
    models = (await client.list()).models
    return next((str(m.digest or "") for m in models if (m.model or "").casefold() == name), "")


async def server_version(client: Any) -> str:
    """Version that the server states."""
    # The client has no call for it; what it sends all its requests with is the only way that keeps its settings.
    answer = await client._client.get("/api/version")
    answer.raise_for_status()
    return one_line(answer.json().get("version", "unknown"), 40)


def product(version: str) -> str:
    """Product and version; a double of the protocol is never called by Ollama's name alone."""
    return f"not Ollama ({version})" if version.endswith(DOUBLE) else f"ollama {version}"


def named_failure(error: Exception, url: str, model: str = "", seconds: float | None = None) -> ServerFailed | None:
    """Names what went wrong in a talk through the official client.

    Args:
        error: What was raised.
        url: Address of the server, as ``client_url`` gives it.
        model: Which model the talk was about; empty for none.
        seconds: The limit of the talk.

    Returns:
        The failure; None for an error that is none of the server's.
    """
    httpx = importlib.import_module("httpx")
    match error:
        case ServerFailed():
            found = error
        case TimeoutError():
            waited = "did not answer in time" if seconds is None else f"did not answer within {seconds:g} s"
            found = ServerFailed(
                f"{one_line(model) or f'the Ollama server at {url}'} {waited}",
                "look at the server's log; a large model is long in loading",
                cause=Cause.TIMEOUT,
            )
        case _ if isinstance(error, ollama_package().ResponseError):
            found = _refused(error, model)
        case httpx.HTTPStatusError():
            status = error.response.status_code
            message = f"what answers at {url} is no Ollama server: HTTP {status}"
            found = ServerFailed(message, ADDRESS, cause=Cause.GARBAGE, status=status)
        case ConnectionError() | httpx.TransportError():
            message = f"no Ollama server answers at {url}"
            found = ServerFailed(message, f"ollama serve; or {ADDRESS}", cause=Cause.UNREACHABLE)
        case ValueError() | TypeError() | AttributeError() | RecursionError():
            # What the client stumbles over: no JSON, or JSON of another shape.
            reason = one_line(str(error).partition("\n")[0], 120)
            message = f"the Ollama server's answer cannot be read: {reason}"
            found = ServerFailed(message, "check that it is one", cause=Cause.GARBAGE)
        case _:
            return None
    return found


def _refused(error: Any, model: str) -> ServerFailed:
    status, said = error.status_code, one_line(error.error)
    if status == 404 and model and "model" in said:
        name = one_line(model)
        return ServerFailed(
            f"the Ollama server says: {said}",
            f"lab models pull {name} (ollama pull {name})",
            cause=Cause.MISSING,
            status=status,
            said=said,
        )
    # -1: an error in the middle of a stream, which began with 200.
    number = f" {status}" if status > 0 else ""
    cause = Cause.KEY_REFUSED if status in (401, 403) else Cause.REFUSED
    return ServerFailed(
        f"the Ollama server says{number}: {said}", "look at the server's log", cause=cause, status=status, said=said
    )
