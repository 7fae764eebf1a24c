"""The MCP server: the tools of a preset, over any index, for any client that speaks the protocol.

It adds no logic to the tools. Names, schemas and descriptions of tools are those that the agent
reads, results are those of ``Tool.run``. The SDK, in the extra ``mcp``, negotiates the
version, keeps sessions and carries both transports.
"""
