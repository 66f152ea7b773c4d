"""Words for all genders and single guillemets, as they are read."""

from __future__ import annotations

import pytest

from tandem.extras.rewriting.genders import as_words
from tandem.extras.rewriting.quotes import as_read_often
from tests.service.support import Served


@pytest.mark.parametrize(
    ("language", "text", "read"),
    [
        ("de", "Liebe Kolleg*innen und Freund:innen", "Liebe Kolleginnen und Freundinnen"),
        (
            "de",
            "Die Schüler/innen, Lehrer/-innen und IT-Expert·innen",
            "Die Schülerinnen, Lehrerinnen und IT-Expertinnen",
        ),
        ("de", "Jede*r neue:r Mitarbeiter:in, ein/e Ärzt*in: so", "Jeder neuer Mitarbeiterin, eine Ärztin: so"),
        (
            "de",
            "ein Student*innenwerk FÜR BÜRGER*INNEN und Gäst_innen",
            "ein Studentinnenwerk FÜR BÜRGERINNEN und Gästinnen",
        ),
        ("de", "**Haus**innen, Haus*in*, auf/in, Raum: in, a*b*c", "**Haus**innen, Haus*in*, auf/in, Raum: in, a*b*c"),
        ("fr", "Les étudiant·e·s, citoyen·nes et chers·ères", "Les étudiants, citoyens et chers"),
        ("fr", "utilisateur·rice, nombreux·ses, tou·te·s, a·b", "utilisateur, nombreux, tous, a·b"),
        ("en", "Kolleg*innen étudiant·e", "Kolleg*innen étudiant·e"),
    ],
)
def test_words_for_all_genders_are_read_as_words(language: str, text: str, read: str) -> None:
    assert as_words(text, language) == read


@pytest.mark.parametrize(
    ("language", "text", "read"),
    [
        ("de", "»›Warum?‹, fragte er mich«", "»'Warum?', fragte er mich«"),
        ("fr", "« Il a dit ‹ non ›. » ‹ Retour", "« Il a dit 'non'. » ‹ Retour"),
        ("de", "das ‹alte Haus›, ›s‹", "das 'alte Haus', 's'"),
        ("de", "A › B › C, ‹ Zurück, a › b ‹ c, x‹y›z", "A › B › C, ‹ Zurück, a › b ‹ c, x‹y›z"),
    ],
)
def test_single_guillemets_are_read_as_apostrophes(language: str, text: str, read: str) -> None:
    assert as_read_often(text, language) == read


@pytest.mark.anyio
async def test_a_model_reads_words_without_signs(service: Served) -> None:
    await service.translate("Wo sind die Kolleg*innen von ›Haus‹?")
    assert service.read_texts == ["Wo sind die Kolleginnen von 'Haus'?"]
