"""The MCP server: the tools of a preset, over any index, for any client that speaks the protocol.

It adds no logic to the tools. Names, schemas and descriptions of tools are the same that the agent
reads, and results come from ``Tool.run``. The SDK, in the extra ``mcp``, negotiates the version,
keeps sessions and carries both transports.
"""

from arag_search.system.imports import leave_unread

# They import every client, OAuth and more of HTTP than a server has: a tenth of a start.
leave_unread("mcp")
leave_unread("mcp.server")

WEB = ("sse_starlette", "starlette", "mcp.server.auth")
"""The modules that the SDK imports for servers over HTTP, a twentieth of a start."""
