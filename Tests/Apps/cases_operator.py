"""Keys, addresses, TLS, requests that are wrong on the wire, gatherings by the command, and broadcasters: cases as in cases.py."""
import asyncio
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import signed
import tools
from cases import key
from registry import case
from server import wait_for


def command(server, *arguments, status=0):
    """The output of `earshot`, run on the server's data directory or with its address."""
    done = subprocess.run([server.binary, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == status, f"{arguments}: {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def made(server, name, role="ops"):
    with open(key(server, name, role), encoding="utf-8") as file:
        return json.load(file)


@case
def keys(server):
    """A key has a share of calls of its own, is listed without its secret, and is worth nothing once it is revoked."""
    data = ["--data", os.path.join(server.folder, "data")]
    shop, other = made(server, "shop"), made(server, "other", "backend")
    assert "exists already" in command(server, "keys", "create", "shop", "--role", "backend", *data, status=4)
    listed = json.loads(command(server, "keys", "list", "--json", *data))
    assert {row["name"]: row["role"] for row in listed["list"]} == {"shop": "ops", "other": "backend"}, listed
    assert not any(each["secretKey"] in json.dumps(listed) for each in (shop, other))
    assert signed.call(server.http, shop)["StreamState"] == "inactive"
    # Five a second, and ten at once.
    begin = time.monotonic()
    answers = [signed.call(server.http, shop) for _ in range(40)]
    allowed = 10 + 5 * (time.monotonic() - begin) + 1
    taken = [answer for answer in answers if answer != "RequestLimitExceeded"]
    assert 9 <= len(taken) <= allowed and all("StreamState" in answer for answer in taken), answers
    assert signed.call(server.http, other)["StreamState"] == "inactive", "the other key has its own share"
    assert "is revoked" in command(server, "keys", "revoke", "shop", *data)
    wait_for("the pace", lambda: signed.call(server.http, other) != "RequestLimitExceeded")
    assert signed.call(server.http, shop) == "AuthFailure.SecretIdNotFound"
    assert signed.call(server.http, other)["StreamState"] == "inactive"
    assert "was revoked before" in command(server, "keys", "revoke", shop["secretId"], *data)
    assert "there is no key" in command(server, "keys", "revoke", "nobody", *data, status=3)
    # The name is free again, and the new key is another.
    again = made(server, "shop")
    assert again["secretId"] != shop["secretId"] and signed.call(server.http, again)["StreamState"] == "inactive"
    trail = [(line["operation"], line["via"]) for line in server.api("audit?limit=50")["list"]]
    assert trail == [("createKey", "cli"), ("revokeKey", "cli"), ("createKey", "cli"), ("createKey", "cli")], trail
    assert not any(each["secretKey"] in server.log() for each in (shop, other, again))


keys.settings = {"EARSHOT_API_RATE_LIMIT": "5"}


@case
def cloud_from(server):
    """Only the addresses that the settings name may call, whatever their key."""
    answer = signed.send(server.http, signed.tc3(server.http, made(server, "shop"), b"{}"), b"{}")
    assert answer["Error"]["Code"] == "UnauthorizedOperation" and "apps.tencent.from" in answer["Error"]["Message"], answer


cloud_from.settings = {"EARSHOT_APPS_TENCENT_FROM": "192.0.2.0/24"}


@case
def cloud_domains(server):
    """Only the domains that the settings name."""
    shop = made(server, "shop")
    assert signed.call(server.http, shop)["StreamState"] == "inactive"
    found = signed.call(server.http, shop, {**signed.FIELDS, "DomainName": "other.example.com"})
    assert found == "ResourceNotFound.PushDomainNoRecord", found


cloud_domains.settings = {"EARSHOT_APPS_TENCENT_DOMAINS": "push.example.com"}


@case
def cloud_wire(server):
    """Requests that no SDK makes: each has the vendor's envelope and code, one line of the log stands for many, and figures count them."""
    host, shop, reader = server.http, made(server, "shop"), made(server, "reader", "backend")

    def code(headers, body=b"", method="POST", target="/"):
        answer = signed.send(host, headers, body, method, target)
        return answer.get("Error", {}).get("Code", "")

    body = json.dumps(signed.FIELDS).encode()
    right = signed.tc3(host, shop, body)
    # An equal request may come twice: SDKs send it again when the answer was lost.
    assert (code(right, body), code(right, body)) == ("", "")
    for name, value in [("Authorization", right[-1][1]), ("X-TC-Action", signed.ACTION), ("X-TC-Timestamp", dict(right)["X-TC-Timestamp"]),
                        ("Content-Type", "application/json")]:
        found = code([*right, (name, value)], body)
        assert found.startswith(("AuthFailure", "InvalidParameter")), f"{name} twice: {found}"
    # Later than the server by more than what passes on the way.
    for ago in (-330, 301):
        assert code(signed.tc3(host, shop, body, now=time.time() - ago), body) == "AuthFailure.SignatureExpire", ago
    # A body of just the largest size, and one byte more.
    full = body[:-1] + b', "Pad": "' + b"x" * ((1 << 20) - len(body) - 11) + b'"}'
    assert len(full) == 1 << 20
    assert code(signed.tc3(host, shop, full), full) == "UnknownParameter", "it is read, and Pad is no parameter"
    assert code(signed.tc3(host, shop, full + b" "), full + b" ") == "RequestSizeLimitExceeded"
    # GET has no body, by either signature.
    query = "AppName=live&DomainName=push.example.com&StreamName=cam-x"
    assert code(signed.tc3(host, shop, method="GET", query=query), b"", "GET", f"/?{query}") == ""
    assert code(signed.tc3(host, shop, method="GET", query=query), b"{}", "GET", f"/?{query}") == "InvalidParameter"
    target = f"/?{signed.v1_query(host, shop)}"
    assert code([("Host", host)], b"", "GET", target) == ""
    assert code([("Host", host)], b"{}", "GET", target) == "InvalidParameter"
    # A change that the key's role may not is refused, and stands in the audit with its caller.
    assert signed.call(host, reader, action="DropLiveStream") == "UnauthorizedOperation"
    line = wait_for("the line", lambda: next((line for line in server.api("audit?limit=20")["list"] if line["token"] == "reader"), None))
    assert (line["operation"], line["result"], line["via"]) == ("DropLiveStream", "UnauthorizedOperation", "tencent"), line
    # Many wrong signatures: a line for the first, and a count of the rest in a later one.
    wrong = {**shop, "secretKey": "x" * 32}
    begin = time.monotonic()
    answers = [signed.call(host, wrong) for _ in range(200)]
    assert set(answers) <= {"AuthFailure.SignatureFailure", "RequestLimitExceeded"}, set(answers)
    lines = [line for line in server.log().splitlines() if "A call of the cloud's API was refused" in line and "SignatureFailure" in line]
    assert 1 <= len(lines) <= time.monotonic() - begin + 3, f"{len(lines)} lines"
    request = urllib.request.Request(f"http://{host}/metrics", headers={"Authorization": f"Bearer {server.token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        page = answer.read().decode()
    counted = dict(re.findall(r'earshot_tencent_calls_total\{code="([^"]*)"\} (\d+)', page))
    assert int(counted["RequestSizeLimitExceeded"]) == 1 and int(counted["UnauthorizedOperation"]) == 1, counted
    assert int(counted["AuthFailure.SignatureFailure"]) == answers.count("AuthFailure.SignatureFailure"), counted


@case
def cloud_tls(server):
    """The vendor's SDK, a page's socket and the address of a channel over HTTPS, with a certificate that the client checks."""
    folder = tools.packages("tencent-3.1.195", "tencentcloud-sdk-python-live==3.1.195")
    made(server, "shop")
    pem = server.environment["EARSHOT_RTMPS_CERTIFICATE"]
    with open(os.path.join(server.folder, "banner"), encoding="utf-8") as file:
        https = re.search(r"https://127\.0\.0\.1:(\d+)", file.read())[1]
    tools.python(folder, "cloud_tls.py", f"localhost:{https}", os.path.join(server.folder, "shop.json"), pem, timeout=60)
    # HTTP/2 has no Host header, but the same name in :authority.
    host = f"localhost:{https}"
    with open(os.path.join(server.folder, "shop.json"), encoding="utf-8") as file:
        shop = json.load(file)
    body = json.dumps(signed.FIELDS)
    headers = [part for name, value in signed.tc3(host, shop, body.encode()) if name != "Host" for part in ("-H", f"{name}: {value}")]
    curl = ["curl", "-sS", "--noproxy", "*", "--http2", "--cacert", pem, "-w", "\n%{http_version}", *headers, "-d", body, f"https://{host}/"]
    answer, version = subprocess.run(curl, capture_output=True, text=True, timeout=30, check=True).stdout.rsplit("\n", 1)
    assert version == "2" and json.loads(answer)["Response"].get("StreamState") == "inactive", (version, answer)
    server.api("rooms", {"roomId": "tls"})
    context = ssl.create_default_context(cafile=pem)
    request = urllib.request.Request(
        f"https://{host}/api/v1/rooms/tls/channel-token", b'{"userId": "ann"}', {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        url = json.loads(answer.read())["data"]["url"]
    assert url.startswith("wss://live.example.com/channel?token="), url
    url = url.replace("live.example.com", host)
    peers = tools.packages("aiortc-1.16.0", "aiortc==1.16.0", "websockets==15.0.1", "numpy")
    said = tools.python(peers, "sockets_tls.py", url, f"wss://{host}/mesh", pem, timeout=60)
    assert said.split() == ["hello", "_peers"], said


cloud_tls.has_certificate = True
cloud_tls.settings = {"EARSHOT_URLS_HTTP": "https://live.example.com"}


@case
def tickets_kill(server):
    """Requests that were acknowledged are there after kill -9, are answered once, or told to have expired."""
    server.api("rooms", {"roomId": "walk", "policy": {"neverStarted": 3600}})
    folder = tools.packages("aiortc-1.16.0", "aiortc==1.16.0", "websockets==15.0.1", "numpy")
    sys.path.insert(0, folder)
    import websockets  # pylint: disable=import-outside-toplevel

    def url(user):
        return server.api("rooms/walk/channel-token", {"userId": user, "role": "host" if user == "host" else "member"})["url"]

    async def until(socket, kind, **fields):
        """The next frame of this kind with these fields."""
        async with asyncio.timeout(60):
            while True:
                frame = json.loads(await socket.recv())
                if frame["type"] == kind and all(frame.get(name) == value for name, value in fields.items()):
                    return frame

    async def ask(first, last):
        async with websockets.connect(url("host"), proxy=None) as host, websockets.connect(url("ann"), proxy=None) as ann:
            await until(host, "hello")
            for number in range(first, last):
                await ann.send(json.dumps({"type": "ticket.open", "ref": number, "to": "host", "kind": f"k{number}", "payload": number}))
                await until(ann, "ack", ref=number)
            # At any time after the last acknowledgement.
            server.stop(signal.SIGKILL)

    async def answered():
        async with websockets.connect(url("host"), proxy=None) as host, websockets.connect(url("ann"), proxy=None) as ann:
            tickets = (await until(host, "hello"))["state"]["tickets"]
            assert {ticket["payload"] for ticket in tickets} == set(range(8)), tickets
            assert len((await until(ann, "hello"))["state"]["tickets"]) == 8
            for number, ticket in enumerate(tickets):
                answer = {"type": "ticket.answer", "ticketId": ticket["ticketId"], "approved": number % 2 == 0}
                await host.send(json.dumps({**answer, "ref": number}))
                await until(host, "ack", ref=number)
                await until(ann, "ticket", action="approved" if number % 2 == 0 else "rejected", ticketId=ticket["ticketId"])
                await host.send(json.dumps({**answer, "ref": 100 + number}))
                assert (await until(host, "error", ref=100 + number))["code"] == "no_such_ticket"
            # One more, which the next kill leaves open until it expires.
            await ann.send(json.dumps({"type": "ticket.open", "ref": 200, "to": "host", "kind": "late"}))
            await until(ann, "ack", ref=200)
            server.stop(signal.SIGKILL)

    async def expired():
        async with websockets.connect(url("ann"), proxy=None) as ann:
            tickets = (await until(ann, "hello"))["state"]["tickets"]
            assert [ticket["kind"] for ticket in tickets] == ["late"], tickets
            assert (await until(ann, "ticket", action="expired"))["ticketId"] == tickets[0]["ticketId"]

    for first in (0, 4):
        asyncio.run(ask(first, first + 4))
        server.start()
    asyncio.run(answered())
    server.start()
    asyncio.run(expired())
    kinds = [event["kind"] for event in server.api("rooms/walk/events?limit=1000")["list"] if event["kind"].startswith("ticket.")]
    assert kinds.count("ticket.approved") == 4 and kinds.count("ticket.rejected") == 4 and kinds.count("ticket.expired") == 1, kinds


tickets_kill.settings = {"EARSHOT_APPS_OFFLINE": "10m"}


@case
def gatherings_command(server):
    """`earshot gatherings`: listed page by page, shown with people and queue, ended; who was in it is told."""
    folder = tools.packages("aiortc-1.16.0", "aiortc==1.16.0", "websockets==15.0.1", "numpy")
    sys.path.insert(0, folder)
    import websockets  # pylint: disable=import-outside-toplevel

    options = ["--server", f"http://{server.http}", "--token-file", os.path.join(server.folder, "data", "admin-token")]

    async def life():
        for room in ("den", "hall"):
            server.api("rooms", {"roomId": room, "policy": {"neverStarted": 3600}})
        urls = [server.api(f"rooms/{room}/channel-token", {"userId": user, "name": f"名 {user}"})["url"] for room, user in (("den", "ann"), ("hall", "bob"))]
        async with websockets.connect(urls[0], proxy=None) as ann, websockets.connect(urls[1], proxy=None) as bob:
            assert json.loads(await ann.recv())["type"] == "hello"
            assert json.loads(await bob.recv())["type"] == "hello"
            await ann.send(json.dumps({"type": "queue.offer", "ref": 1, "value": "first"}))
            while json.loads(await ann.recv())["type"] != "ack":
                pass
            listed = command(server, "gatherings", "list", *options)
            assert re.search(r"plain-den +plain +den +1 +1 ", listed) and "plain-hall" in listed, listed
            assert json.loads(command(server, "gatherings", "list", "--kind", "mesh", "--json", *options))["total"] == 0
            assert command(server, "gatherings", "list", "--quiet", "--limit", "1", *options).split() == ["plain-den"]
            assert command(server, "gatherings", "list", "--quiet", "--all", *options).split() == ["plain-den", "plain-hall"]
            shown = command(server, "gatherings", "show", "plain-den", *options)
            assert all(text in shown for text in ("plain-den", "ann", "名 ann", "first")), shown
            assert "has ended" in command(server, "gatherings", "end", "plain-den", *options)
            frames = []
            try:
                async for frame in ann:
                    frames.append(json.loads(frame))
            except websockets.ConnectionClosedError:
                pass  # 4004 is not among the codes of a usual end.
            assert frames[-1] == {"type": "closed", "reason": "ended"} and ann.close_code == 4004, (frames, ann.close_code)
            await bob.send(json.dumps({"type": "queue.list", "ref": 2}))
            assert json.loads(await bob.recv())["ref"] == 2, "others go on"
        command(server, "gatherings", "show", "plain-den", *options, status=3)
        command(server, "gatherings", "end", "plain-den", *options, status=3)

    asyncio.run(life())
    line = next(line for line in server.api("audit?limit=20")["list"] if line["operation"] == "endGathering" and line["result"] == "ok")
    assert (line["object"], line["via"]) == ("gathering/plain-den", "cli"), line


@case
def broadcast(server):
    """A broadcaster's ffmpeg that pauses, goes on, is killed and comes back with its picture turned: what its reports say and bring about."""
    server.api("rooms", {"roomId": "cam", "policy": {"grace": 60}})
    push = server.api("rooms/cam/push-url", {})["rtmp"]
    query = push.split("?", 1)[1]

    def report(status, query=query):
        """The answer, or the status of a refusal. A stream may be reported once a second."""
        request = urllib.request.Request(f"http://{server.http}/push/live/cam/heartbeat?{query}", json.dumps({"status": status}).encode())
        while True:
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                if error.code != 429:
                    return error.code
                time.sleep(float(error.headers["Retry-After"]))

    def reports(status, state, reason):
        answer = wait_for(f"{state} after {status}", lambda: (found := report(status))["state"] == state and found)
        assert (answer["stateReason"], answer["stop"], answer["reason"]) == (reason, False, None), answer

    def has_size(width, height):
        video = (server.api("streams/live/cam")["stream"] or {}).get("video")
        return video and (video["width"], video["height"]) == (width, height)

    reports("pushing", "created", "created")
    with tools.Device(push, "180x320") as device:
        wait_for("the upright picture", lambda: has_size(180, 320))
        reports("pushing", "live", "media")
        device.process.send_signal(signal.SIGSTOP)
        reports("paused", "interrupted", "paused")
        device.process.send_signal(signal.SIGCONT)
        reports("resumed", "live", "media")
    # Killed without a word.
    wait_for("the loss", lambda: server.api("rooms/cam")["stateReason"] == "publisherLost")
    reports("pushing", "interrupted", "publisherLost")
    with tools.Device(push, "320x180") as device:
        wait_for("the turned picture", lambda: server.is_live("cam") and has_size(320, 180))
        assert report("finished", query.replace("txSecret=", "txSecret=0")) == 401
        assert report("finished")["stop"] is False
        device.ended()
    wait_for("the end", lambda: server.api("rooms/cam")["stateReason"] == "stopped")
    server.api("rooms/cam/forbid", {"reason": "a rest"})
    answer = report("pushing")
    assert (answer["state"], answer["stop"], answer["reason"]) == ("forbidden", True, "a rest"), answer
    assert server.log().count("A push heartbeat was refused") == 1 and query.split("txSecret=")[1][:32] not in server.log()
