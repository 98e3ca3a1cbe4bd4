"""What the upstream project's own classes do with our messages and blobs.

Each command prints one JSON value. The connection string is in AZURE_STORAGE_CONNECTION_STRING.
"""

import asyncio
import gzip
import json
import os
import sys

from ai4s.jobq import JobQ
from ai4s.jobq.entities import Task
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient

CONNECTION = os.environ["AZURE_STORAGE_CONNECTION_STRING"]


def tasks(queue):
    """The messages of a queue, as the Task class decodes them."""
    client = QueueServiceClient.from_connection_string(CONNECTION).get_queue_client(queue)
    decoded = [Task.deserialize(message.content) for message in client.peek_messages(32)]
    return [{"id": t._id, "kwargs": t.kwargs, "num_retries": t.num_retries} for t in decoded]


async def _push(queue, kwargs):
    async with JobQ.from_connection_string(queue, connection_string=CONNECTION) as jobq:
        await jobq.push(kwargs, num_retries=0)


def complete(queue, body):
    """Pushes a completion through JobQ."""
    asyncio.run(_push(queue, {"__completion_body": body}))
    return True


def names():
    """Containers and queues of the account."""
    blobs = BlobServiceClient.from_connection_string(CONNECTION)
    queues = QueueServiceClient.from_connection_string(CONNECTION)
    return {
        "containers": [found.name for found in blobs.list_containers()],
        "queues": [found.name for found in queues.list_queues()],
    }


def read(container, name):
    """A blob's JSON, plain or gzip."""
    client = BlobServiceClient.from_connection_string(CONNECTION)
    data = client.get_blob_client(container, name).download_blob().readall()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def write(container, name, how, text):
    """Writes a state blob as that project does: compact or gzip, without a content encoding."""
    client = BlobServiceClient.from_connection_string(CONNECTION)
    data = json.dumps(json.loads(text)).encode()
    data = gzip.compress(data) if how == "gzip" else data
    client.get_blob_client(container, name).upload_blob(data, overwrite=True)
    return True


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    print(json.dumps(globals()[command](*arguments)))
