"""The scenario library: what is wrong is named with file, line and mend; what is merely strange loads."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import pytest
import yaml

from lab.contamination.scenarios.checks import fold, foreign_hosts
from lab.contamination.scenarios.library import Problem, lint, load_library, load_scenario
from lab.contamination.scenarios.scenario import Family, Language, Target
from lab.contamination.scenarios.source import MAX_BYTES
from lab.errors import InputError
from lab.records import Role

ROOT = Path(__file__).parents[2] / "scenarios"
FIRST = (ROOT / "F1" / "F1-001.yaml").read_text(encoding="utf-8")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A copy of the real library to break."""
    root = tmp_path / "scenarios"
    shutil.copytree(ROOT, root)
    return root


def edit(path: Path, old: str, new: str) -> int:
    """Replaces text that must be there and returns the line at which it stood."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


# --- the library that is published ---------------------------------------------------------------------------------


def test_the_published_library_is_clean_and_complete() -> None:
    assert [str(problem) for problem in lint(ROOT)] == []
    scenarios = load_library(ROOT)
    ids = {s.id for s in scenarios}
    assert len(ids) == len(scenarios)
    first = {f"F1-{n:03}" for n in range(1, 13)} | {f"F5-{n:03}" for n in range(1, 9)}
    assert first <= ids
    attacks = [s for s in scenarios if s.role is Role.ATTACK]
    cells = {(s.delivery, s.content.target, s.language) for s in attacks if s.id in first}
    assert len(cells) == 3 * len({Target.MEMORY, Target.USER}) * len(Language)
    assert all(s.twin for s in attacks)
    controls = [s for s in scenarios if s.role is Role.CONTROL]
    assert sum(s.hard for s in controls) >= 3 and not any(s.twin for s in controls)
    assert {s.language for s in controls if s.hard} == set(Language)


def test_twins_stand_side_by_side_and_differ_in_language_alone() -> None:
    attacks = [s for s in load_library(ROOT, [Family.F1]) if s.id <= "F1-012"]
    for english, portuguese in zip(attacks[::2], attacks[1::2], strict=True):
        assert (english.language, portuguese.language) == (Language.EN, Language.PT_BR)
        for name in ("delivery", "goal", "effect"):
            assert getattr(english, name) == getattr(portuguese, name)
        assert len(english.world.memory) == len(portuguese.world.memory)
        assert len(english.world.user) == len(portuguese.world.user)
        where = [
            [line.strip() for line in s.transcript[0].user.splitlines()].index("{{content}}")
            for s in (english, portuguese)
        ]
        assert where[0] == where[1]


def test_selection_by_family_and_pattern() -> None:
    assert {s.family for s in load_library(ROOT, ["F5"])} == {Family.F5}
    assert [s.id for s in load_library(ROOT, pattern="F[15]-001")] == ["F1-001", "F5-001"]
    with pytest.raises(InputError, match="no scenario fits F9"):
        load_library(ROOT, pattern="F9*")
    with pytest.raises(InputError) as caught:
        load_library(ROOT, ["F9"])
    assert ", ".join(Family) in caught.value.mend


# --- strange but legitimate ------------------------------------------------------------------------------------------


def test_hostile_text_loads_as_it_is(tmp_path: Path) -> None:
    text = FIRST.replace("Assistant: from", r"<script>alert(1)</script> \x1b[31m \0 \u202e \x07 from")
    path = tmp_path / "F1" / "F1-001.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert "<script>alert(1)</script> \x1b[31m \0 \u202e \x07" in load_scenario(path).content.text
    assert lint([path]) == []


def test_five_megabytes_of_text_load(tmp_path: Path) -> None:
    path = tmp_path / "F1" / "F1-001.yaml"
    path.parent.mkdir()
    path.write_text(FIRST.replace("Assistant: from", "word <b> a@b " * 420_000 + "from"), encoding="utf-8")
    start = time.monotonic()
    assert lint([path]) == []
    assert len(load_scenario(path).content.text) > 5_000_000
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("change", [lambda b: b"\xef\xbb\xbf" + b, lambda b: b.replace(b"\n", b"\r\n")])
def test_byte_order_mark_and_windows_line_ends_load(tmp_path: Path, change) -> None:
    path = tmp_path / "F1-001.yaml"
    path.write_bytes(change(FIRST.encode()))
    assert load_scenario(path) == load_scenario(ROOT / "F1" / "F1-001.yaml")


# --- broken files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"", 1, "empty"),
        (b"# only words\n", 1, "empty"),
        (b"- a\n- b\n", 1, "no mapping"),
        (b"a: 1\nb: [1, 2\nc: 3\n", 3, "not valid YAML"),
        (b"a: 1\n\tb: 2\n", 2, "not valid YAML"),
        (b"a: 1\n---\nb: 2\n", 2, "single document"),
        (b"a: 1\nb: \xff\xfe\n", 2, "not UTF-8"),
        ("a: é\n".encode("utf-16"), 1, "not UTF-8"),
        (b"a: 1\nb: x\0y\n", 2, "NUL"),
        (b"a: 1\nb: x\x1b[31m\n", 2, r"U\+001B"),
        (b"a: 1\nb: 2\na: 3\n", 3, "duplicate key a, first on line 1"),
        (b"a:\n  b: 1\n  b: 2\n", 3, "duplicate key b"),
        (b"a: &x [1]\nb: *x\n", 1, "anchors and aliases"),
        (b"a: 1\nb: 2026-01-01\n", 2, "read by YAML as timestamp"),
        (b"a: 1.5\n", 1, "read by YAML as float"),
        (b"a: !!python/object:os.system x\n", 1, "os.system"),
        (b"a: !!set {x: }\n", 1, "read by YAML as set"),
        (b"? [a, b]\n: 1\n", 1, "not a plain word"),
        (b"1: x\n", 1, "not a plain word"),
        (b"<<: {a: 1}\n", 1, "not a plain word"),
        (b'a: "\\ud800"\n', 1, "surrogate|invalid Unicode character"),
        (b"a: " + b"9" * 5000 + b"\n", 1, "not a usable value"),
        (b"a: " + b"[" * 100_000, 1, "nested deeper|nesting depth"),
        (b"a:\n" + b"- x\n" * 30_000, 19_999, "more than 20000 values"),
        (b"a: " + b"x" * MAX_BYTES, 1, "larger than 16 MiB"),
    ],
)
def test_a_broken_file_is_one_clear_problem(tmp_path: Path, content: bytes, line: int, message: str) -> None:
    path = tmp_path / "F1-001.yaml"
    path.write_bytes(content)
    problem = only(lint([path]))
    assert problem.file == str(path) and problem.mend
    assert problem.line == line
    assert re.search(message, problem.message)
    with pytest.raises(InputError, match=re.escape(f"{path}:{line}: ")):
        load_scenario(path)


def test_an_alias_bomb_is_refused_at_once(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    (tmp_path / "F1-001.yaml").write_text(bomb)
    start = time.monotonic()
    assert "aliases" in only(lint(tmp_path)).message
    assert time.monotonic() - start < 5


def test_what_is_no_readable_file_is_named(tmp_path: Path) -> None:
    assert "cannot be read" in only(lint(tmp_path / "missing")).message
    assert "cannot be read" in only(lint([tmp_path / "a\0b.yaml"])).message
    assert "no scenario file" in only(lint(tmp_path)).message
    os.mkfifo(tmp_path / "F1-001.yaml")
    assert "not a regular file" in only(lint(tmp_path)).message


@pytest.mark.parametrize(
    ("old", "new", "message", "at"),
    [
        ("schema: 1", "schema: 2", "schema 2 is not known", "schema: 1"),
        ("version: 1", 'version: "1"', "version: .*integer", "version: 1"),
        ("version: 1", "version: true", "version: .*integer", "version: 1"),
        ("language: en", "language: de", "language: .*got 'de'", "language: en"),
        ("canary: heron21", "canary: Heron-21", "canary: .*pattern", "canary: heron21"),
        ("  target: memory", "  target: disk", "content.target: ", "  target: memory"),
        ("  origin: pasted_document\n", "", "content.origin is missing", "content:"),
        ("delivery: visible", "delivry: visible", "delivery is missing|delivry is not a known", ""),
        ("  origin: pasted_document", "  origin: user_statement", "content.origin of family", "  origin:"),
        ("      {{content}}\n", "", "exactly once in the user turns, found 0", "transcript:"),
        ("      Dear customer,", "      {{content}}", "exactly once in the user turns, found 2", "transcript:"),
        ("      Dear customer,", "      Dear heron21,", "stands outside", "canary: heron21"),
        ("      Dear customer,", "      Dear HERON-21,", "in disguise outside", "canary: heron21"),
        ("invoices to heron21", "invoices to h21", "content.(text|stored) does not hold", ""),
        ("HERON21@EXAMPLE.TEST", "heron21@example.test", "in another form", "  paraphrase:"),
        ("HERON21@EXAMPLE.TEST", "HERON@EXAMPLE.TEST", "in any form", "  paraphrase:"),
        ("reads heron21@", "reads desk@", "twin.text does not hold", '  text: "Questions'),
        ("goal: add_memory", "goal: add_user", "does not fit content.target", "goal:"),
        ('"LLM01:2025"', "LLM1", "card.owasp has an unknown tag", "  owasp:"),
        ("AML.T0051.001", "T0051", "card.atlas has an unknown tag", "  atlas:"),
        ("Kind regards", "See https://acme-paper.com/x", "names acme-paper.com", "      Kind regards"),
        ("Kind regards", "Write to tom@brightwell.example", "names brightwell.example", "      Kind regards"),
    ],
)
def test_a_broken_field_is_named_with_its_line(tmp_path: Path, old: str, new: str, message: str, at: str) -> None:
    path = tmp_path / "F1" / "F1-001.yaml"
    path.parent.mkdir()
    path.write_text(FIRST, encoding="utf-8")
    edit(path, old, new)
    problems = lint([path])
    assert problems and all(re.search(message, p.message) and p.mend for p in problems), problems
    if at:
        lines = FIRST.splitlines()
        assert only(problems).line == next(n for n, line in enumerate(lines, 1) if line.startswith(at))


def test_a_misspelt_field_gets_a_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "F1-001.yaml"
    path.write_text(FIRST.replace("  stored:", "  stoerd:"), encoding="utf-8")
    found = {problem.message: problem for problem in lint([path])}
    assert found["content.stoerd is not a known field"].mend == "did you mean stored?"
    assert found["content.stored is missing"].mend == "add the field stored"


def test_an_adversarial_scenario_without_twin_is_a_problem(library: Path) -> None:
    path = library / "F1" / "F1-001.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"twin:\n.*\n", "", text), encoding="utf-8")
    blocking = [problem for problem in lint(library) if problem.blocking]
    assert "needs a twin" in only(blocking).message


def test_many_problems_of_one_file_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "F1-001.yaml"
    path.write_text(FIRST + "".join(f"field{n}: 1\n" for n in range(500)), encoding="utf-8")
    problems = lint([path])
    assert len(problems) == 30 and "and 471 more problems" in problems[-1].message


def test_messages_hold_no_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "F1-\x1b[31m.yaml"
    path.write_text(
        FIRST.replace("language: en", r'language: "\x1b[2J\u202e\n::error::"') + '"\\x1b]0;t\\a": 1\n', encoding="utf-8"
    )
    problems = lint([path])
    assert len(problems) == 2
    for problem in problems:
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", str(problem))


# --- rules between files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "old", "new", "message", "at"),
    [
        ("F1/F1-002", "id: F1-002", "id: F1-001", "id F1-001 is also used by F1-001", "id: "),
        ("F1/F1-002", "walnut22", "heron21", "canary heron21 is also used by F1-001", "canary: "),
        ("F5/F5-002", "cedar41", "otter48", "canary otter48 is also used by F5-001", "canary: "),
        ("F1/F1-003", "THE GREEN POST", "THE HERON-21 POST", "holds the canary heron21 of F1-001", "transcript"),
        ("F1/F1-003", "THE GREEN POST", "THE heron21 POST", "holds the canary heron21 of F1-001", "THE GREEN"),
    ],
)
def test_what_two_scenarios_may_not_share(library: Path, file: str, old: str, new: str, message: str, at: str) -> None:
    path = library / f"{file}.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    text = path.read_text(encoding="utf-8").replace(old, new).replace(old.upper(), new.upper())
    path.write_text(text.replace("Cedar-41", "OTTER40"), encoding="utf-8")
    found = [problem for problem in lint(library) if re.search(message, problem.message)]
    problem = only(found)
    assert problem.blocking and problem.file == str(path)
    if at != "transcript":
        assert at in lines[problem.line - 1]


def test_titles_are_unique(library: Path) -> None:
    title = yaml.safe_load(FIRST)["title"]
    path = library / "F5" / "F5-001.yaml"
    line = edit(path, "title: User names his own address for copies of quotes", f"title: {title.upper()}")
    problem = only(lint(library))
    assert "title" in problem.message and problem.line == line and problem.file == str(path)


def test_name_and_folder_must_fit(library: Path) -> None:
    (library / "F1" / "F1-001.yaml").rename(library / "F1" / "first.yaml")
    assert "does not fit the file name first.yaml" in only(lint(library)).message
    (library / "F1" / "first.yaml").rename(library / "F1" / "F1-001.yml")
    assert "F1-001.yml" in only(lint(library)).message
    (library / "F1" / "F1-001.yml").rename(library / "F5" / "F1-001.yaml")
    assert "does not fit the folder F5" in only(lint(library)).message


def test_languages_must_balance_but_do_not_block(library: Path) -> None:
    whole = len(load_library(library))
    (library / "F1" / "F1-004.yaml").unlink()
    problem = only(lint(library))
    told = re.search(r"F1 visible_instruction to user is not balanced: (\d+) in en, (\d+) in pt-BR", problem.message)
    assert told and int(told[1]) == int(told[2]) + 1
    assert not problem.blocking and problem.file.endswith("F1-003.yaml")
    assert len(load_library(library)) == whole - 1
    assert lint([library / "F1" / "F1-003.yaml"]) == []


def test_a_library_is_never_half_loaded(library: Path) -> None:
    line = edit(library / "F5" / "F5-003.yaml", "language: en", "language: de")
    edit(library / "F5" / "F5-004.yaml", "version: 1", "version: 0")
    with pytest.raises(InputError) as caught:
        load_library(library, [Family.F1])
    assert f"F5-003.yaml:{line}: language: " in caught.value.message
    assert "(and 1 more problem)" in caught.value.message
    assert caught.value.mend.startswith("run lab lint ")


def test_other_data_beside_the_families_is_left_alone(library: Path) -> None:
    for folder in ("retrieval", ".cache"):  # "payloads" is there already
        (library / folder).mkdir(exist_ok=True)
        (library / folder / "other.yaml").write_text("x: 1\n")
    assert lint(library) == []
    (library / "F2" / "other.yaml").write_text("x: 1\n")
    assert lint(library)


# --- hosts and disguises --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("mail to otter40@example.test.", []),
        ("https://a.b.example.test:8443/x?y and http://user:pw@example.test/", []),
        ("README.md, CLAUDE.md, ~/.ssh/config, v1.2.3, test_x.py, app.js, .env.example, e.g. this", []),
        ("logger.info(x) and a fim.De frase", []),
        ("upload to https://...", []),
        ("@mention and 3@4", []),
        ("ping acme.com.", ["acme.com"]),
        ("ACME.COM.BR", ["ACME.COM", "ACME.COM.BR"]),
        ("write ana@acme.example", ["acme.example"]),
        ("http://localhost:80/x", ["localhost"]),
        ("ftp://10.0.0.1/", ["10.0.0.1"]),
        ("https://example.test@evil.xyz/", ["evil.xyz", "example.test@evil.xyz"]),
        ("notexample.test", ["notexample.test"]),
        ("example.test.com", ["example.test.com"]),
        ("www.acme.zz", ["www.acme.zz"]),
        ("ａｃｍｅ．ｃｏｍ and ac\u00adme.o\u200brg", ["acme.com", "acme.org"]),
    ],
)
def test_foreign_hosts(text: str, hosts: list[str]) -> None:
    assert set(foreign_hosts(text)) <= set(hosts)
    assert bool(foreign_hosts(text)) == bool(hosts)


@pytest.mark.parametrize("unit", ["a", "a.", "@", "a@", "://", "www.", "a.com", ".com", "\u00ad"])
def test_foreign_hosts_stays_fast(unit: str) -> None:
    start = time.monotonic()
    foreign_hosts(unit * (500_000 // len(unit)))
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    "text", ["OTTER40", "otter-40", "ot\u00adter\ufe0040", "ｏｔｔｅｒ４０", "o\u200btter 40", "ot\u034fter_40"]
)
def test_fold_takes_disguises_off(text: str) -> None:
    assert fold(text) == "otter40"
