"""The rule of evidence: what suffices, what does not, and when two texts contradict each other."""

from __future__ import annotations

import pytest

from lab.memories.hfea.evidence import Evidence, Kind, Statement, contradict, evidence, question, settled


def seen(asked: str, said: str, author: str = "Ana", *, own: bool = True, time: str = "") -> Evidence | None:
    return evidence(question(asked), Statement(said, author, own, time))


SUFFICES = [
    ("What is the code of the north gate?", "The north gate opens with code 7038."),
    ("Qual é o código do portão norte?", "O portão norte abre com o código 7038."),
    ("When is the inspection of the boiler?", "The boiler's inspection is on 19 March."),
    ("Quando é a vistoria do bombeiro?", "A vistoria do bombeiro ficou para o dia 8."),
    ("Quando é a entrega de barro?", "A entrega de barro é às sextas-feiras."),
    ("Who signed the lease of the studio?", "Dona Neide signed the studio lease."),
    ("How much was the freight to Blumenau?", "The freight to Blumenau came to 420 reais."),
    ("How many chairs are there in the hall?", "There are twelve chairs in the hall."),
    ("Quem assinou o contrato do ateliê?", "O contrato do ateliê foi assinado por Neide."),
    ("Do I like the ash glaze?", "I adore the ash glaze."),
    ("O Iúri gosta de natação?", "O Iúri detesta natação."),
    ("Is Lia happy with the new school?", "Lia is unhappy at her new school."),
    ("Where is the order MS-20417?", "Order MS-20417 is at the depot."),
]
FAILS = {
    "another name": ("When does Genésio come to the studio?", "Otávio comes to the studio on Monday."),
    "another number": ("Where is the order MS-20417?", "Order MS-20418 is at the depot."),
    "a question": ("What is the code of the north gate?", "What is the code of the north gate?"),
    "a question that holds the words": ("What is the code of the gate?", "Is 7038 the code of the gate?"),
    "no time": ("When is the inspection of the boiler?", "The inspection of the boiler was annoying."),
    "a number is no time": ("When does the plumber come back?", "The plumber comes back with 22 mm of pipe."),
    "no number": ("How many chairs are there in the hall?", "There are chairs in the hall."),
    "no name": ("Who painted the hall?", "The hall was painted."),
    "too few words": ("What is the colour of the studio's old door?", "The studio has a name."),
    "a name alone": ("What does Dario cost?", "Dario came with 3 lamps."),
    "nothing new": ("What is the north gate code?", "The code: north gate."),
    "an act is no attitude": ("Is Iúri angry with the gallery?", "Iúri left the gallery before the end."),
    "a taste is no feeling": ("Is Iúri angry with the gallery?", "Iúri prefers the gallery in Lagoa."),
    "another's attitude": ("Does Bruno like the new wheel?", "I like Bruno's new wheel."),
    "words far apart": (
        "What is the code of the north gate?",
        "The north is cold. A. B. C. D. The gate. A. B. Code 7.",
    ),
    "no content word": ("What is it?", "It is what it is: 42."),
}


@pytest.mark.parametrize(("asked", "said"), SUFFICES)
def test_what_suffices(asked: str, said: str) -> None:
    found = seen(asked, said)
    assert found is not None
    assert found.text == said


@pytest.mark.parametrize("why", FAILS)
def test_what_does_not(why: str) -> None:
    assert seen(*FAILS[why]) is None


def test_the_window_is_the_shortest_with_the_greatest_share() -> None:
    said = "It rained. The north gate has a new code, 7038. I bought bread. The gate squeaks."
    found = seen("What is the code of the north gate?", said)
    assert found is not None
    assert found.text == "The north gate has a new code, 7038."
    assert said[found.start : found.end] == found.text


def test_a_question_and_its_answer_in_one_message_are_evidence() -> None:
    found = seen("What is the code of the north gate?", "You ask for the code of the north gate? It is 7038.")
    assert found is not None
    assert "7038" in found.text


def test_the_first_person_is_its_author() -> None:
    assert seen("Does Bruno like the new wheel?", "I like the new wheel.", "Bruno", own=False)
    assert seen("Does Bruno like the new wheel?", "I like the new wheel.", "Ana", own=False) is None
    assert seen("Do I like the new wheel?", "I like the new wheel.", "Ana", own=True)
    assert seen("Do I like the new wheel?", "I like the new wheel.", "Bruno", own=False) is None
    assert seen("Eu gosto do torno novo?", "Gosto muito do torno novo.", "Ana", own=True)
    assert seen("Do I like the new wheel?", "Bruno likes the new wheel.", "Ana", own=True) is None


@pytest.mark.parametrize("text", ["", "?", "what is it", "...", "\n\n", "\0", "記憶", "a" * 5000, "🙂", "the of and"])
def test_any_text_is_a_question(text: str) -> None:
    evidence(question(text), Statement("The north gate opens with code 7038."))
    assert seen("What is the code of the north gate?", text) is None


PAIRS = [
    (
        "How much does it weigh, the old compressor?",
        "The old compressor weighs 38 kg.",
        "The old compressor weighs 52 kg.",
        1,
    ),
    (
        "How much does it weigh, the old compressor?",
        "The old compressor weighs 38 kg.",
        "The old compressor, it weighs 38 kilos.",
        0,
    ),
    ("When is the opening?", "The opening is on 12 March.", "The opening is on 14 March.", 1),
    ("When is the opening?", "The opening is on 12 March at 15:00.", "The opening is on 12 March.", 0),
    ("When is the lesson?", "The lesson is on Monday.", "The lesson is on Thursday.", 1),
    ("A Bea gosta de natação?", "A Bea gosta de natação.", "A Bea não gosta de natação.", 1),
    ("Quem tem a chave da Kombi?", "A chave da Kombi está com Celeste.", "A chave da Kombi está com Genésio.", 1),
    ("Quem tem a chave da Kombi?", "A chave da Kombi está com Celeste.", "Celeste tem a chave da Kombi.", 0),
]


@pytest.mark.parametrize(("asked", "first", "second", "wanted"), PAIRS)
def test_contradictions_and_their_twins(asked: str, first: str, second: str, wanted: int) -> None:
    one, two = seen(asked, first), seen(asked, second)
    assert one is not None
    assert two is not None
    kind = question(asked).kind
    assert contradict(one, two, kind) is contradict(two, one, kind) is bool(wanted)


def test_a_later_statement_that_says_so_replaces_the_earlier() -> None:
    asked = "When is the lesson?"
    old = seen(asked, "The lesson is on Monday.", time="2026-01-01")
    new = seen(asked, "The lesson is now on Thursday.", time="2026-02-01")
    silent = seen(asked, "The lesson is on Thursday.", time="2026-02-01")
    assert old is not None
    assert new is not None
    assert silent is not None
    assert settled((old, new), Kind.TIME) == ((new,), False)
    assert settled((old, silent), Kind.TIME) == ((old, silent), True)
    early = seen(asked, "The lesson is now on Thursday.", time="2025-01-01")
    assert early is not None
    assert settled((old, early), Kind.TIME) == ((old, early), True)
    assert settled((), Kind.TIME) == ((), False)


def test_what_holds_fewer_words_contradicts_nothing() -> None:
    asked = "When does the extinguisher of the studio expire?"
    good = seen(asked, "The studio's extinguisher expires in October.")
    poor = seen(asked, "The studio's lease expires on the 8th.")
    assert good is not None
    assert poor is not None
    assert settled((poor, good), Kind.TIME) == ((good,), False)
