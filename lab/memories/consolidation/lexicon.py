"""Words by which the contradiction scan sees negation, antonyms and times, in English and Brazilian Portuguese.

All are folded (no case, no accents). Languages are kept apart: ``no`` denies in English alone.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _pairs(text: str) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(pair.split("/")) for pair in text.split())


NEGATIONS: Mapping[str, frozenset[str]] = {
    "en": _words(
        """
        not no never none nobody nothing neither nor without cannot cant wont dont doesnt didnt isnt arent
        wasnt werent hasnt havent hadnt shouldnt wouldnt couldnt mustnt
        """
    ),
    "pt": _words(
        """
        nao nunca jamais nem sem nenhum nenhuma ninguem nada deixou deixaram parou pararam
        """
    ),
}
"""Words that deny what is said."""

CHANGES: Mapping[str, str] = {
    "en": "no longer|any ?more|used to|formerly|previously|until recently|back then",
    "pt": r"nao (?:\w+ ){0,3}mais|ja nao|deixou de|deixaram de|parou de|antigamente|antes|costumava|ate pouco",
}
"""Regular expressions of phrases that put what is said into the past."""

TIMES: Mapping[str, frozenset[str]] = {
    "en": _words(
        """
        monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
        fridays saturdays sundays january february march april june july august september october november
        december yesterday today tomorrow tonight morning mornings afternoon afternoons evening evenings
        night nights noon midnight weekly daily monthly yearly spring summer autumn winter weekends weekdays
        """
    ),
    "pt": _words(
        """
        segunda terca quarta quinta sexta sabado domingo segundas tercas quartas quintas sextas sabados
        domingos janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
        ontem hoje amanha manha tarde noite madrugada diariamente semanalmente mensalmente diario semanal
        mensal anual verao inverno outono primavera
        """
    ),
}
"""Words that name a time. ``may`` and ``second`` are left out: they mostly mean something else."""

ANTONYMS: Mapping[str, frozenset[frozenset[str]]] = {
    "en": _pairs(
        """
        open/closed enabled/disabled on/off allowed/forbidden allow/forbid allowed/denied start/stop
        started/stopped increase/decrease rose/fell high/low fast/slow hot/cold big/small large/small
        long/short early/late easy/hard easy/difficult safe/dangerous safe/unsafe public/private
        internal/external online/offline online/remote accept/reject accepted/rejected approved/rejected
        approve/reject success/failure succeeded/failed pass/fail passed/failed like/hate likes/hates
        loves/hates like/dislike likes/dislikes prefers/avoids true/false right/wrong correct/wrong
        correct/incorrect good/bad best/worst more/less most/least always/never everyone/nobody
        present/absent full/empty new/old cheap/expensive light/dark light/heavy loud/quiet
        available/unavailable required/optional mandatory/optional stable/unstable manual/automatic
        free/paid married/single vegetarian/carnivore alive/dead inside/outside before/after up/down
        win/lose won/lost buy/sell bought/sold gained/lost active/inactive healthy/sick wet/dry clean/dirty
        synchronous/asynchronous
        """
    ),
    "pt": _pairs(
        """
        aberto/fechado aberta/fechada abre/fecha ligado/desligado ligada/desligada ativo/inativo
        ativado/desativado ativada/desativada permitido/proibido permitida/proibida permite/proibe
        aumentou/diminuiu subiu/caiu subiu/desceu alto/baixo alta/baixa rapido/lento rapida/lenta
        quente/frio quente/fria grande/pequeno grande/pequena longo/curto longa/curta cedo/tarde
        facil/dificil seguro/perigoso segura/perigosa publico/privado publica/privada interno/externo
        interna/externa presencial/remoto presencial/remota aceitou/recusou aprovou/rejeitou aceito/recusado
        aprovado/rejeitado aprovada/rejeitada aprovado/reprovado aprovada/reprovada passou/falhou
        gosta/odeia gosta/detesta adora/odeia adora/detesta ama/odeia verdadeiro/falso certo/errado
        certa/errada correto/incorreto bom/ruim boa/ruim melhor/pior mais/menos sempre/nunca todos/ninguem
        cheio/vazio cheia/vazia novo/velho nova/velha barato/caro barata/cara claro/escuro clara/escura
        leve/pesado leve/pesada disponivel/indisponivel obrigatorio/opcional obrigatoria/opcional
        estavel/instavel manual/automatico manual/automatica gratuito/pago gratuita/paga casado/solteiro
        casada/solteira vivo/morto dentro/fora antes/depois ganhou/perdeu comprou/vendeu molhado/seco
        limpo/sujo limpa/suja com/sem forte/fraco forte/fraca doce/salgado doce/amargo
        """
    ),
}
"""Pairs of words of opposite sense."""
