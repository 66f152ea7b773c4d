"""The parts that load tests make sentences of: everyday words, invented for this purpose.

Any subject goes with any predicate, and every clause is grammatical, since a model that is sent a salad of words
answers with text of a length that real text never gets. Parts are separated by ``|``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """Of one language.

    Attributes:
        subjects: third person singular, without a capital letter where the language needs none.
        predicates: a verb and its object, separated by a comma where further words may stand between them.
        times, places: adverbials.
        connectors: that join two main clauses without a change of their order.
        shorts: clauses of three words at most, for the shortest sentences.
        time_first: whether times stand between verb and object, places behind it; otherwise both stand behind it.
    """

    subjects: tuple[str, ...]
    predicates: tuple[str, ...]
    times: tuple[str, ...]
    places: tuple[str, ...]
    connectors: tuple[str, ...]
    shorts: tuple[str, ...]
    time_first: bool = False


def _parts(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.split("|"))


GERMAN = Grammar(
    subjects=_parts(
        """der alte Lehrer | die neue Nachbarin | mein Bruder | ihre kleine Tochter | der Arzt | die Köchin | unser
        Freund aus dem Norden | ein junger Mann | eine ältere Frau | der Fahrer | die Verkäuferin | sein Vater |
        meine Tante | der müde Wanderer | die Ärztin aus der Stadt | der Bäcker | das Mädchen | ein Gast | die
        Leiterin der Schule | der Student | unsere Großmutter | jemand | der Gärtner | die Frau mit dem roten Hut"""
    ),
    predicates=_parts(
        """kauft, ein neues Fahrrad | liest, ein langes Buch | schreibt, einen Brief an die Familie | sucht, den
        Schlüssel | repariert, die alte Uhr | öffnet, das Fenster | kocht, eine warme Suppe | malt, ein kleines Bild
        | findet, den richtigen Weg | trägt, die Bücher | verkauft, frisches Brot | wäscht, das schmutzige Geschirr
        | trinkt, eine Tasse Kaffee | besucht, den kranken Freund | erzählt, eine lustige Geschichte | bezahlt, die
        Rechnung | ruft, die Kinder | braucht, ein wenig Hilfe | plant, die nächste Reise | verliert, den Schirm |
        zeigt, den Gästen das Haus | wartet, auf eine Antwort | lernt, eine neue Sprache | gießt, die Blumen"""
    ),
    times=_parts(
        """heute | am Abend | jeden Morgen | nach der Arbeit | am nächsten Tag | noch einmal | vor dem Essen | im
        Winter | am Sonntag | gegen acht Uhr | wie immer | manchmal | endlich | zum ersten Mal | nach einer langen
        Pause | in diesem Jahr"""
    ),
    places=_parts(
        """im Dorf | in der Küche | am Bahnhof | neben der Kirche | auf dem Markt | in einem kleinen Laden | im Garten
        | an der Ecke | vor dem Haus | im Zug | in der Stadt | am anderen Ufer | hinter der Schule | im dritten
        Stock | zu Hause | bei den Nachbarn"""
    ),
    connectors=_parts(", und | , aber | , denn | , oder | , doch"),
    shorts=_parts(
        """Er wartet | Sie kommt | Wir gehen | Das stimmt | Ich weiß es | Es regnet | Komm bald | Vielen Dank | Guten
        Morgen | Bis morgen | Sie schläft noch"""
    ),
    time_first=True,
)

ENGLISH = Grammar(
    subjects=_parts(
        """the old teacher | the new neighbour | my brother | her little daughter | the doctor | the cook | our friend
        from the north | a young man | an elderly woman | the driver | the shop assistant | his father | my aunt |
        the tired traveller | the nurse from the city | the baker | the girl | a guest | the head of the school |
        the student | our grandmother | somebody | the gardener | the woman with the red hat"""
    ),
    predicates=_parts(
        """buys a new bicycle | reads a long book | writes a letter to the family | looks for the key | repairs the old
        clock | opens the window | cooks a warm soup | paints a small picture | finds the right way | brings back
        the books | sells fresh bread | washes the dirty dishes | drinks a cup of coffee | visits the sick friend |
        tells a funny story | pays the bill | picks up the children | needs a little help | plans the next journey |
        loses the umbrella | shows the house to the guests | waits for an answer | learns a new language | waters
        the flowers"""
    ),
    times=_parts(
        """today | in the evening | every morning | after work | on the next day | once more | before dinner | in
        winter | on Sunday | at about eight | as always | sometimes | at last | for the first time | after a long
        break | this year"""
    ),
    places=_parts(
        """in the village | in the kitchen | at the station | next to the church | at the market | in a small shop | in
        the garden | at the corner | in front of the house | on the train | in the city | on the other bank | behind
        the school | on the third floor | at home | with the neighbours"""
    ),
    connectors=_parts(", and | , but | , so | , or | , yet"),
    shorts=_parts(
        """He waits | She comes | We go | That is true | I know it | It rains | Come soon | Many thanks | Good morning
        | See you | She still sleeps"""
    ),
)

FRENCH = Grammar(
    subjects=_parts(
        """le vieux professeur | la nouvelle voisine | mon frère | sa petite fille | le médecin | la cuisinière | notre
        ami du nord | un jeune homme | une vieille dame | le chauffeur | la vendeuse | son père | ma tante | le
        voyageur fatigué | le boulanger | la fille | un invité | la directrice de la banque | notre grand-mère |
        quelqu'un | le jardinier | la femme au chapeau rouge"""
    ),
    predicates=_parts(
        """achète un nouveau vélo | lit un long livre | écrit une lettre à la famille | cherche la clé | répare la
        vieille montre | ouvre la fenêtre | prépare une soupe chaude | peint un petit tableau | trouve le bon chemin
        | rapporte les livres | vend du pain frais | lave la vaisselle | boit une tasse de café | raconte une
        histoire drôle | paie la facture | attend les enfants | prépare le prochain voyage | perd le parapluie |
        montre la maison aux visiteurs | arrose les fleurs"""
    ),
    times=_parts(
        """aujourd'hui | le soir | chaque matin | après le travail | le lendemain | avant le dîner | en hiver | le
        dimanche | vers huit heures | comme toujours | parfois | enfin | pour la première fois | après une longue
        pause | cette année"""
    ),
    places=_parts(
        """au village | dans la cuisine | à la gare | près de la mairie | au marché | dans une petite boutique | dans
        le jardin | au coin de la rue | devant la maison | dans le train | en ville | sur l'autre rive | derrière le
        musée | au troisième étage | à la maison | chez les voisins"""
    ),
    connectors=_parts(", et | , mais | , car | , ou"),
    shorts=_parts(
        """Il attend | Elle arrive | Nous partons | C'est vrai | Je le sais | Il pleut | Viens vite | Merci beaucoup |
        Bonjour à tous | À demain | Elle dort encore"""
    ),
)

