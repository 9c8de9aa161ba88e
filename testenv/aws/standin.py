"""Stands in for services of AWS: Systems Manager, Secrets Manager, KMS, and reading from S3.

botocore of Debian's awscli checks every request: it computes the signature again, and its models of the services have the
parameters. The state is one JSON object on standard input: users by access key ID (secret, token, actions), parameters, secrets,
objects, and the seconds by which its clock differs.
The port is the first line of standard output; each further line is one answered request.
"""

import base64
import datetime
import hashlib
import hmac
import json
import os
import re
import ssl
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import awscli  # noqa: F401 - makes the name botocore the one of awscli
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

REGION = "eu-central-1"
ACCOUNT = "111122223333"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
OTHER_KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/mrk-0987dcba09fedcba09fedcba09fedcba"
ALIAS = f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/machineadm"
SKEW = datetime.timedelta(minutes=5)
MODELS = {m.metadata["targetPrefix"]: m for m in (ServiceModel(Loader().load_service_model(s, "service-2"), s) for s in ("kms", "ssm", "secretsmanager"))}


class Refused(Exception):
    def __init__(self, code, message="", status=400):
        super().__init__(code)
        self.code, self.message, self.status = code, message, status


def now():
    return time.time() + STATE.get("clock", 0)


def check(value, shape, path):
    """Checks what botocore leaves to the service: bounds and patterns."""
    if shape.type_name == "structure":
        for name, member in value.items():
            check(member, shape.members[name], path + "." + name)
    elif shape.type_name == "map":
        for key, member in value.items():
            check(key, shape.key, path)
            check(member, shape.value, path)
    elif shape.type_name in ("string", "blob"):
        size = len(base64.b64decode(value, validate=True)) if shape.type_name == "blob" else len(value)
        bounds = shape.metadata
        if not bounds.get("min", 0) <= size <= bounds.get("max", size):
            raise Refused("ValidationException", f"{path} has {size} characters")
        if "pattern" in bounds and not re.fullmatch(bounds["pattern"], value):
            raise Refused("ValidationException", f"{path} does not match")
        if "enum" in bounds and value not in bounds["enum"]:
            raise Refused("ValidationException", f"{path} is no value of the enumeration")


def validated(value, shape, path):
    report = ParamValidator().validate(value, shape)
    if report.has_errors():
        raise Refused("ValidationException", path + ": " + report.generate_report())
    check(value, shape, path)
    return value


def authenticated(handler, service, body):
    """Returns the user of a request whose signature is right."""
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})",
        handler.headers.get("Authorization", ""),
    )
    if not match:
        raise Refused("IncompleteSignature")
    identity, day, region, named, signed, signature = match.groups()
    user = STATE["users"].get(identity)
    if user is None:
        raise Refused("UnrecognizedClientException", "The security token included in the request is invalid.")
    stamp = handler.headers["X-Amz-Date"]
    then = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ")
    if abs(datetime.datetime.utcfromtimestamp(now()) - then) > SKEW:
        raise Refused("InvalidSignatureException", f"Signature expired: {stamp} is now earlier than another time")
    names = signed.split(";")
    needed = ["host"] + ["content-type"] * bool(body) + [n.lower() for n in handler.headers if n.lower().startswith("x-amz-")]
    digest = handler.headers.get("X-Amz-Content-Sha256", hashlib.sha256(body).hexdigest())
    if (region, named, day) != (REGION, service, stamp[:8]) or names != sorted(names) or set(needed) - set(names) or digest != hashlib.sha256(body).hexdigest():
        raise Refused("InvalidSignatureException", "Credential should be scoped correctly, and all headers be signed.")
    request = AWSRequest(handler.command, "https://" + handler.headers["Host"] + handler.path, {n: handler.headers[n] for n in names}, body)
    request.context["timestamp"] = stamp
    auth = (S3SigV4Auth if service == "s3" else SigV4Auth)(Credentials(identity, user["secret"]), service, region)
    if not hmac.compare_digest(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request), signature):
        raise Refused("InvalidSignatureException", "The request signature we calculated does not match.")
    if handler.headers.get("X-Amz-Security-Token", "") != user.get("token", ""):
        raise Refused("ExpiredTokenException" if user.get("expired") else "UnrecognizedClientException")
    if user.get("expired"):
        raise Refused("ExpiredTokenException", "The security token included in the request is expired")
    return user


def get_parameter(p):
    name, _, version = p["Name"].partition(":") if not p["Name"].startswith("arn:") else (p["Name"].partition(":parameter")[2], "", "")
    values = STATE["parameters"].get(name)
    if values is None:
        raise Refused("ParameterNotFound")
    number = int(version or len(values))
    if number > len(values):
        raise Refused("ParameterVersionNotFound")
    value = values[number - 1] if p.get("WithDecryption") else base64.b64encode(os.urandom(64)).decode()
    return {"Parameter": {"Name": name, "Type": "SecureString", "Value": value, "Version": number}}


