"""What clients send that is not quite a message."""

import pytest

from arag_search.mcp_server.messages import BadMessage, read_message


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (rb"sea \ud83d", "sea \ufffd"),
        (rb"\ude00\ud83d sea", "\ufffd\ufffd sea"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\\ud83d", r"\ud83d"),
        (rb"\\\uD83D", "\\\ufffd"),
    ],
)
def test_half_of_an_emoji_is_read_as_the_sign_for_a_damaged_one(sent: bytes, read: str) -> None:
    message = read_message(b'{"jsonrpc": "2.0", "id": 1, "method": "%s"}' % sent)
    assert not isinstance(message, BadMessage)
    assert message.method == read


def test_a_byte_order_mark_before_a_message_is_passed_over() -> None:
    message = read_message(b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    assert not isinstance(message, BadMessage)
    assert message.method == "ping"
