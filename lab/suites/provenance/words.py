"""Words that the reference extractor knows, English and Portuguese; general knowledge of the languages, no names."""

from __future__ import annotations

_DE = "d(?:[eoa]s?|el[ea]s?|isso|isto|aquilo)"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def either(words: str) -> str:
    """A pattern that takes any of the words or phrases, which ``|`` parts; the longest first.

    ``d~`` stands for the Portuguese "de" and all that it merges with.
    """
    pattern = "|".join(sorted(words.split("|"), key=len, reverse=True))
    return f"(?:{pattern.replace('d~', _DE)})"


THINGS = _set(
    "sign door note letter email mail article book label poster screen message contract report page website box "
    "card wall placa aviso carta bilhete cartaz tela porta livro artigo site mensagem contrato relatório página "
    "caixa cartão parede anúncio manual etiqueta instrução menu cardápio e-mail legenda faixa"
)
"""What words stand on, which speaks for nobody."""

MONTHS = _set(
    "january february march april may june july august september october november december monday tuesday "
    "wednesday thursday friday saturday sunday janeiro fevereiro março abril maio junho julho agosto setembro "
    "outubro novembro dezembro segunda terça quarta quinta sexta sábado domingo domingos christmas easter natal "
    "páscoa carnaval"
)
PLACES = _set(
    "lisbon london paris berlin madrid rome milan florence venice vienna dublin sydney tokyo geneva zurich oslo "
    "porto boston chicago austin dallas denver houston phoenix seattle georgia virginia carolina dakota victoria "
    "adelaide brasil brazil portugal lisboa londres roma manaus salvador vitória recife fortaleza natal curitiba "
    "brasília bahia belém goiânia campinas santos florianópolis cuiabá maceió aracaju teresina palmas niterói "
    "minas paraná paraíba france germany spain italy england japan china india america europe africa asia europa "
    "mercedes"
)
TITLES = _set(
    "coach mr mrs ms miss dr dra prof sr sra srta dona seu dom tia tio aunt uncle professor professora doutor doutora"
)

OPENERS = _set(
    "a o as os an the this that these those there here it its i im we you he she they me my our your his her "
    "their and but or so if when while because since at by for from in into of off on onto over to under until "
    "up with yes no not ok okay please thanks thank sure well look also today tomorrow yesterday tonight however "
    "first second last next then now maybe perhaps finally usually always never sometimes often just only even "
    "still did do does is are was were will would can could should may might must have has had what who whom "
    "whose which where why how let hi hey hello dear good happy someone somebody anybody everybody nobody "
    "everyone anyone note remind search rename move book call send add delete keep see short message subject re "
    "fwd fw fyi date cc best regards sincerely cheers hugs love visitors room contact assistant agent user "
    "according given about after before during both each every all any some many most few more another other "
    "same such than too very don't doesn't didn't i'm i'd i've i'll it's that's what's let's can't won't you're "
    "we're they're need ask tell check open close read write buy get make take e mas ou então assim se quando "
    "enquanto porque pois que quem qual quais onde como por pra para pro de da dos das em na nos nas com sem sob "
    "sobre até desde entre ao aos à às um uma uns umas este esta esse essa isso isto aquele aquela eu tu ele ela "
    "nós vós eles elas você vocês vc gente meu minha meus minhas teu tua seu sua seus suas nosso nossa nossos "
    "nossas sim não tá sabe uso olha olhe veja hoje amanhã ontem agora depois antes já ainda também só talvez "
    "bom boa oi olá ola ei ô fala valeu obrigado obrigada prezado prezada prezados prezadas caro cara feliz "
    "alguém ninguém todo toda todos todas cada mais menos muito muita qualquer outro outra mesmo mesma segundo "
    "conforme aí daí lá aqui ali recado mensagem assunto atenciosamente abraço abraços att grato grata saudações "
    "enc segue sala contato assistente agente usuário usuária relatório adicionei marca anota procura renomeia "
    "manda avisa lembra coloca compra liga chama abre fecha apaga envia mostra tenho tem preciso quero terminei "
    "comprei eram era foi será kind warm grandpa grandma mum mom mummy mommy dad daddy vovó vovô mamãe papai "
    "listen wait stop yeah nope sorry congratulations morning evening afternoon earlier later once twice unlike "
    "despite although though whenever whether meanwhile anyway honestly actually apparently regarding concerning "
    "attention warning important urgent reminder done noted thing nothing something everything old new big small "
    "worst work working home office sales support staff team help forget try start use put leave bring print "
    "translate summarize summarise schedule cancel confirm update change set turn play pay pick list escuta "
    "espera calma desculpa anotado pronto feito atenção aviso urgente importante diferente apesar embora sempre "
    "nunca aliás inclusive enfim parece acho queria gostaria pode podia deixa bota faz leva traz usa dia dias "
    "casa trabalho vendas suporte equipe time rh lembrete dizem falaram disseram vi vou fui fiz estou tô estava "
    "quanto quantos precisa consegue confirma cancela agenda atualiza resume traduz imprime escreve responde "
    "mostre alguns algumas certo beleza obs ps nada novo nova velho velha grande eis pelo pela pelos pelas num "
    "numa visitantes projector parabéns tchau bem tudo pergunta pede diz diga"
)
"""Words that begin sentences and are no names, as far as a list can say."""

