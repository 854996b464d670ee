"""Isolation by a Docker Engine: one container without network per run, through the Engine API alone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from lab.errors import EnvironmentUnusable, SandboxKilled, SandboxStartFailed
from lab.isolation.base import (
    MANAGED_LABEL,
    BackendStatus,
    Exit,
    ReapReport,
    SandboxSpec,
)
from lab.isolation.creator import in_use_elsewhere
from lab.isolation.docker_options import create_options, weaknesses
from lab.isolation.pump import STDERR, STDOUT, Ending, Pump, conclude

if TYPE_CHECKING:
    from docker.client import DockerClient

ENGINE_MEND = "apt-get install -y docker.io && (dockerd >/var/log/dockerd.log 2>&1 &)"
"""What makes an engine reachable on a machine that has none."""

_CONNECT_SECONDS = 60
_PROBE_SECONDS = 5
_DRAIN_SECONDS = 30.0

# What the SDK raises when the engine is not there or goes away in the middle of an answer.
_ENGINE_GONE = (DockerException, requests.RequestException, OSError)


@dataclass(frozen=True)
class EngineObject:
    """A labelled object of the engine.

    Attributes:
        kind: ``container`` or ``image``.
        identity: The engine's id.
        name: Container name or image tag.
        labels: All its labels.
    """

    kind: str
    identity: str
    name: str
    labels: dict[str, str]


class DockerBackend:
    """Runs programs in containers of the engine that the environment names (``DOCKER_HOST`` and its companions)."""

    @property
    def name(self) -> str:
        """Always ``docker``."""
        return "docker"

    def status(self) -> BackendStatus:
        """Asks the engine for its version; names the mend where none answers."""
        try:
            with self._client(_PROBE_SECONDS) as client:
                info = client.info()
        except _ENGINE_GONE as error:
            return BackendStatus(usable=False, problem=_unreachable(error), mend=ENGINE_MEND)
        return BackendStatus(usable=True, version=str(info.get("ServerVersion", "")), weaknesses=weaknesses(info))

    def run(self, spec: SandboxSpec, cancel: threading.Event | None = None) -> Exit:
        """See ``Backend.run``."""
        try:
            with self._client(_CONNECT_SECONDS) as client:
                container_id = self._create(client, spec)
                try:
                    return self._run_created(client, container_id, spec, cancel)
                finally:
                    # An engine that is gone keeps the container; its labels let ``reap`` find it later.
                    with contextlib.suppress(*_ENGINE_GONE):
                        client.api.remove_container(container_id, v=True, force=True)
        except _ENGINE_GONE as error:
            raise SandboxStartFailed(f"the Docker Engine failed: {_one_line(error)}", ENGINE_MEND) from error

    def list_objects(self, include_images: bool = False) -> tuple[EngineObject, ...]:
        """Lists containers (and images) that carry the lab's label.

        Raises:
            EnvironmentUnusable: The engine cannot be asked.
        """
        try:
            with self._client(_CONNECT_SECONDS) as client:
                return tuple(_labelled(client, include_images))
        except _ENGINE_GONE as error:
            raise EnvironmentUnusable(
                f"the Docker Engine cannot be asked for its objects: {_one_line(error)}", ENGINE_MEND
            ) from error

    def reap(self, include_images: bool = False) -> ReapReport:
        """Removes labelled containers, and images on demand; spares those of another living lab process."""
        try:
            with self._client(_CONNECT_SECONDS) as client:
                before = {item.identity: item.name for item in _labelled(client, include_images)}
                # An image goes only after those made from it: every round frees the next.
                while _remove_labelled(client, include_images):
                    pass
                left = {item.identity: item.name for item in _labelled(client, include_images)}
        except _ENGINE_GONE as error:
            raise EnvironmentUnusable(f"cannot clean up: {_unreachable(error)}", ENGINE_MEND) from error
        removed = tuple(name for identity, name in before.items() if identity not in left)
        return ReapReport(removed, tuple(left.values()))

    @staticmethod
    @contextlib.contextmanager
    def _client(timeout: int) -> Iterator[DockerClient]:
        """One client per call: its connections belong to one run and survive neither a fork nor an error."""
        client = docker.from_env(timeout=timeout)
        try:
            yield client
        finally:
            client.close()

    @staticmethod
    def _create(client: DockerClient, spec: SandboxSpec) -> str:
        image = spec.environment.reference
        try:
            image_env = client.images.get(image).attrs["Config"].get("Env") or []
            container = client.containers.create(image, **create_options(spec, image_env))
        except ImageNotFound as error:
            raise SandboxStartFailed(f"the image {image} is not there", "lab build") from error
        except APIError as error:
            raise SandboxStartFailed(f"the container could not be made: {_one_line(error)}") from error
        return str(container.id)

    def _run_created(
        self, client: DockerClient, container_id: str, spec: SandboxSpec, cancel: threading.Event | None
    ) -> Exit:
        pump = Pump(spec.limits.output_bytes)
        watch = _Watch(client, container_id, pump)
        started_at, started = int(time.time()), time.monotonic()
        watch.attach()
        try:
            client.api.start(container_id)
        except APIError as error:
            raise SandboxStartFailed(f"the program could not be started: {_one_line(error)}") from error
        watch.wait_in_background()
        ending = pump.wait(spec.limits.wall_seconds, cancel)
        try:
            if ending is not Ending.ENDED:
                _kill(client, container_id)
            status = watch.result()
            wall_seconds = time.monotonic() - started
            out_of_memory = _ran_out_of_memory(client, container_id, status, ending, started_at)
        except _ENGINE_GONE as error:
            raise SandboxKilled(
                f"the Docker Engine went away during the run: {_one_line(error)}",
                ENGINE_MEND,
                stdout=pump.stdout,
                stderr=pump.stderr,
            ) from error
        return conclude(
            ending, pump, spec.limits, status=status, out_of_memory=out_of_memory, wall_seconds=wall_seconds
        )


class _Watch:
    """Two threads of one container: one reads its output, one waits for its end."""

    def __init__(self, client: DockerClient, container_id: str, pump: Pump) -> None:
        self._client = client
        self._id = container_id
        self._pump = pump
        self._status: int | None = None
        self._failure: Exception | None = None
        self._threads: list[threading.Thread] = []

    def attach(self) -> None:
        """Attaches before the start, so that not one byte is missed."""
        chunks = self._client.api.attach(self._id, stdout=True, stderr=True, stream=True, logs=False, demux=True)
        self._spawn(self._read, chunks)

    def wait_in_background(self) -> None:
        self._spawn(self._wait)

    def result(self) -> int:
        """Exit status after the end of both threads.

        Raises:
            Exception: What the engine's failure made of the waiting.
        """
        for thread in reversed(self._threads):
            thread.join(_DRAIN_SECONDS)
        if self._failure is not None:
            raise self._failure
        if self._status is None:
            raise DockerException("the engine did not report the end of a killed container")
        return self._status

    def _spawn(self, target: Any, *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, name=f"docker-{self._id[:12]}", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _read(self, chunks: Iterator[tuple[bytes | None, bytes | None]]) -> None:
        # A broken stream is no news of its own: the waiter sees the same failure and reports it.
        with contextlib.suppress(*_ENGINE_GONE, ValueError):
            for out, err in chunks:
                if out:
                    self._pump.feed(STDOUT, out)
                if err:
                    self._pump.feed(STDERR, err)

    def _wait(self) -> None:
        try:
            self._status = int(self._client.api.wait(self._id, timeout=None)["StatusCode"])
        except (*_ENGINE_GONE, ValueError, KeyError) as error:
            self._failure = DockerException(_one_line(error))
        finally:
            self._pump.finish()


def _labelled(client: DockerClient, include_images: bool) -> Iterator[EngineObject]:
    filters = {"label": f"{MANAGED_LABEL}=true"}
    for entry in client.api.containers(all=True, filters=filters):
        name = (entry.get("Names") or [entry["Id"]])[0].lstrip("/")
        yield EngineObject("container", entry["Id"], name, dict(entry.get("Labels") or {}))
    if include_images:
        for entry in client.api.images(filters=filters):
            tags = [tag for tag in entry.get("RepoTags") or () if not tag.startswith("<none>")]
            name = tags[0] if tags else entry["Id"]
            yield EngineObject("image", entry["Id"], name, dict(entry.get("Labels") or {}))


def _remove_labelled(client: DockerClient, include_images: bool) -> bool:
    """Tries to remove every labelled object once; True when one of them went."""
    progress = False
    for item in list(_labelled(client, include_images)):
        if item.kind == "container" and in_use_elsewhere(item.labels):
            continue
        with contextlib.suppress(APIError):  # in use, or gone by itself; the final listing tells what stayed
            if item.kind == "image":
                client.api.remove_image(item.identity, force=True)
            else:
                client.api.remove_container(item.identity, v=True, force=True)
            progress = True
    return progress


def _kill(client: DockerClient, container_id: str) -> None:
    """Ends PID 1 with SIGKILL, and with it every process of its namespace; an ended container is fine."""
    try:
        client.api.kill(container_id, signal="SIGKILL")
    except NotFound:
        return
    except APIError as error:
        if error.status_code != requests.codes.conflict:
            raise


def _ran_out_of_memory(client: DockerClient, container_id: str, status: int, ending: Ending, started_at: int) -> bool:
    """Whether the kernel killed any process of the container at its memory limit.

    The state flag also covers children of PID 1. The engine's event log is asked besides where the status is that of
    a kill which nobody has explained: the flag travels by another road than the exit and may come late.
    """
    if client.api.inspect_container(container_id)["State"].get("OOMKilled"):
        return True
    if ending is not Ending.ENDED or status != 137:
        return False
    events = client.api.events(
        since=started_at,
        until=int(time.time()) + 1,
        filters={"container": container_id, "event": "oom"},
        decode=True,
    )
    return any(True for _ in events)


def _unreachable(error: BaseException) -> str:
    """Where the engine was looked for; the client's own words for a missing socket are three errors in one another."""
    place = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    missing = "FileNotFoundError" in str(error) or "ConnectionRefusedError" in str(error)
    return f"no Docker Engine answers at {place}" + ("" if missing else f" ({_one_line(error)})")


def _one_line(error: BaseException) -> str:
    text = getattr(error, "explanation", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:300]
