"""Names of people, places and firms that are the same in every language.

They are those of Faker (MIT), whose lists exist for some seventy languages: names in scripts that the vocabulary spells
in bytes teach the bytes, too. Faker's own generators are not used: they bring thousands of classes for a choice from a
list.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from random import Random

from tandem.extras.augmentation.copyables import invented_word
from tandem.models.errors import ConfigError

_LATIN_TEXT = """
cs_CZ da_DK de_DE en_GB en_US es_ES fi_FI fr_FR hr_HR hu_HU it_IT lt_LT nl_NL no_NO pl_PL pt_BR ro_RO sk_SK sl_SI
sv_SE tr_TR vi_VN et_EE lv_LV en_IN
"""
_LATIN = tuple(_LATIN_TEXT.split())
_OTHER_TEXT = """
el_GR ru_RU uk_UA bg_BG ar_AA he_IL hi_IN ja_JP ko_KR zh_CN th_TH ka_GE hy_AM
"""
_OTHER = tuple(_OTHER_TEXT.split())
_FIRMS = ("GmbH", "AG", "Ltd", "Inc", "SA", "SARL", "& Sons", "Group")
_PLACES_TEXT = """
cs_CZ de_DE fi_FI hr_HR hu_HU it_IT nl_NL pl_PL ro_RO sk_SK sl_SI sv_SE en_IN
"""
_PLACES = tuple(_PLACES_TEXT.split())
# Places that are called otherwise in one of the languages around them.
_TRANSLATED_TEXT = """
Aachen Antwerpen Athen Basel Berlin Bern Braunschweig Bremen Brno Brugge Brussel Bruxelles București Coblenz Danzig
Den Dunkerque Edirne Firenze Frankfurt Freiburg Genova Gent Göteborg Hannover Helsinki Hämeenlinna İstanbul İzmir
Koblenz Kraków Köln København Krefeld Leuven Lisboa Ljubljana London Lyon Mainz Marseille Milano Mons München
Münster Napoli Nice Nürnberg Padova Paris Plzeň Porto Praha Regensburg Reims Roma Saarbrücken Salzburg Sevilla Sibiu
Strasbourg Stuttgart Timișoara Tornio Torino Trier Tours Turku Vaasa Venezia Verona Warszawa Wien Wrocław Zagreb
Zürich Gdańsk Budapest Bratislava Ankara Mumbai Delhi Kolkata Genève Lille Bordeaux Rouen Orléans Avignon Bari
Bergamo Bologna
"""
_TRANSLATED = frozenset(_TRANSLATED_TEXT.split())


@cache
def _provider(module: str, locale: str) -> object:
    try:
        return import_module(f"faker.providers.{module}.{locale}").Provider
    except ImportError as error:
        raise ConfigError(
            "[data.augmentation] names needs the lists of Faker, which are not installed: install the extra [train]"
            " (make install), or set names = 0"
        ) from error


@cache
def _listed(module: str, locale: str, *lists: str) -> tuple[str, ...]:
    """Entries of a provider's first list of those that it has; weights beside them are left out.

    They are sorted: some of Faker's lists come from sets, and have another order in every process.
    """
    provider = _provider(module, locale)
    for name in lists:
        if entries := getattr(provider, name, None):
            return tuple(sorted({entry for entry in entries if entry and "{" not in entry}))
    return ()


def _person(random: Random) -> str:
    locale = random.choice(_LATIN if random.random() < 0.93 else _OTHER)
    lists = ("first_names_female", "first_names") if random.random() < 0.5 else ("first_names_male", "first_names")
    first = _listed("person", locale, *lists, "first_names_male", "first_romanized_names")
    last = _listed("person", locale, "last_names", "last_names_male", "last_names_female")
    kind = random.random()
    if (kind < 0.35 and first) or not last:
        return random.choice(first)
    if kind < 0.7 or not first:
        return random.choice(last)
    return f"{random.choice(first)} {random.choice(last)}"


@cache
def _towns(locale: str) -> tuple[str, ...]:
    towns = _listed("address", locale, "cities", "real_city_names")
    return tuple(town for town in towns if town.split()[0] not in _TRANSLATED and not town.isupper())


def _place(random: Random) -> str:
    towns = _towns(random.choice(_PLACES))
    return random.choice(towns) if towns else _person(random)


def name(random: Random) -> str:
    """A name of a person, a place or a firm, that is the same in every language.

    Raises:
        ConfigError: Faker is not installed.
    """
    kind = random.random()
    if kind < 0.6:
        return _person(random)
    if kind < 0.8:
        return _place(random)
    made = invented_word(random).capitalize()
    return made if kind < 0.95 else f"{made} {random.choice(_FIRMS)}"
