"""Calls of the cloud's API without its SDK, so that a request can be made wrong: signed as its documentation says, with the standard library."""
import base64
import hashlib
import hmac
import http.client
import json
import time
import urllib.parse
from datetime import datetime, timezone

ACTION = "DescribeLiveStreamState"
FIELDS = {"AppName": "live", "DomainName": "push.example.com", "StreamName": "cam-x"}


def _mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def tc3(host, key, body=b"", method="POST", query="", action=ACTION, now=None):
    """The headers of a request by TC3-HMAC-SHA256, as pairs."""
    now = int(time.time() if now is None else now)
    date = datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%d")
    kind = "application/json" if method == "POST" else "application/x-www-form-urlencoded"
    payload = hashlib.sha256(body if method == "POST" else b"").hexdigest()
    canonical = f"{method}\n/\n{query}\ncontent-type:{kind}\nhost:{host}\n\ncontent-type;host\n{payload}"
    scope = f"{date}/live/tc3_request"
    text = f"TC3-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    secret = _mac(_mac(_mac(f"TC3{key['secretKey']}".encode(), date), "live"), "tc3_request")
    signature = hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()
    return [
        ("Host", host), ("Content-Type", kind), ("X-TC-Action", action), ("X-TC-Version", "2018-08-01"), ("X-TC-Timestamp", str(now)),
        ("Authorization", f"TC3-HMAC-SHA256 Credential={key['secretId']}/{scope}, SignedHeaders=content-type;host, Signature={signature}")]


def v1_query(host, key, method="GET"):
    """A form by HmacSHA256, signed for this method."""
    fields = {**FIELDS, "Action": ACTION, "Version": "2018-08-01", "Timestamp": str(int(time.time())), "Nonce": "7", "SecretId": key["secretId"],
              "SignatureMethod": "HmacSHA256"}
    text = f"{method}{host}/?" + "&".join(f"{name}={fields[name]}" for name in sorted(fields))
    fields["Signature"] = base64.b64encode(hmac.new(key["secretKey"].encode(), text.encode(), hashlib.sha256).digest()).decode()
    return urllib.parse.urlencode(fields)


def send(host, headers, body=b"", method="POST", target="/", context=None):
    """The answer's `Response`; each must have status 200. `context`: of TLS."""
    connection = http.client.HTTPSConnection(host, context=context, timeout=20) if context else http.client.HTTPConnection(host, timeout=20)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if method == "POST" or body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    assert answer.status == 200, f"{answer.status}: {text[:300]}"
    return json.loads(text)["Response"]


def call(host, key, fields=None, action=ACTION, context=None):
    """One right call; its code if it is refused, or what it answers."""
    body = json.dumps(FIELDS if fields is None else fields).encode()
    answer = send(host, tc3(host, key, body, action=action), body, context=context)
    return answer["Error"]["Code"] if "Error" in answer else answer