NOT_CALLED = _set(
    "there all everyone everybody guys team folks you gente pessoal galera tudo todos amigo amigos amiga amor "
    "again to tenants residents neighbours neighbors colleagues customers customer client clients sir madam "
    "parents students members guests moradores condôminos colegas clientes cliente vizinhos vizinhas senhores "
    "senhor senhora pais alunos hóspedes associados the for and from de da do com pra para meu minha que e como "
    "aí ai beleza bom boa so a o it this that my"
)
"""What follows a greeting and calls nobody by name."""

_SAY = (
    "said|says|say|told|tells|tell|wrote|writes|write|written|replied|replies|answered|answers|asked|asks|shouted"
    "|yelled|whispered|added|adds|texted|texts|messaged|scribbled|screamed|insisted|muttered|announced|goes"
    "|put it|insists|keeps saying|called out|remarked|joked|warned|promised|quipped|explained|complained|typed"
    "|posted|sighed|begged|emailed|phoned|repeating|repeated|repeats|saying|cried|laughed|snapped|claimed"
    "|shrugged|mumbled|argued|suggested|wondered|reads|signed|called back|chimed in|concluded|commented|admitted"
    "|disse|diz|dizia|dizem|dizendo|disseram|falou|fala|falei|falava|falando|escreveu|escreve|escrevi|escrito"
    "|respondeu|responde|respondi|perguntou|pergunta|perguntei|gritou|gritei|sussurrou|acrescentou|mandou|mandei"
    "|rabiscou|avisou|avisei|insistiu|anunciou|comentou|comentei|explicou|reclamou|prometeu|brincou|soltou"
    "|repetiu|repete|postou|contou|repetia|repetiam|respondia|gritava|perguntava|concluiu|admitiu|argumentou"
    "|sugeriu|resmungou|berrou|completou|emendou|lembrou|confessou|jurou|alertou|ordenou|exclamou|cochichou"
    "|publicou|rebateu|digo|disseste|digitou|murmurou|pediu|pedi|declarou|afirmou|garantiu|retrucou"
)
SAY = either(_SAY)
SAY_FIRST = either("falei|escrevi|respondi|perguntei|gritei|mandei|avisei|comentei|pedi")
"""Forms that say "I" by themselves."""

