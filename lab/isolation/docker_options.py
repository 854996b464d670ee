"""What makes a container a cage: limits, mounts and environment as arguments of the Docker SDK."""

from __future__ import annotations

import uuid
from typing import Any

from docker.types import LogConfig, Mount, Ulimit

from lab.isolation.base import SANDBOX_HOME, Limits, SandboxSpec, sandbox_ids
from lab.isolation.creator import sandbox_labels

_SHM_BYTES = 64 << 20
_NAME_PREFIX = "agent-memory-lab-"


def create_options(spec: SandboxSpec, image_env: list[str]) -> dict[str, Any]:
    """Arguments of the SDK's ``containers.create``, beside the image.

    Args:
        spec: What to run.
        image_env: Environment of the image as ``NAME=value``; only what ``spec`` gives is to remain of it.
    """
    uid, gid = sandbox_ids()
    limits = spec.limits
    return {
        "name": _NAME_PREFIX + uuid.uuid4().hex[:12],
        "entrypoint": [spec.command[0]],
        "command": list(spec.command[1:]),
        "environment": _environment(spec, image_env),
        "user": f"{uid}:{gid}",
        "working_dir": spec.workdir,
        "hostname": "lab",
        "labels": sandbox_labels(spec.labels),
        "network_mode": "none",
        "ipc_mode": "private",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "mounts": [
            Mount(mount.target, str(mount.source.resolve()), type="bind", read_only=not mount.writable)
            for mount in spec.mounts
        ],
        # Without "exec" Docker mounts noexec, and the two backends would differ.
        "tmpfs": {"/tmp": f"size={limits.tmp_bytes},mode=1777,nosuid,nodev,exec"},  # noqa: S108
        "shm_size": min(_SHM_BYTES, limits.tmp_bytes),
        "init": False,
        "auto_remove": False,
        "healthcheck": {"test": ["NONE"]},
        "log_config": LogConfig(type="none"),
        **_limit_options(limits),
    }


def _limit_options(limits: Limits) -> dict[str, Any]:
    return {
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "pids_limit": limits.processes,
        "nano_cpus": int(limits.cpus * 1_000_000_000),
        "ulimits": [
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            Ulimit(name="core", soft=0, hard=0),
        ],
    }


def _environment(spec: SandboxSpec, image_env: list[str]) -> list[str]:
    """The program's whole environment; a bare name takes a variable of image or engine away."""
    given = {"HOME": SANDBOX_HOME, **spec.env}
    inherited = {entry.partition("=")[0] for entry in image_env} | {"HOSTNAME", "PATH"}
    return [f"{key}={value}" for key, value in given.items()] + sorted(inherited - given.keys())


def weaknesses(info: dict[str, Any]) -> tuple[str, ...]:
    """What an engine does not enforce, one line each.

    Args:
        info: Its answer about itself.
    """
    enforced = {
        "MemoryLimit": "docker: the engine's kernel enforces no memory limit",
        "SwapLimit": "docker: the engine's kernel does not limit swap",
        "PidsLimit": "docker: the engine's kernel enforces no limit of processes",
        "CpuCfsQuota": "docker: the engine's kernel enforces no CPU share",
    }
    found = [text for key, text in enforced.items() if info.get(key) is False]
    options = " ".join(info.get("SecurityOptions") or [])
    if "name=seccomp" not in options:
        found.append("docker: the engine applies no system-call filter")
    return tuple(found)
