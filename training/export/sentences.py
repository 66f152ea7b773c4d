"""Sentences of our own, free of any corpus' terms, to prove a bundle on where the user gives none."""

from __future__ import annotations

from models.errors import ConfigError

_GERMAN = """
Wo ist der nächste Bahnhof?
Ich hätte gern ein Glas Wasser.
Unsere Nachbarn sind gestern nach Hamburg gezogen.
Wie spät ist es?
Das Konzert beginnt um halb acht im großen Saal.
Kannst du mir bitte beim Tragen der Kisten helfen?
Sie arbeitet seit drei Jahren als Ärztin in einem kleinen Krankenhaus.
Wenn es morgen regnet, bleiben wir zu Hause und spielen Karten.
Der Zug nach Köln hat ungefähr zwanzig Minuten Verspätung.
Mein Bruder hat sein Fahrrad in der Garage vergessen.
Bitte schalten Sie das Licht aus, bevor Sie gehen.
Warum hast du mich nicht angerufen?
Die Kinder haben den ganzen Nachmittag im Garten gespielt.
Ich kann meine Schlüssel nirgends finden.
Er hat mir versprochen, das Buch bis Freitag zurückzubringen.
Der Kaffee ist zu heiß zum Trinken.
Diese Aufgabe ist schwieriger, als ich dachte.
Gestern Abend haben wir einen alten Film gesehen.
Meine Großmutter backt den besten Apfelkuchen der Stadt.
Hast du schon gegessen?
Das Fenster lässt sich nicht mehr öffnen.
Im Sommer fahren wir meistens ans Meer.
Ich habe drei Jahre lang Klavier gelernt, aber ich kann kein einziges Lied mehr spielen.
Der Arzt hat ihr geraten, weniger zu arbeiten und mehr zu schlafen.
Niemand wusste, woher das Geräusch kam.
Sie müssen das Formular ausfüllen und unten unterschreiben.
Zum Geburtstag hat sie eine neue Kamera bekommen.
Die Brücke wurde vor hundert Jahren gebaut.
Ich verstehe nicht, was du damit meinst.
Der Hund schläft am liebsten vor dem Ofen.
Nach dem Essen gehen wir noch ein wenig spazieren.
Die Datei konnte nicht geöffnet werden, weil sie beschädigt ist.
Starten Sie den Server neu, damit die neuen Einstellungen wirksam werden.
Der Preis ist in den letzten zwei Jahren um zehn Prozent gestiegen.
Wir haben leider keine Zimmer mehr frei.
Könnten Sie das bitte noch einmal wiederholen?
Tom spricht fließend Französisch und ein wenig Spanisch.
Sobald ich zu Hause bin, rufe ich dich an.
Das Museum ist montags geschlossen.
Es war so kalt, dass der See zugefroren ist.
"""

_ENGLISH = """
Where is the nearest station?
We study how small networks learn to copy long sequences of symbols.
Could you please close the window before you leave?
The train was late because of heavy snow in the mountains.
She has been working on the same problem for almost three years.
Recent measurements suggest that the surface of the planet is colder than expected.
I would like to book a table for four people tonight.
In this paper we present a simple method for finding errors in large tables of numbers.
My brother forgot his bicycle in the garage.
The results show that the new approach is faster than the old one on every task that we tried.
Nobody knew where the noise came from.
We prove that the algorithm ends after a finite number of steps and give a bound on its cost.
The children played in the garden all afternoon.
It is well known that such systems become unstable when the temperature rises.
He promised to return the book by Friday.
The museum is closed on Mondays.
Using observations of two hundred galaxies, we estimate how much dust lies between the stars.
This task is harder than I thought.
Our experiments on three public collections confirm the prediction of the model.
The file could not be opened because it is damaged.
Restart the server so that the new settings take effect.
A remarkable property of these materials is that they conduct heat in one direction only.
I do not understand what you mean by that.
The bridge was built a hundred years ago.
We discuss the limits of the theory and name several questions that remain open.
Prices have risen by ten percent over the last two years.
After dinner we usually go for a short walk.
The proposed estimator does not need labelled data and can be computed in linear time.
Have you already eaten?
An accurate description of the flow near the wall requires a finer grid.
As soon as I am home, I will call you.
The lake froze because the night was so cold.
We introduce a graph whose edges carry the probability that two users exchange messages.
Unfortunately there are no rooms left.
The signal was recorded with two detectors that stand three hundred kilometres apart.
It rained for a week, and the river flooded the old town.
These findings have consequences for the design of future instruments.
Please fill in the form and sign it at the bottom.
The simplest explanation is that both stars formed from the same cloud of gas.
Her grandmother bakes the best apple pie in town.
"""

_BY_LANGUAGE = {"de": _GERMAN, "en": _ENGLISH}


def proof_sentences(language: str) -> list[str]:
    """200 inputs: every sentence, then runs of two to four, and twenty runs of eight (60 tokens and more).

    Raises:
        ConfigError: there are none in this language.
    """
    if language not in _BY_LANGUAGE:
        known = ", ".join(_BY_LANGUAGE)
        raise ConfigError(f"there are no built-in sentences in {language!r}, only in {known}: give some with --text")
    lines = _BY_LANGUAGE[language].strip().split("\n")

    def runs(size: int, count: int) -> list[str]:
        return [" ".join(lines[(start * 7 + k * 11) % len(lines)] for k in range(size)) for start in range(count)]

    return [*lines, *runs(2, 40), *runs(3, 40), *runs(4, 40), *runs(5, 20), *runs(8, 20)]
