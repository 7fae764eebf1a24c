"""A client that sends thousands of notifications."""

from __future__ import annotations

from mcp import ClientSession, types

from tests.support.mcp_servers import LocalServer

NOTIFICATIONS = 2_000


def test_thousands_of_notifications_neither_stop_a_server_nor_stay_in_memory() -> None:
    server = LocalServer()

    async def talk(client: ClientSession) -> None:
        for number in range(NOTIFICATIONS):
            await client.send_notification(
                types.ProgressNotification(
                    params=types.ProgressNotificationParams(
                        progress_token=f"token {number}", progress=number, total=NOTIFICATIONS
                    )
                )
            )
            await client.send_notification(
                types.CancelledNotification(
                    params=types.CancelledNotificationParams(request_id=f"none {number}")
                )
            )
        result = await client.call_tool("logical_search", {"query": "opera"})
        assert not result.is_error
        assert server.workers.busy == 0

    server.serve(talk)
