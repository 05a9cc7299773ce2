"""A back end written for the cloud, with the vendor's own SDK: python3 cloud_sdk.py HTTP RTMP KEY-FILE. The signature is --sign's, by --method."""
import argparse
import json
import sys
import time
from datetime import datetime, timedelta, timezone

from tencentcloud.common import credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tencentcloud.live.v20180801 import live_client, models

import tools

DOMAIN = "push.example.com"


def client(endpoint, key, method="POST", sign="TC3-HMAC-SHA256"):
    http = HttpProfile(protocol="http", endpoint=endpoint, reqMethod=method, reqTimeout=20)
    return live_client.LiveClient(credential.Credential(key["secretId"], key["secretKey"]), "", ClientProfile(httpProfile=http, signMethod=sign))


def ask(sdk, action, **fields):
    request = getattr(models, f"{action}Request")()
    request.from_json_string(json.dumps(fields))
    return getattr(sdk, action)(request)


def refusal(sdk, action, **fields):
    try:
        answer = ask(sdk, action, **fields)
    except TencentCloudSDKException as error:
        assert error.requestId, f"{action}: {error}"
        return error.code
    raise AssertionError(f"{action} {fields} was not refused: {answer.to_json_string()}")


def wait(what, condition, patience=40):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.2)
    raise AssertionError(f"waited {patience} s for {what}")


