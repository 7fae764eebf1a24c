"""Sentences in several scripts, and what finds them on every engine."""

from __future__ import annotations

from arag_search.engines.base import SearchEngine, SearchRequest
from arag_search.query.reading import parse
from tests.support.lucene_indexes import chunk
from tests.support.plans import planned

SENTENCES = {
    "thai": "ห้องสมุดเปิดทุกวันตั้งแต่เก้าโมงเช้า ยกเว้นวันหยุดราชการ",
    "lao": "ຫ້ອງສະໝຸດເປີດທຸກມື້ຕັ້ງແຕ່ເກົ້າໂມງເຊົ້າ",
    "khmer": "បណ្ណាល័យបើកជារៀងរាល់ថ្ងៃចាប់ពីម៉ោងប្រាំបួនព្រឹក",
    "burmese": "စာကြည့်တိုက်ကို နေ့တိုင်းမနက်ကိုးနာရီမှာ ဖွင့်သည်။",
    "chinese": "图书馆每天早上九点开门。",
    "taiwan": "臺灣的圖書館裡有很多書，請回覆。",
    "japan": "図書館は駅の近くで、葛\U000e0100の髪と発の字。",
    "korean": "도서관은 공휴일에도 아침 9시부터 문을 엽니다. 검색창에서는 책을 찾습니다.",
    "arabic": "تَفتَحُ المكتبةُ أبوابَها كلَّ يومٍ من الساعة ٩ صباحًا.",
    "persian": "کتابخانه هر روز از ساعت ۹ صبح باز می\u200cشود.",
    "english": "Mrs O‘Brien’s reading room at №5 measures 60 m².",
    "katakana": "データベースサーバーのﾒﾓﾘ ☕\ufe0f",
    "hangul": "API서버를 2024년에 3D프린터와 👍🏽",
    "serbian": "Đorđe je ovde.",
    "initials": "J.K. Miller and J. R. R. Reuel were in the U.S. Army.",
}
CHUNKS = [chunk(at, text, doc_id=script) for at, (script, text) in enumerate(SENTENCES.items())]
FOUND = {
    "ห้องสมุด": "thai", "วันหยุด": "thai", '"วันหยุด ราชการ"': "thai", "ห้องน้ำ": "",
    "ຫ້ອງສະໝຸດ": "lao", "ທຸກມື້": "lao", "បណ្ណាល័យ": "khmer", "រាល់ថ្ងៃ": "khmer",
    "စာကြည့်တိုက်": "burmese", "နေ့တိုင်း": "burmese", "早上": "chinese", "도서관": "korean",
    "도서관에서": "korean", "공휴일": "korean", "책": "korean", '"검색창 책"': "korean",
    "9시": "korean", "검색*": "korean", '"=도서관"': "", "المكتبة": "arabic",
    "ابوابها": "arabic", "كتابخانه": "persian", "ميشود": "persian", "9": "arabic korean persian",
    "O'Brien AND m2": "english", '"No. 5"': "english", '"=Brien’s"': "",
    '"=O‘Brien’s"': "english",
    "サーバー": "katakana", "メモリ": "katakana", '"サーバー の メモリ"': "katakana", "メモ帳": "",
    "データ*": "katakana", '"=サーバー"': "", "☕": "katakana", "👍🏻": "hangul", "👍": "hangul",
    "서버": "hangul", "API": "hangul", '"API 서버"': "hangul", "2024": "hangul", "프린터": "hangul",
    '"=API서버를"': "hangul", '"=서버"': "", "Ðorđe": "serbian", "Dorde": "serbian",
    '"JK Miller"': "initials", '"J. K. Miller" AND "U. S. Army"': "initials", "u.s.": "initials",
    '"JRR Reuel" AND "US Army" AND "J.R.R. Reuel"': "initials", "US": "", '"=US"': "",
    "reuel AND NOT JK": "",
    "图书馆": "chinese japan taiwan", "圖書館": "chinese japan taiwan", "図書館 AND 驿": "japan",
    '"台湾 的 图书"': "taiwan", "里有": "taiwan", "回复": "taiwan", "葛の髪": "japan", "発の髪": "",
    '"=圖書館"': "taiwan", '"=台湾"': "", "发": "",
}  # fmt: skip
"""Queries, and the scripts of the sentences that they find."""


def assert_found(engine: SearchEngine) -> None:
    """Check that an engine with these sentences finds for each query what it names, no more."""
    for query, scripts in FOUND.items():
        page = engine.search(SearchRequest(planned(parse(query).tree)))
        assert sorted(hit.doc_id for hit in page.hits) == sorted(scripts.split()), query
