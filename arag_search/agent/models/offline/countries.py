"""Countries, by their names and by the names of their people."""

from __future__ import annotations

import functools
import re

_TABLE = """
United States|American|New Mexico|USA|U.S.|US|United States of America
United Kingdom|British|UK|U.K.|Britain|Great Britain|English|England|Scottish|Scotland|Welsh|Wales
France|French
Germany|German|West Germany|East Germany
Italy|Italian
Spain|Spanish
Portugal|Portuguese
Netherlands|Dutch
Belgium|Belgian
Luxembourg|Luxembourgish
Switzerland|Swiss
Austria|Austrian
Ireland|Irish
Denmark|Danish
Sweden|Swedish
Norway|Norwegian
Finland|Finnish
Iceland|Icelandic
Malta|Maltese
Cyprus|Cypriot
Poland|Polish
Czech Republic|Czech
Czechoslovakia|Czechoslovak
Slovakia|Slovak
Hungary|Hungarian
Romania|Romanian
Bulgaria|Bulgarian
Greece|Greek
Turkey|Turkish
Russia|Russian|Soviet Union|Soviet
Ukraine|Ukrainian
Belarus|Belarusian
Estonia|Estonian
Latvia|Latvian
Lithuania|Lithuanian
Serbia|Serbian
Montenegro|Montenegrin
Kosovo|Kosovar
Moldova|Moldovan
Croatia|Croatian
Slovenia|Slovenian|Slovene
Bosnia and Herzegovina|Bosnian
Yugoslavia|Yugoslav
North Macedonia|Macedonian
Albania|Albanian
Georgia|Georgian
Armenia|Armenian
Azerbaijan|Azerbaijani
Kazakhstan|Kazakh
Uzbekistan|Uzbek
Iran|Iranian|Persian
Iraq|Iraqi
Israel|Israeli
Lebanon|Lebanese
Syria|Syrian
Jordan|Jordanian
Kuwait|Kuwaiti
Qatar|Qatari
Yemen|Yemeni
Saudi Arabia|Saudi
Egypt|Egyptian
Morocco|Moroccan
Algeria|Algerian
Tunisia|Tunisian
Ethiopia|Ethiopian
Kenya|Kenyan
Uganda|Ugandan
Tanzania|Tanzanian
Sudan|Sudanese
Libya|Libyan
Somalia|Somali
Cameroon|Cameroonian
Democratic Republic of the Congo|Congolese|Congo|Zaire
Angola|Angolan
Mozambique|Mozambican
Zambia|Zambian
Nigeria|Nigerian
Ghana|Ghanaian
Senegal|Senegalese
South Africa|South African
Zimbabwe|Zimbabwean
India|Indian
Pakistan|Pakistani
Bangladesh|Bangladeshi
Sri Lanka|Sri Lankan
Nepal|Nepalese|Nepali
Afghanistan|Afghan
China|Chinese
Hong Kong
Taiwan|Taiwanese
Japan|Japanese
South Korea|South Korean|Korean
North Korea|North Korean
Mongolia|Mongolian
Thailand|Thai
Vietnam|Vietnamese
Cambodia|Cambodian
Laos|Laotian
Myanmar|Burma|Burmese
Philippines|Filipino|Philippine
Indonesia|Indonesian
Malaysia|Malaysian
Singapore|Singaporean
Australia|Australian
New Zealand
Canada|Canadian|British Columbia
Mexico|Mexican
Cuba|Cuban
Jamaica|Jamaican
Puerto Rico|Puerto Rican
Colombia|Colombian
Venezuela|Venezuelan
Ecuador|Ecuadorian
Peru|Peruvian
Bolivia|Bolivian
Chile|Chilean
Argentina|Argentine|Argentinian
Uruguay|Uruguayan
Paraguay|Paraguayan
Brazil|Brazilian
Haiti|Haitian
Dominican Republic|Dominican
Guatemala|Guatemalan
Honduras|Honduran
El Salvador|Salvadoran
Nicaragua|Nicaraguan
Costa Rica|Costa Rican
Panama|Panamanian
Trinidad and Tobago|Trinidadian
Byzantine Empire|Byzantine
Ottoman Empire|Ottoman
"""


@functools.cache
def _countries() -> tuple[dict[str, str], re.Pattern[str]]:
    known: dict[str, str] = {}
    for line in _TABLE.strip().splitlines():
        country, *others = line.split("|")
        known.update(dict.fromkeys((country, *others), country))
    longest_first = sorted(known, key=len, reverse=True)
    return known, re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


def first_country(text: str) -> str | None:
    """Return the first country or nationality that the text names, with those joined to it by a
    hyphen ("Cuban-American")."""
    matches = list(_countries()[1].finditer(text))
    if not matches:
        return None
    end = matches[0].end()
    for match in matches[1:]:
        if text[end : match.start()] not in ("-", " ", "–", " - ", "- ", " and "):
            break
        end = match.end()
    return text[matches[0].start() : end]


def countries_of(text: str) -> set[str]:
    """Return all countries that the text names, directly or by nationality."""
    known, pattern = _countries()
    return {known[match.group()] for match in pattern.finditer(text)}


def is_country(name: str) -> bool:
    """Return whether the name is that of a country or a nationality."""
    known = _countries()[0]
    return name in known or all(word in known for word in re.split(r"[ -]+", name) if word)
