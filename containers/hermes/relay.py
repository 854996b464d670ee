"""Dumb relay inside the sandbox: copies bytes between 127.0.0.1:PORT and the gateway's unix socket.

It reads nothing of what it copies. When the gateway cannot be reached it exits, which ends the sandbox: an agent
that retries against nothing would look like an agent that resists.
"""

import asyncio
import os
import sys


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


async def main() -> None:
    """Runs ``relay.py SOCKET PORT``; prints ``ready`` when it listens."""
    socket_path, port = sys.argv[1], int(sys.argv[2])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_unix_connection(socket_path)
        except OSError as error:
            print(f"relay: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
        up_writer.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
