"""What the property tester checks beside its own rules."""

import os

import schemathesis
from schemathesis import GenerationMode

# Refusals of requests that the description allows, by code and the beginning of the detail: rules that
# it cannot express.
BEYOND_THE_DESCRIPTION = [
    ("invalid_definition", ""),
    ("invalid_page_token", ""),
    # Not beside an id.
    ("invalid_argument", "idempotency_key: give"),
    # Bounded in bytes, and without control characters.
    ("invalid_argument", "labels: "),
]

# A workflow and a task that exist, to be read instead of generated ones.
WORKFLOW = os.environ.get("JOBQ_TEST_WORKFLOW")
TASK = os.environ.get("JOBQ_TEST_TASK")


@schemathesis.hook
def map_path_parameters(ctx, path_parameters):
    if WORKFLOW and path_parameters:
        known = {"workflow_id": WORKFLOW, "task": TASK}
        return {name: known.get(name, value) for name, value in path_parameters.items()}
    return path_parameters


@schemathesis.check
def a_described_request_is_understood(ctx, response, case):
    """A request that fits the description is only refused for what it cannot express."""
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if response.status_code not in (400, 413, 422):
        return
    problem = response.json()
    for code, detail in BEYOND_THE_DESCRIPTION:
        if problem["code"] == code and problem["detail"].startswith(detail):
            return
    raise AssertionError(f"refused although it fits: {problem}")


@schemathesis.check
def a_failure_is_a_problem(ctx, response, case):
    """Every failure has the one form, and the id of its request."""
    if response.status_code < 400 or case.method == "HEAD":
        return
    assert response.headers["content-type"] == ["application/problem+json"], response.headers
    problem = response.json()
    assert problem["status"] == response.status_code, problem
    assert problem["type"] == "urn:jobq:problem:" + problem["code"], problem
    assert [problem["request_id"]] == response.headers["x-request-id"], problem


@schemathesis.check
def what_exists_is_found(ctx, response, case):
    """Reads of the workflow that exists reach it."""
    if WORKFLOW and response.status_code == 404:
        raise AssertionError(response.json())