SPANISH = Grammar(
    subjects=_parts(
        """el viejo maestro | la nueva vecina | mi hermano | su hija pequeña | el médico | la cocinera | nuestro amigo
        del norte | un hombre joven | una mujer mayor | el conductor | la vendedora | su padre | mi tía | el viajero
        cansado | el panadero | la niña | un invitado | la directora del banco | nuestra abuela | alguien | el
        jardinero | la mujer del sombrero rojo"""
    ),
    predicates=_parts(
        """compra una bicicleta nueva | lee un libro largo | escribe una carta a la familia | busca la llave | arregla
        el reloj antiguo | abre la ventana | prepara una sopa caliente | pinta un cuadro pequeño | encuentra el
        camino | devuelve los libros | vende pan fresco | lava los platos | bebe una taza de café | cuenta una
        historia divertida | paga la cuenta | espera a los niños | planea el próximo viaje | pierde el paraguas |
        enseña la casa a los huéspedes | riega las flores"""
    ),
    times=_parts(
        """hoy | por la tarde | cada mañana | después del trabajo | al día siguiente | antes de la cena | en invierno |
        el domingo | hacia las ocho | como siempre | a veces | por fin | por primera vez | después de una larga
        pausa | este año"""
    ),
    places=_parts(
        """en el pueblo | en la cocina | en la estación | cerca de la iglesia | en el mercado | en una tienda pequeña |
        en el jardín | en la esquina | delante de la casa | en el tren | en la ciudad | en la otra orilla | detrás
        del museo | en el tercer piso | en casa | con los vecinos"""
    ),
    connectors=_parts(", y | , pero | , pues | , o"),
    shorts=_parts(
        """Él espera | Ella viene | Nos vamos | Es verdad | Lo sé | Llueve | Ven pronto | Muchas gracias | Buenos días
        | Hasta mañana | Aún duerme"""
    ),
)

# Subjects of every language, first and last names in any combination: they keep sentences from coming twice.
FIRST_NAMES = _parts(
    """Anna | Thomas | Maria | Peter | Laura | Martin | Sofia | Daniel | Julia | David | Clara | Robert | Emma | Paul |
    Nina | Simon | Eva | Oskar | Helena | Jonas | Lena | Victor | Alma | Felix | Rosa | Hugo | Ida | Leo | Nora | Max"""
)
LAST_NAMES = _parts(
    """Adler | Berger | Castro | Dupont | Ellis | Fischer | Garcia | Harris | Iversen | Jansen | Keller | Lambert |
    Meyer | Novak | Olsen | Parker | Quinn | Romero | Schmidt | Torres | Unger | Vidal | Weber | Young | Zimmer"""
)
GRAMMARS = {"de": GERMAN, "en": ENGLISH, "fr": FRENCH, "es": SPANISH}
