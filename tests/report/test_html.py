import json

from text2grad.report.html import embed_json

HOSTILE = (
    "</script><script>window.hacked = 1; alert(1)</script><img src=x onerror='window.hacked = 1'>\u2028\u2029&amp;"
)


def test_embed_json_is_ascii_without_a_character_of_markup():
    text = str(embed_json({"text": HOSTILE + "🐟\ud800"}))
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert "\\u2028\\u2029" in text
    assert json.loads(text) == {"text": HOSTILE + "🐟\ud800"}
