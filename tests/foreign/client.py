"""A gRPC client that knows nothing but the server's address: it learns the API by reflection.

`client.py ADDRESS` goes through a workflow's life and prints `ok`; anything unexpected is an exception.
"""

import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.any_pb2 import Any
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

SERVICE = "jobq.v1.Workflows"
CHAIN = """
name: chain
labels: {from: python}
tasks:
  - {name: a, kwargs: {cmd: "jobq task set-output '{\\"n\\": 1}'"}}
  - {name: b, depends_on: [a], kwargs: {cmd: "sleep 0.2"}}
  - {name: c, depends_on: [b], kwargs: {cmd: "sleep 0.2"}}
"""
LONG = "name: long\ntasks: [{name: a, kwargs: {cmd: sleep 600}}]\n"
STUCK = "name: stuck\ntasks: [{name: a, queue: nobody}]\n"
DEADLINE_S = 60


class Client:
    """Calls methods by their names, with fields as keywords."""

    def __init__(self, channel):
        self.channel = channel
        pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        self.service = pool.FindServiceByName(SERVICE)
        self.pool = pool

    def message(self, name):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def call(self, name, **fields):
        method = self.service.FindMethodByName(name)
        answer = message_factory.GetMessageClass(method.output_type)
        request = message_factory.GetMessageClass(method.input_type)(**fields)
        kind = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        send = kind(
            f"/{SERVICE}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return send(request, timeout=DEADLINE_S)

    def word(self, message, field):
        """The name of an enum's value, as the protos have it."""
        number = getattr(message, field)
        return message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[number].name


def refusal(client, name, **fields):
    """The code of a call that must fail, and the reasons among its details."""
    try:
        client.call(name, **fields)
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata())
        # google.rpc.Status: its third field holds the details.
        details = [field for field in _fields(trailers["grpc-status-details-bin"]) if field[0] == 3]
        reasons = [Any.FromString(value) for _, value in details]
        return error.code(), {any.type_url.split("/")[-1]: any.value for any in reasons}
    raise AssertionError(f"{name} did not fail")


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _fields(data):
    """The fields of a message without its descriptor: numbers with bytes or whole numbers."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
        yield tag >> 3, value


def watched(client, workflow_id, stop_after=None, resume_token=""):
    """The events of a watch: their kinds, the tasks that completed, and the last token."""
    kinds, completed, token = [], [], resume_token
    events = client.call("WatchWorkflow", workflow_id=workflow_id, resume_token=resume_token)
    for event in events:
        kind = event.WhichOneof("event")
        kinds.append(kind)
        told = getattr(event, kind)
        token = getattr(told, "resume_token", "") or token
        for task in getattr(told, "tasks", getattr(told, "changes", [])):
            if client.word(task, "state") == "TASK_STATE_COMPLETED":
                completed.append(getattr(task, "name", None) or task.task)
        if stop_after in completed:
            events.cancel()
            break
    return kinds, completed, token


def submits_and_watches_to_the_end(client):
    created = client.call("SubmitWorkflow", definition=CHAIN, workflow_id="p1")
    assert created.workflow_id == "p1" and created.created
    assert not client.call("SubmitWorkflow", definition=CHAIN, workflow_id="p1").created
    kinds, first, token = watched(client, "p1", stop_after="b")
    assert kinds[0] == "snapshot", kinds
    kinds, second, _ = watched(client, "p1", resume_token=token)
    assert kinds[-1] == "end" and "snapshot" not in kinds, kinds
    # However the server's looks fell, each was told once.
    assert sorted(first + second) == ["a", "b", "c"], (first, second)
    workflow = client.call("GetWorkflow", workflow_id="p1")
    assert client.word(workflow, "workflow_state") == "WORKFLOW_STATE_COMPLETED"
    assert dict(workflow.labels) == {"from": "python"}
    assert client.call("GetTaskOutput", workflow_id="p1", task="a").json == b'{"n": 1}'


def cancels(client):
    client.call("SubmitWorkflow", definition=LONG, workflow_id="p2")
    client.call("CancelWorkflow", workflow_id="p2")
    kinds, _, _ = watched(client, "p2")
    assert kinds[-1] == "end", kinds
    workflow = client.call("GetWorkflow", workflow_id="p2")
    assert client.word(workflow, "workflow_state") == "WORKFLOW_STATE_CANCELLED"


def lists_with_pages(client):
    for number in range(5):
        client.call("SubmitWorkflow", definition=STUCK, workflow_id=f"q{number}", labels={"page": "me"})
    found, token, pages = [], "", 0
    while True:
        page = client.call("ListWorkflows", labels={"page": "me"}, limit=2, page_token=token)
        assert len(page.workflows) <= 2
        found += [workflow.workflow_id for workflow in page.workflows]
        token, pages = page.next_page_token, pages + 1
        if not token:
            break
    assert found == ["q4", "q3", "q2", "q1", "q0"] and pages >= 3, (found, pages)


def errors_have_details(client):
    code, details = refusal(client, "GetWorkflow", workflow_id="none")
    assert code == grpc.StatusCode.NOT_FOUND
    assert dict(_fields(details["google.rpc.ErrorInfo"]))[1] == b"workflow_not_found", details
    code, details = refusal(client, "SubmitWorkflow", definition="tasks: []")
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    violations = [field for field in _fields(details["google.rpc.BadRequest"]) if field[0] == 1]
    assert len(violations) >= 2, violations


def main():
    with grpc.insecure_channel(sys.argv[1]) as channel:
        client = Client(channel)
        submits_and_watches_to_the_end(client)
        cancels(client)
        lists_with_pages(client)
        errors_have_details(client)
    print("ok")


if __name__ == "__main__":
    main()
