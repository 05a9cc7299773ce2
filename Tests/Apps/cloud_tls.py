"""The vendor's SDK over TLS, with a certificate that it checks: python3 cloud_tls.py HOST KEY-FILE CERTIFICATE."""
import json
import sys

from tencentcloud.common import credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tencentcloud.live.v20180801 import live_client, models

host, path, certificate = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    key = json.load(file)


def state(**options):
    http = HttpProfile(protocol="https", endpoint=host, reqTimeout=20, **options)
    sdk = live_client.LiveClient(credential.Credential(key["secretId"], key["secretKey"]), "", ClientProfile(httpProfile=http))
    request = models.DescribeLiveStreamStateRequest()
    request.from_json_string(json.dumps({"AppName": "live", "DomainName": "push.example.com", "StreamName": "cam"}))
    return sdk.DescribeLiveStreamState(request).StreamState


assert state(certification=certificate) == "inactive"
try:
    state()
    raise AssertionError("a certificate that nobody trusts was taken")
except TencentCloudSDKException as error:
    assert "certificate" in str(error).lower(), error
