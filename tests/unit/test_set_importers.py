"""Foreign sets are imported with the published counts; what is repaired or left out is noted; broken ones are told."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.errors import InputError
from lab.retrieval.data.clinc_oos import import_clinc_oos
from lab.retrieval.data.draw import sample
from lab.retrieval.data.importers import import_set
from lab.retrieval.data.load import load_set, save_set
from lab.retrieval.data.locomo import import_locomo
from lab.retrieval.testset import Purpose, TestSet
from tests.external_data import external_data

SETS = Path(__file__).parents[1] / "fixtures" / "sets"


def classes(found: TestSet) -> Counter[str]:
    return Counter(topic.topic_class for topic in found.topics)


def test_beir() -> None:
    found = import_set(f"beir+en:{SETS / 'beir'}")
    assert {f.id: f.text for f in found.stores["main"]} == {
        "d1": "Ferries The ferry to Marlow leaves at six.",
        "d2": "Rye bread needs a sour starter.",
    }
    assert found.qrels == {"q1": {"d1"}, "q2": {"d2"}}
    assert [(t.id, t.language) for t in found.topics] == [("q1", "en"), ("q2", "en")]
    assert [note.split(":")[1].split()[0] for note in found.notes] == ["1", "1", "1"]
    assert found.purpose is Purpose.EXTERNAL


def test_trec_has_no_language_unless_told_and_the_licence_beside_it() -> None:
    found = import_set(f"trec:{SETS / 'trec'}")
    assert found.qrels == {"401": {"d1"}, "402": {"d2"}}
    assert {t.language for t in found.topics} == {""}
    assert (found.name, found.licence) == ("trec", "CC0 1.0")


def test_trec_with_documents_as_json(tmp_path: Path) -> None:
    shutil.copytree(SETS / "trec", tmp_path / "set")
    (tmp_path / "set" / "docs.tsv").unlink()
    rows = [{"docno": "d1", "contents": "ferry"}, {"id": "d2", "title": "Rye", "text": "bread"}]
    (tmp_path / "set" / "docs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert [f.text for f in import_set(f"trec:{tmp_path / 'set'}").stores["main"]] == ["ferry", "Rye bread"]


def test_a_set_yaml_beside_foreign_data_speaks_for_them(tmp_path: Path) -> None:
    shutil.copytree(SETS / "beir", tmp_path / "x")
    (tmp_path / "x" / "set.yaml").write_text("name: ferries\nlicence: MIT\nsource: me\n")
    found = import_set(f"beir:{tmp_path / 'x'}")
    assert (found.name, found.licence) == ("ferries", "MIT")
    assert found.source.startswith("me; test.tsv, SHA-256 ")


def test_squad() -> None:
    found = import_set(f"squad+pt-BR:{SETS / 'squad'}")
    assert len(found.stores["main"]) == 2
    assert {t.text: found.qrels[t.id] for t in found.topics} == {
        "Do que o pão de centeio precisa?": {"p00001"},
        "O que é natural?": {"p00001", "p00002"},
        "Quando parte a balsa?": {"p00002"},
    }
    assert len(found.notes) == 3


def test_clinc_oos() -> None:
    found = import_clinc_oos(SETS / "clinc-oos", per_intent=2)
    texts = {f.id: f.text for f in found.stores["main"]}
    assert len(texts) == 4
    assert classes(found) == {"in-scope": 2, "out-of-scope": 1}
    for topic, words in (("test-0001", ("timer", "count")), ("test-0002", ("tall", "height", "high"))):
        assert len(found.qrels[topic]) == 2
        assert all(any(word in texts[i] for word in words) for i in found.qrels[topic])
    assert [found.answerable(t) for t in found.topics] == [True, True, False]


def test_locomo() -> None:
    found = import_locomo(SETS / "locomo")
    first = {f.id: f for f in found.stores["conv-1"]}
    assert first["conv-1/D1:2"].text == "Bo: Here is mine! [shares a photo of a red canoe]"
    assert first["conv-1/D1:2"].created_at == "2023-05-08T13:56:00Z"
    assert first["conv-1/D2:1"].created_at == "2023-12-30T00:05:00Z"
    assert found.stores["conv-2"][0].created_at == ""
    assert found.qrels["conv-1/q001"] == {"conv-1/D1:1", "conv-1/D1:2"}
    assert found.qrels["conv-1/q002"] == {"conv-1/D2:1"}
    assert found.qrels["conv-1/q004"] == {"conv-1/D2:2"}
    assert classes(found) == {"multi-hop": 1, "temporal": 1, "open-domain": 1, "single-hop": 4, "no-answer": 7}
    assert "4 evidence strings" in found.notes[0]
    assert "(1 name turns that are not there)" in found.notes[0]
    assert "1 open-domain" in found.notes[1]


def test_locomo_asks_no_store_in_which_a_speaker_of_the_question_speaks() -> None:
    found = import_locomo(SETS / "locomo")
    crossed = {(t.id.split("/")[0], t.store) for t in found.topics if t.topic_class == "no-answer"}
    # The next store of the first conversation has a speaker of the same name.
    assert crossed == {("conv-1", "conv-3"), ("conv-2", "conv-3"), ("conv-3", "conv-1")}
    assert not any(map(found.answerable, (t for t in found.topics if t.topic_class == "no-answer")))


def test_the_adversarial_category_only_on_request() -> None:
    with_it = import_set(f"locomo+adversarial:{SETS / 'locomo'}")
    (extra,) = (t for t in with_it.topics if t.topic_class == "adversarial")
    assert with_it.answerable(extra)
    assert any("no topics without an answer" in note for note in import_locomo(SETS / "locomo").notes)


@pytest.mark.parametrize(("one", "other"), [(1, 4), (2, 4), (1, 2), (4, 5), (2, 3), (1, 5)])
def test_rotated_categories_are_refused(one: int, other: int, tmp_path: Path) -> None:
    rotated = {one: other, other: one}

    def rotate(data: Any) -> None:
        for conversation in data:
            for asked in conversation["qa"]:
                asked["category"] = rotated.get(asked["category"], asked["category"])

    with pytest.raises(InputError, match="does not look like LoCoMo's"):
        import_locomo(changed("locomo", rotate, tmp_path))


def changed(name: str, change: Callable[[Any], object], folder: Path) -> Path:
    data = json.loads((SETS / name / "small.json").read_text(encoding="utf-8"))
    change(data)
    path = folder / "changed.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("form", "change", "fault"),
    [
        ("squad", lambda d: d.pop("data"), "the document has no data that is a list"),
        ("squad", lambda d: d["data"][0].pop("paragraphs"), "data[0] has no paragraphs"),
        ("squad", lambda d: d["data"][0]["paragraphs"][0].update(context=3), "has no context that is a text"),
        ("squad", lambda d: d["data"][0]["paragraphs"][0]["qas"].append("x"), "qas[2] has no question"),
        ("squad", lambda d: d.update(data=[]), "no answerable question"),
        ("clinc-oos", lambda d: d.pop("oos_test"), "has no oos_test"),
        ("clinc-oos", lambda d: d["test"].append(["x"]), "test[2] is no [text, intent]"),
        ("clinc-oos", lambda d: d["test"].append(["x", "new"]), "intent new is tested but not trained"),
        ("locomo", lambda d: d[0].pop("qa"), "[0] has no qa"),
        ("locomo", lambda d: d[0]["qa"][0].update(category=7), "[0].qa[0] has category 7"),
        ("locomo", lambda d: d[0]["qa"][0].update(category=True), "[0].qa[0] has no category"),
        ("locomo", lambda d: d[0]["conversation"]["session_1"][0].pop("text"), "[0].session_1[0] has no text"),
        ("locomo", lambda d: d[0]["conversation"]["session_1"][1].update(dia_id="D1:1"), "D1:1 is there twice"),
        ("locomo", lambda d: d.clear(), "no list of conversations"),
    ],
)
def test_foreign_files_of_another_shape(form: str, change: Callable[[Any], object], fault: str, tmp_path: Path) -> None:
    path = changed(form, change, tmp_path)
    with pytest.raises(InputError) as caught:
        import_set(f"{form}:{path}")
    assert caught.value.message == f"{path}:1: {caught.value.message.split(':1: ')[1]}"
    assert fault in caught.value.message
    assert caught.value.mend


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        (
            "corpus.jsonl",
            '{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n',
            "corpus.jsonl:2: the id d1 is there twice",
        ),
        ("corpus.jsonl", '{"text": "x"}\n', "corpus.jsonl:1: _id or id or docno is missing"),
        ("corpus.jsonl", '{"_id": "d1", "text": ["x"]}\n', "corpus.jsonl:1: text is neither text"),
        ("corpus.jsonl", '["d1", "x"]\n', "corpus.jsonl:1: not a JSON object"),
        ("corpus.jsonl", '{"_id": "d1", "text": "\\ud83d"}\n', "corpus.jsonl:1: holds half a surrogate pair"),
        ("corpus.jsonl", '{"_id": "d1", "text": "\\u0000"}\n', "corpus.jsonl:1: holds an escaped NUL"),
        ("corpus.jsonl", "[" * 100_000, "corpus.jsonl:1: not usable JSON: nested too deeply"),
        ("corpus.jsonl", '{"_id": "zz", "text": "x"}\n', "test.tsv:1: no document that is there answers any query"),
        ("queries.jsonl", '{"_id": "q1", "text": "x"}\n', "test.tsv:3: judged query q2 is not there"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\thigh\n", "test.tsv:2: relevance 'high'"),
        ("qrels/test.tsv", "q1 0 d1 1\n", "test.tsv:1: 1 columns instead of three"),
    ],
)
def test_broken_beir(name: str, text: str, fault: str, tmp_path: Path) -> None:
    shutil.copytree(SETS / "beir", tmp_path / "set")
    (tmp_path / "set" / name).write_text(text)
    with pytest.raises(InputError) as caught:
        import_set(f"beir:{tmp_path / 'set'}")
    assert fault in caught.value.message


def test_a_whole_emoji_and_an_escaped_backslash_are_no_fault(tmp_path: Path) -> None:
    shutil.copytree(SETS / "beir", tmp_path / "set")
    rows = '{"_id": "d1", "text": "\\ud83d\\ude00"}\n{"_id": "d2", "text": "\\\\u0000"}\n'
    (tmp_path / "set" / "corpus.jsonl").write_text(rows)
    assert [f.text for f in import_set(f"beir:{tmp_path / 'set'}").stores["main"]] == ["\U0001f600", "\\u0000"]


@pytest.mark.parametrize(
    ("spec", "message", "mend"),
    [
        ("biir:x", "no importer is called biir", "beir:…?"),
        ("nowhere", "no such folder", "facts.jsonl"),
        ("beir:", "names no path", "beir:PATH"),
        ("locomo+pt:x", "no option pt", "locomo+adversarial:PATH"),
        ("clinc-oos+en:x", "no option en", "clinc-oos:PATH"),
        ("squad:nowhere.json", "nowhere.json:1: no such file", "check the path"),
        ("beir:nowhere", "corpus.jsonl:1: no such file", "check the path"),
    ],
)
def test_specs_that_lead_nowhere(spec: str, message: str, mend: str) -> None:
    with pytest.raises(InputError) as caught:
        import_set(spec)
    assert message in caught.value.message
    assert mend in caught.value.mend


def test_a_folder_is_a_set_of_our_own_even_with_a_colon_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert import_set(str(SETS / "good")) == load_set(SETS / "good")
    shutil.copytree(SETS / "good", tmp_path / "odd:name")
    monkeypatch.chdir(tmp_path)
    assert import_set("odd:name").name == "good"


def test_several_files_in_a_folder_are_no_guess(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=r"2 \.json files"):
        import_set(f"squad:{tmp_path}")


@pytest.mark.parametrize("spec", ["beir", "trec", "squad", "clinc-oos", "locomo"])
def test_an_imported_set_can_be_saved_in_our_form(spec: str, tmp_path: Path) -> None:
    found = import_set(f"{spec}:{SETS / spec}")
    save_set(found, tmp_path / "own")
    assert load_set(tmp_path / "own") == found


def test_a_sample_depends_on_names_and_seed_alone() -> None:
    names = [f"n{i}" for i in range(50)]
    chosen = sample(names, 10, 3, str)
    assert sorted(sample(reversed(names), 10, 3, str)) == sorted(chosen)
    assert sample(names, 10, 4, str) != chosen
    assert len(set(sample([*names, "new"], 10, 3, str)) & set(chosen)) >= 9
    # Pinned: another version of Python must choose the same.
    assert chosen == ["n0", "n4", "n10", "n14", "n23", "n26", "n37", "n42", "n45", "n49"]


def test_real_locomo() -> None:
    found = import_set(f"locomo:{external_data('locomo')}")
    assert (len(found.stores), sum(map(len, found.stores.values()))) == (10, 5_882)
    assert classes(found) == {
        "multi-hop": 282,
        "temporal": 321,
        "open-domain": 92,
        "single-hop": 841,
        "no-answer": 400,
    }
    assert sum(map(found.answerable, found.topics)) == 1_536
    assert "9 evidence strings" in found.notes[0]
    assert "(2 name turns that are not there)" in found.notes[0]
    assert "12 questions" in found.notes[2]


def test_real_locomo_with_its_categories_renumbered(tmp_path: Path) -> None:
    data = json.loads((external_data("locomo") / "locomo10.json").read_text(encoding="utf-8"))
    for conversation in data:
        for asked in conversation["qa"]:
            asked["category"] = {1: 4, 4: 3, 3: 1}.get(asked["category"], asked["category"])
    path = tmp_path / "rotated.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=r"category [14] does not look like"):
        import_locomo(path)


def test_real_faquad() -> None:
    found = import_set(f"squad+pt-BR:{external_data('faquad')}")
    assert (len(found.stores["main"]), len(found.topics), found.name) == (249, 897, "faquad")
    assert "900 questions" in found.notes[0]
    assert all(map(found.answerable, found.topics))
    assert "Creative Commons" in found.licence


def test_real_clinc_oos() -> None:
    found = import_set(f"clinc-oos:{external_data('clinc-oos')}")
    assert len(found.stores["main"]) == 750
    assert classes(found) == {"in-scope": 4_500, "out-of-scope": 1_000}
    assert {len(found.qrels[t.id]) for t in found.topics if t.topic_class == "in-scope"} == {5}


def test_a_generated_set_is_one_form_among_others() -> None:
    made = import_set("generated:400")
    assert len(made.stores["main"]) == 400
    assert import_set("generated+7:400").digest() != made.digest() == import_set("generated+0:400").digest()
    for broken in ("generated:", "generated:many", "generated+x:400", "generated:5"):
        with pytest.raises(InputError):
            import_set(broken)
