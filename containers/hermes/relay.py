"""Dumb relay inside the sandbox: copies bytes between a listening socket on the loopback and the gateway's unix socket.

It reads nothing of what it copies. When the gateway cannot be reached it exits with code 97, which ends the sandbox:
an agent that retries against nothing would look like an agent that resists.
"""

import asyncio
import os
import socket
import sys

UPSTREAM_GONE = 97


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies one direction to its end."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, OSError):
        pass
    finally:
        try:
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            pass


async def relay(socket_path: str, listener: socket.socket) -> None:
    """Serves every connection of the listener until the process is killed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_unix_connection(socket_path)
        except OSError as error:
            print(f"relay: {error}", file=sys.stderr, flush=True)
            os._exit(UPSTREAM_GONE)
        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
        up_writer.close()
        writer.close()

    server = await asyncio.start_server(serve, sock=listener)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Runs ``relay.py SOCKET FD``: the descriptor is that of an inherited listening socket."""
    asyncio.run(relay(sys.argv[1], socket.socket(fileno=int(sys.argv[2]))))


if __name__ == "__main__":
    main()
