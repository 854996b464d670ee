"""Questions whose answers any model of meaning must find, in English and Portuguese, with hardly a word in common."""

from __future__ import annotations

PAIRS = (
    (
        "Where does the landlord keep the spare key?",
        "The second copy to open the flat hangs behind the fuse box.",
    ),
    ("What must I never put in her food?", "She is allergic to peanuts, so no meal may contain them."),
    ("When is the yearly check of the car due?", "The next vehicle inspection is at the end of September."),
    ("Who looks after the garden while we travel?", "Our neighbour waters the plants during every holiday."),
    ("Que remédio ele toma de manhã?", "Depois do café é hora do comprimido para a pressão."),
    ("Como se chama o cachorro da minha irmã?", "Pipoca é o labrador que mora com ela."),
    ("Quanto pagamos de aluguel?", "O apartamento custa dois mil e cem reais por mês."),
    ("Onde foi o casamento deles?", "A cerimônia dos noivos aconteceu em uma igreja de Ouro Preto."),
)
"""A question and its answer."""

OTHERS = (
    "The printer on the second floor needs a new drum.",
    "He plays the cello in an amateur orchestra.",
    "The train to Lisbon leaves from platform four.",
    "Her thesis is about the migration of storks.",
    "O chuveiro queimou de novo na sexta-feira.",
    "A reunião do condomínio ficou para quinta.",
    "O time dela perdeu a final nos pênaltis.",
    "A senha do roteador fica colada embaixo dele.",
)
"""Documents that answer none of the questions."""
