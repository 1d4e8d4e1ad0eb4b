"""Random requests made from the OpenAPI document: no 5xx, and no answer that the document does not describe.

`make schema` sends more than ten thousand.
"""

import hashlib
import json
import os

import hypothesis
import pytest

from rankad.service.formats import ARROW, CSV, NDJSON
from rankad.service.openapi import document
from service_cases import Running, make_models

# In the dev extra.
schemathesis = pytest.importorskip("schemathesis")
from schemathesis.checks import CHECKS, load_all_checks  # noqa: E402

# Of each operation with parameters or a body.
CASES = int(os.environ.get("RANKAD_SCHEMA_CASES", "8"))
load_all_checks()
# What columns a model has is not in the document, so that a request may fit the document and be refused.
LEFT_OUT = [CHECKS.get_one("positive_data_acceptance")]
# A body of another type is sent as its JSON text, and any text is a table of CSV, if one without rows.
OF_TEXT = [*LEFT_OUT, CHECKS.get_one("negative_data_rejection")]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = make_models(tmp_path_factory.mktemp("models"))
    (folder / "keys").write_text(f"boss admin {hashlib.sha256(KEY.encode()).hexdigest()}\n")
    models = folder / "pump.rankad", folder / "plain.rankad"
    service = Running(*models, "--history", folder / "history.sqlite", "--keys", folder / "keys")
    service.cases, service.address = 0, service.url
    yield service
    service.kill_all()
    assert "Traceback" not in "".join(service.log)
    print(f"\n{service.cases:,} cases")


schema = schemathesis.openapi.from_dict(document(["pump", "plain"], keys=True))
# Cases are made before there is a service.
KEY = "rankad_key_of_these_tests"


@schemathesis.serializer(NDJSON, ARROW)
def as_bytes(context, value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


@schema.auth()
class Auth:
    def get(self, case, context):
        return KEY

    def set(self, case, data, context):
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}


@schema.parametrize()
@hypothesis.settings(
    max_examples=CASES,
    deadline=None,
    derandomize="RANKAD_SCHEMA_CASES" not in os.environ,
    suppress_health_check=list(hypothesis.HealthCheck),
    database=None,
)
def test_answers_are_those_of_the_document(case, running):
    running.cases += 1
    case.call_and_validate(
        base_url=running.address,
        excluded_checks=OF_TEXT if case.media_type == CSV else LEFT_OUT,
        timeout=30,
    )