HUMAN_VERB = either(
    f"{_SAY}|can|could|will|would|should|must|might|has|had|is|was|does|did|doesn't|isn't|can't|wants|likes"
    "|loves|hates|prefers|called|calls|comes|came|sent|sends|emailed|works|lives|and I|always|never|usually|just"
    "|still|also|only|phoned|rang|texted|handles|starts|left|swore|brought|made|took|got|went|gave|bought|found"
    "|lost|broke|drove|ran|thought|knew|kept|met|paid|put|sat|sold|taught|won|built|caught|chose|fell|felt|held"
    "|saw|and|wasn't|won't|pode|podia|vai|foi|é|era|está|estava|tem|tinha|quer|queria|sabe|precisa|prefere|gosta"
    "|adora|odeia|detesta|ligou|liga|vem|veio|chega|chegou|viajou|trabalha|mora|só|sempre|nunca|não|já|também"
    "|ainda|acha|contou|me|te|lhe|se"
)
PREFER_S = either(
    "prefers|likes|loves|hates|dislikes|enjoys|adores|detests|can't stand|cannot stand|can't bear|doesn't like"
    "|does not like|doesn't eat|won't eat|is fond of|is a fan of|isn't keen on|is keen on|is not keen on"
    "|is not a fan of|has a soft spot for|sticks to|sticks with|won't touch|is into|isn't into|would choose"
    "|can't do without|never goes without|swears by|insists on|despises|loathes|favors|favours|can't live without"
    "|is partial to|isn't a fan of"
)
PREFER = either(
    "prefer|like|love|hate|dislike|enjoy|adore|detest|can't stand|cannot stand|can't bear|don't like|do not like"
    "|loathe|don't eat|am fond of|'m fond of|swear by|despise|favor|favour|can't live without|don't enjoy"
    "|'m a fan of|'m not a fan of|am not a fan of|am a fan of|'m keen on|'m not keen on|am keen on|stick to"
    "|stick with|won't touch|'m into|'m not into|can't do without|really like|have a soft spot for"
)
_TAKING = (
    "use|buy|order|eat|drink|take|wear|book|sit|sleep|fly|pay|choose|pick|read|write|cook|travel|ship|drive|ride|shop"
    "|listen|watch|ask for|have|carry|sign|touch|smoke|get|add|rent|stay|pack"
)
TAKE = either(_TAKING)
TAKE_S = either("|".join(f"{verb}s" for verb in _TAKING.split("|")) + "|watches|touches|flies|carries|has|asks for")
PREFERE = either(
    "prefere|preferem|gosta d~|gostam d~|gosta muito d~|não gosta|não gostam|adora|adoram|odeia|odeiam|detesta"
    "|detestam|não suporta|não suportam|não aguenta|não abre mão|curte|não curte|ama|amam|é fã d~|não come"
    "|não bebe|faz questão d~|nao gosta|nao suporta|nao curte|nao come|não dispensa|tem horror a|não tolera"
    "|é louca por|é louco por|não larga|não é muito d~|não é chegad[oa]|é chegad[oa]|não vive sem|não troca"
    "|não curtem|curtem|não é fã d~|não são fãs d~|tem preferência|tem pavor d~|não pode ver|dispensa"
    "|morre d~ amores|não comem"
)
PREFIRO = either(
    "mais gosto|mais odeio|prefiro|preferimos|gosto d~|gosto muito d~|gostamos d~|não gosto|nao gosto|adoro"
    "|adoramos|odeio|odiamos|detesto|não suporto|nao suporto|não aguento|não abro mão|curto|não curto|amo"
    "|sou fã d~|não como|faço questão d~|não bebo|não dispenso|tenho horror a|não tolero|sou louca por"
    "|sou louco por|não sou fã d~|não sou muito d~|não largo|não vivo sem|não troco|tenho preferência|nunca como"
    "|tenho pavor d~|gosto mais|minha preferência|nao curto|nao sou fã d~"
)
PEGO = either(
    "uso|compro|peço|como|bebo|tomo|pego|visto|reservo|sento|durmo|pago|escolho|leio|escrevo|cozinho|viajo"
    "|despacho|levo|ouço|assisto|boto|ponho|coloco|carrego|fumo|alugo|voo|usamos|compramos|pedimos|comemos"
    "|bebemos|tomamos|pegamos"
)
PEGA = either(
    "usa|compra|pede|come|bebe|toma|pega|veste|reserva|senta|dorme|paga|escolhe|lê|escreve|cozinha|viaja|despacha"
    "|leva|ouve|assiste|bota|põe|coloca|carrega|fuma|aluga|voa|usam|compram|pedem|comem|bebem|tomam|pegam"
    "|escolhem|pagam|leem"
)
RELATION = either(
    "wife|husband|partner|sister|brother|mother|father|mum|mom|dad|daughter|son|aunt|uncle|cousin|niece|nephew"
    "|friend|boss|manager|colleague|coworker|neighbou?r|neighbou?rs|teacher|doctor|dentist|landlord|landlady"
    "|roommate|flatmate|assistant|accountant|lawyer|client|girlfriend|boyfriend|fiancée?|grandmother|grandfather"
    "|grandma|grandpa|kids|children|parents|sisters|brothers|friends|cousins|colleagues|twins|sons|daughters"
    "|trainer|coach|intern|tutor|in-laws|[a-z]+-in-law|sogros|secretary|supervisor|stepson|stepdaughter"
    "|stepmother|stepfather|godmother|godfather|esposa|esposo|marido|mulher|irmã|irmão|irmãs|irmãos|mãe|pai|pais"
    "|filha|filho|filhas|filhos|tia|tio|prima|primo|primos|sobrinha|sobrinho|amiga|amigo|amigos|chefe|gerente"
    "|colega|colegas|vizinha|vizinho|vizinhos|professora|professor|médica|médico|dentista|síndico|síndica"
    "|namorada|namorado|noiva|noivo|avó|avô|sogra|sogro|cunhada|cunhado|nora|genro|contadora|contador|advogada"
    "|advogado|cliente|estagiária|estagiário|orientadora|orientador|madrinha|padrinho|sócia|sócio|diarista|babá"
    "|treinador|treinadora|enteada|enteado|secretária|secretário|companheira|companheiro|neta|neto"
)
GUESS = either(
    "maybe|perhaps|if|whether|used to|would|might|could|should|probably|wonder|suppose|imagine|ask|unless|pretend"
    "|talvez|se|caso|será|acho que|quem sabe|provavelmente|supondo|imagina|pergunta|deve|gostaria|antigamente"
    "|parece"
)