def get_secret_value(p):
    name = p["SecretId"].partition(":secret:")[2] or p["SecretId"]
    versions = STATE["secrets"].get(name)
    if versions is None:
        raise Refused("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
    for version in versions:
        if p.get("VersionId", version["VersionId"]) == version["VersionId"] and p.get("VersionStage", "AWSCURRENT" if "VersionId" not in p else None) in [None] + version["VersionStages"]:
            return {"Name": name, **version}
    raise Refused("ResourceNotFoundException", "Secrets Manager can't find the specified secret value for VersionId")


def put_parameter(p):
    if p["Name"] in STATE["parameters"] and not p.get("Overwrite"):
        raise Refused("ParameterAlreadyExists")
    values = STATE["parameters"].setdefault(p["Name"], [])
    values.append(p["Value"])
    return {"Version": len(values), "Tier": "Standard"}


def delete_parameter(p):
    if STATE["parameters"].pop(p["Name"], None) is None:
        raise Refused("ParameterNotFound")
    return {}


def put_secret_value(p):
    if p["SecretId"] not in STATE["secrets"]:
        raise Refused("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
    version = p.get("ClientRequestToken") or str(uuid.uuid4())
    content = {k: p[k] for k in ("SecretString", "SecretBinary") if k in p}
    STATE["secrets"][p["SecretId"]] = [{"VersionId": version, "VersionStages": ["AWSCURRENT"], **content}]
    return {"Name": p["SecretId"], "VersionId": version, "VersionStages": ["AWSCURRENT"]}


def create_secret(p):
    if p["Name"] in STATE["secrets"]:
        raise Refused("ResourceExistsException")
    STATE["secrets"][p["Name"]] = []
    return {k: v for k, v in put_secret_value({**p, "SecretId": p["Name"]}).items() if k != "VersionStages"}


def delete_secret(p):
    if STATE["secrets"].pop(p["SecretId"], None) is None:
        raise Refused("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
    if not p.get("ForceDeleteWithoutRecovery"):
        raise Refused("InvalidRequestException", "it could be restored")
    return {"Name": p["SecretId"]}


BLOBS = {}


def key_of(name):
    found = {KEY: KEY, OTHER_KEY: OTHER_KEY, ALIAS: KEY, KEY.rpartition("/")[2]: KEY, "alias/machineadm": KEY}.get(name)
    if found is None:
        raise Refused("NotFoundException", f"Key '{name}' does not exist")
    return found


def encrypt(p):
    blob = base64.b64encode(b"\x01\x02\x02\x00" + os.urandom(180)).decode()
    BLOBS[blob] = (key_of(p["KeyId"]), p.get("EncryptionContext", {}), p["Plaintext"])
    return {"CiphertextBlob": blob, "KeyId": key_of(p["KeyId"])}


def generate_data_key(p):
    plain = base64.b64encode(os.urandom(p["NumberOfBytes"])).decode()
    return {**encrypt({**p, "Plaintext": plain}), "Plaintext": plain}


def decrypt(p):
    key, context, plain = BLOBS.get(p["CiphertextBlob"], (None, None, None))
    if "KeyId" in p and key and key_of(p["KeyId"]) != key:
        raise Refused("IncorrectKeyException", "The key ID in the request does not identify a CMK that can perform this operation.")
    if key is None or p.get("EncryptionContext", {}) != context:
        raise Refused("InvalidCiphertextException")
    return {"KeyId": key, "Plaintext": plain, "EncryptionAlgorithm": "SYMMETRIC_DEFAULT"}


ACTIONS = {
    "GetParameter": get_parameter, "GetSecretValue": get_secret_value, "Encrypt": encrypt, "GenerateDataKey": generate_data_key,
    "Decrypt": decrypt, "PutParameter": put_parameter, "PutSecretValue": put_secret_value,
    "DeleteParameter": delete_parameter, "CreateSecret": create_secret, "DeleteSecret": delete_secret,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        prefix, _, action = self.headers.get("X-Amz-Target", "").rpartition(".")
        status, answer = 200, {}
        try:
            model = MODELS.get(prefix)
            if model is None or action not in ACTIONS or self.path != "/":
                raise Refused("UnknownOperationException")
            if self.headers["Content-Type"] != "application/x-amz-json-" + model.metadata["jsonVersion"]:
                raise Refused("SerializationException", "the content type")
            user = authenticated(self, model.signing_name, body)
            if model.signing_name + ":" + action not in user["actions"]:
                raise Refused("AccessDeniedException", f"is not authorized to perform: {action} with an explicit deny, with {user['secret']}")
            operation = model.operation_model(action)
            answer = ACTIONS[action](validated(json.loads(body), operation.input_shape, action))
            validated(answer, operation.output_shape, action)
        except Refused as refused:
            status, answer = refused.status, {"__type": refused.code, "message": refused.message}
            if prefix == "TrentService":
                answer["__type"] = "com.amazonaws.kms#" + refused.code
        self.answer(status, "application/x-amz-json-1.1", json.dumps(answer).encode())
        print(prefix, action, status, answer.get("__type", ""), answer.get("message", "") if "Validation" in answer.get("__type", "") else "", flush=True)

    def do_GET(self):
        try:
            if "s3:GetObject" not in authenticated(self, "s3", b"")["actions"]:
                raise Refused("AccessDenied", status=403)
            if self.path not in STATE["objects"]:
                raise Refused("NoSuchKey", status=404)
            self.answer(200, "binary/octet-stream", STATE["objects"][self.path].encode())
        except Refused as refused:
            self.answer(refused.status, "application/xml", f"<Error><Code>{refused.code}</Code></Error>".encode())

    def answer(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def date_time_string(self, timestamp=None):
        return super().date_time_string(timestamp or now())

    def log_message(self, *_):
        pass


STATE = json.load(sys.stdin)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