def utc(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def drive(options, key, method, sign, name):
    """A camera's life through the API: listed, active, dropped, forbidden, resumed, and in the history."""
    sdk = client(options.http, key, method, sign)
    stream = {"AppName": "live", "DomainName": DOMAIN, "StreamName": name}
    begin = datetime.now(timezone.utc)

    def state():
        return ask(sdk, "DescribeLiveStreamState", **stream).StreamState

    assert state() == "inactive"
    url = f"rtmp://{options.rtmp}/live/{name}"
    with tools.Device(url) as device:
        wait("the stream to be active", lambda: state() == "active")
        listed = ask(sdk, "DescribeLiveStreamOnlineList", DomainName=DOMAIN, AppName="live", StreamName=name, PageNum=1, PageSize=10)
        assert (listed.TotalNum, listed.TotalPage, len(listed.OnlineInfo)) == (1, 1, 1), listed.to_json_string()
        online = listed.OnlineInfo[0]
        assert (online.StreamName, online.AppName, getattr(online, "PushToDelay", 0)) == (name, "live", 0)
        published = datetime.strptime(online.PublishTimeList[0].PublishTime, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        assert timedelta(seconds=-2) < published - begin < timedelta(seconds=40), (published, begin)
        assert ask(sdk, "DescribeLiveStreamOnlineList", StreamName=name[:-1]).TotalNum == 0, "the name is exact"

        def info():
            found = ask(sdk, "DescribeLiveStreamPushInfoList", AppName="live").DataInfoList
            return next((row for row in found if row.StreamName == name and row.VideoFps and row.AudioSpeed), None)

        row = wait("figures of the push", info)
        assert (row.Resolution, row.Vcodec, row.Acodec, row.AsampleRate) == ("320x240", "H264", "AAC", 44100), row.to_json_string()
        assert 20 <= row.VideoFps <= 30 and row.VideoSpeed > 20000 and row.ClientIp == "127.0.0.1"
        assert row.MetaFps == 25 and 280_000 < row.MetaVideoSpeed < 310_000 and row.MetaAudioSpeed > 30_000, row.to_json_string()
        ask(sdk, "DropLiveStream", **stream)
        device.ended()
        assert state() == "inactive"
    with tools.Device(url) as device:
        wait("the dropped camera to push again", lambda: state() == "active")
        ask(sdk, "ForbidLiveStream", Reason="测试 a+b&c=%", ResumeTime=utc(datetime.now(timezone.utc) + timedelta(hours=1)), **stream)
        device.ended()
        assert state() == "forbid"
    with tools.Device(url) as device:
        assert device.ended(), "a forbidden camera is refused"
        assert state() == "forbid"
    if hasattr(models, "DescribeLiveForbidStreamListRequest"):
        bans = ask(sdk, "DescribeLiveForbidStreamList", PageNum=1, PageSize=10, StreamName=name)
        assert bans.TotalNum == 1 and bans.ForbidStreamList[0].AppName == "live", bans.to_json_string()
        created = datetime.strptime(bans.ForbidStreamList[0].CreateTime, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone(timedelta(hours=8)))
        assert abs(created - datetime.now(timezone.utc)) < timedelta(seconds=60), "UTC+8"
    ask(sdk, "ResumeLiveStream", **stream)
    assert state() == "inactive"
    with tools.Device(url):
        wait("the resumed camera to push", lambda: state() == "active")
    wait("its end", lambda: state() == "inactive")
    span = {"StartTime": utc(begin - timedelta(minutes=1)), "EndTime": utc(datetime.now(timezone.utc) + timedelta(minutes=1))}

    def history():
        events = ask(sdk, "DescribeLiveStreamEventList", AppName="live", StreamName=name, IsStrict=1, IsFilter=1, IsAsc=1, PageSize=100, **span)
        return events if events.TotalNum >= 3 else None

    events = wait("the pushes in the history", history)
    reasons = [row.StopReason for row in events.EventList]
    assert reasons == ["dropped", "forbidden", "connectionLost"], reasons
    assert all(row.ClientIp == "127.0.0.1" and row.Resolution == "320x240" for row in events.EventList), events.to_json_string()
    past = ask(sdk, "DescribeLiveStreamPublishedList", DomainName=DOMAIN, StreamName=name[2:], PageNum=1, PageSize=10, **span)
    assert past.TotalNum >= 3 and past.PublishInfo[0].StopReason == "connectionLost", past.to_json_string()
    assert ask(sdk, "DescribeLiveStreamPublishedList", DomainName=DOMAIN, StreamName="no-such", **span).PublishInfo == []


def failures(options, key, reader):
    """Every failure is the SDK's typed exception."""
    sdk = client(options.http, key)
    stream = {"AppName": "live", "DomainName": DOMAIN, "StreamName": "cam-x"}
    now = datetime.now(timezone.utc)
    expected = [
        ("DescribeLiveStreamState", {"AppName": "live", "DomainName": DOMAIN}, "MissingParameter"),
        ("DescribeLiveStreamState", {**stream, "StreamName": "../etc"}, "InvalidParameter.InvalidStreamName"),
        ("DescribeLiveStreamState", {**stream, "StreamName": 5}, "InvalidParameter"),
        ("DescribeLiveStreamOnlineList", {"PageNum": 0}, "InvalidParameterValue"),
        ("DescribeLiveStreamOnlineList", {"PageSize": 5}, "InvalidParameterValue"),
        ("DescribeLiveStreamOnlineList", {"PageNum": "one"}, "InvalidParameter"),
        ("ForbidLiveStream", {**stream, "ResumeTime": utc(now - timedelta(hours=1))}, "InvalidParameterValue"),
        ("ForbidLiveStream", {**stream, "ResumeTime": utc(now + timedelta(days=91))}, "InvalidParameterValue"),
        ("ForbidLiveStream", {**stream, "ResumeTime": "tomorrow"}, "InvalidParameterValue"),
        ("ForbidLiveStream", {**stream, "Reason": "x" * 2049}, "InvalidParameterValue"),
        ("DescribeLiveStreamEventList", {"StartTime": utc(now), "EndTime": utc(now - timedelta(hours=1))}, "InvalidParameterValue"),
        ("DescribeLiveStreamEventList", {"StartTime": utc(now - timedelta(days=32)), "EndTime": utc(now)}, "InvalidParameterValue"),
        ("CreateLiveCallbackTemplate", {"TemplateName": "t"}, "UnsupportedOperation"),
        ("AddDelayLiveStream", {**stream, "DelayTime": 5}, "UnsupportedOperation"),
        ("CreateRecordTask", {**stream, "EndTime": 1795238581}, "UnsupportedOperation"),
    ]
    for action, fields, code in expected:
        found = refusal(sdk, action, **fields)
        assert found == code, f"{action} {fields}: {found}, expected {code}"
    assert refusal(client(options.http, reader), "DropLiveStream", **stream) == "UnauthorizedOperation"
    assert ask(client(options.http, reader), "DescribeLiveStreamState", **stream).StreamState == "inactive"
    wrong = {**key, "secretKey": key["secretKey"][:-1] + ("a" if key["secretKey"][-1] != "a" else "b")}
    for sign in ["TC3-HMAC-SHA256", "HmacSHA256", "HmacSHA1"]:
        assert refusal(client(options.http, wrong, sign=sign), "DescribeLiveStreamState", **stream) == "AuthFailure.SignatureFailure", sign
    unknown = {**key, "secretId": "AKIDnobody"}
    assert refusal(client(options.http, unknown), "DescribeLiveStreamState", **stream) == "AuthFailure.SecretIdNotFound"
    # Many of these throttle their address, with all its keys except those that have signed rightly before.
    for _ in range(60):
        if refusal(client(options.http, unknown), "DescribeLiveStreamState", **stream) == "RequestLimitExceeded":
            break
    assert refusal(client(options.http, unknown), "DescribeLiveStreamState", **stream) == "RequestLimitExceeded"
    assert refusal(client(options.http, wrong), "DescribeLiveStreamState", **stream) == "RequestLimitExceeded"
    for _ in range(5):
        assert ask(sdk, "DescribeLiveStreamState", **stream).StreamState == "inactive"
    # The stream is already as these calls want it: no error, because a back end may ask twice.
    ask(sdk, "ResumeLiveStream", **stream)
    ask(sdk, "DropLiveStream", **stream)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("http")
    parser.add_argument("rtmp")
    parser.add_argument("key")
    parser.add_argument("reader")
    parser.add_argument("--all", action="store_true", help="every method and signature")
    options = parser.parse_args()
    with open(options.key, encoding="utf-8") as ops, open(options.reader, encoding="utf-8") as app:
        key, reader = json.load(ops), json.load(app)
    kinds = [("POST", "TC3-HMAC-SHA256"), ("GET", "TC3-HMAC-SHA256"), ("POST", "HmacSHA256"), ("GET", "HmacSHA1")]
    for index, (method, sign) in enumerate(kinds if options.all else kinds[:1]):
        drive(options, key, method, sign, f"cam-{index}-{int(time.time())}")
    failures(options, key, reader)
    print("all right", file=sys.stderr)


main()
