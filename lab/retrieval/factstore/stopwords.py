"""Stopwords of English and Brazilian Portuguese, folded: lower case, without accents."""

from __future__ import annotations

# Words with a sense that a memory may turn on stay out: not, never; nao, nunca, sem.
_ENGLISH = """
a about above after again all am an and any are as at be because been before being below between both but by can could
d did do does doing down during each few for from further had has have having he her here hers herself him himself his
how i if in into is it its itself just ll m me more most my myself now of off on once only or other our ours ourselves
out over own re s same she should so some such t than that the their theirs them themselves then there these they this
those through to too under until up ve very was we were what when where which while who whom whose why will with would
you your yours yourself yourselves
"""
# And words that are of content in English or parts of names: era, ate, sao, ser, pode, vir.
_PORTUGUESE = """
a ao aos aquela aquelas aquele aqueles aquilo as com como da das de dela delas dele deles depois do dos e ela elas ele
eles em entre essa essas esse esses esta estao estas estava este estes estou eu foi foram ha isso isto ja lhe lhes
mais mas me mesma mesmo meu meus minha minhas muito na nas nessa nesse nesta neste no nos nossa nossas nosso nossos
num numa o onde os ou para pela pelas pelo pelos por porque pra qual quais quando quanto que quem se seu seus so sobre
sua suas ta tambem te tem tenho teu teus tinha tua tuas um uma umas uns voce voces
"""

ENGLISH, PORTUGUESE = frozenset(_ENGLISH.split()), frozenset(_PORTUGUESE.split())
