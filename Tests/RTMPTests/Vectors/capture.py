"""Records what a foreign RTMP peer sends. Independent of the Swift code on purpose.

  capture.py listen PORT FILE [simple|digest]   a bare server; FILE gets every byte the client sent
  capture.py connect HOST PORT FILE simple|digest0|digest1 [publish|play NAME]   a bare client; FILE gets every byte the server sent
  capture.py list FILE                          the messages after the handshake: type, message stream, timestamp, length, name

With a digest, FILE.random and FILE.sent hold the random bytes drawn and all that this side sent in the handshake.
"""
import hashlib, hmac, os, socket, struct, sys, time

TAIL = bytes.fromhex("f0eec24a8068bee82e00d0d1029e7e576eec5d2d29806fab93b8e636cfeb31ae")
CLIENT = b"Genuine Adobe Flash Player 001"
SERVER = b"Genuine Adobe Flash Media Server 001"


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def offset(p, scheme):
    at = 772 if scheme else 8
    return sum(p[at:at + 4]) % 728 + at + 4


def sign(p, scheme, key):
    o = offset(p, scheme)
    return p[:o] + mac(key, p[:o] + p[o + 32:]) + p[o + 32:]


def find(p, key):
    for scheme in (0, 1):
        o = offset(p, scheme)
        if mac(key, p[:o] + p[o + 32:]) == p[o:o + 32]:
            return scheme, p[o:o + 32]


def answer(body, digest, key):
    return body + mac(mac(key + TAIL, digest), body)


class Peer:
    def __init__(self, sock, path):
        self.sock, self.log, self.path = sock, open(path, "wb"), path
        self.chunk, self.streams, self.out = 128, {}, 128

    def read(self, count):
        got = b""
        while len(got) < count:
            part = self.sock.recv(count - len(got))
            if not part:
                raise EOFError
            self.log.write(part)
            got += part
        return got

    def message(self):
        while True:
            first = self.read(1)[0]
            fmt, cs = first >> 6, first & 63
            if cs == 0:
                cs = 64 + self.read(1)[0]
            s = self.streams.setdefault(cs, {"buf": b"", "len": 0, "type": 0, "ext": False})
            if fmt < 3:
                h = self.read((11, 7, 3)[fmt])
                if fmt < 2:
                    s["len"], s["type"] = int.from_bytes(h[3:6], "big"), h[6]
                s["ext"] = h[:3] == b"\xff\xff\xff"
            if s["ext"]:
                self.read(4)
            s["buf"] += self.read(min(self.chunk, s["len"] - len(s["buf"])))
            if len(s["buf"]) == s["len"]:
                body, s["buf"] = s["buf"], b""
                if s["type"] == 1:
                    self.chunk = struct.unpack(">I", body)[0]
                return s["type"], body

    def send(self, kind, body, stream=0, cs=3):
        parts = [body[i:i + self.out] for i in range(0, len(body), self.out)]
        head = bytes([cs]) + bytes(3) + len(body).to_bytes(3, "big") + bytes([kind]) + struct.pack("<I", stream)
        self.sock.sendall(head + bytes([0xC0 | cs]).join(parts))


def text(s):
    return b"\x02" + struct.pack(">H", len(s)) + s.encode()


def number(v):
    return b"\0" + struct.pack(">d", v)


def obj(**k):
    return b"\x03" + b"".join(struct.pack(">H", len(a)) + a.encode() + text(b) for a, b in k.items()) + b"\0\0\x09"


def listen(port, path, kind):
    srv = socket.socket()
    srv.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    srv.bind(("127.0.0.1", port))
    srv.listen(1)
    srv.settimeout(20)
    p = Peer(srv.accept()[0], path)
    p.sock.settimeout(6)
    p.read(1)
    c1 = p.read(1536)
    found = find(c1, CLIENT)
    print("client", c1[4:8].hex(), "scheme", found and found[0])
    if kind == "digest" and found:
        first, second = os.urandom(1536), os.urandom(1536)
        s1 = sign(bytes(4) + bytes([4, 5, 0, 1]) + first[8:], found[0], SERVER)
        sent = b"\x03" + s1 + answer(second[:1504], found[1], SERVER)
        open(path + ".random", "wb").write(first + second)
        open(path + ".sent", "wb").write(sent)
        p.sock.sendall(sent)
        o = offset(s1, found[0])
        c2 = p.read(1536)
        print("c2 signed:", c2[1504:] == mac(mac(CLIENT + TAIL, s1[o:o + 32]), c2[:1504]))
    else:
        p.sock.sendall(b"\x03" + bytes(1536) + c1)
        p.read(1536)
    try:
        while True:
            kind, body = p.message()
            if kind not in (20, 17):
                continue
            name = body[3:3 + body[2]].decode()
            tx = struct.unpack(">d", body[4 + body[2]:12 + body[2]])[0]
            print(name, tx)
            if name == "connect":
                p.send(5, struct.pack(">I", 2500000), cs=2)
                p.send(6, struct.pack(">IB", 2500000, 2), cs=2)
                p.send(20, text("_result") + number(tx) + obj(fmsVer="FMS/3,5,1,525")
                       + obj(level="status", code="NetConnection.Connect.Success", description="ok"))
            elif name == "createStream":
                p.send(20, text("_result") + number(tx) + b"\x05" + number(1))
            elif name == "publish":
                p.send(20, text("onStatus") + number(0) + b"\x05" + obj(level="status", code="NetStream.Publish.Start", description="x"), 1)
            elif name == "play":
                p.send(20, text("onStatus") + number(0) + b"\x05" + obj(level="status", code="NetStream.Play.Start", description="x"), 1)
                time.sleep(0.5)
                p.send(20, text("onStatus") + number(0) + b"\x05" + obj(level="status", code="NetStream.Play.Stop", description="x"), 1)
    except Exception as e:
        print("end", repr(e))
    p.log.close()


def connect(host, port, path, kind, role=None, name="cam"):
    p = Peer(socket.create_connection((host, port)), path)
    p.sock.settimeout(4)
    first, second = os.urandom(1536), os.urandom(1536)
    if kind == "simple":
        c1 = bytes(8) + first[8:]
    else:
        c1 = sign(bytes(4) + bytes([10, 0, 45, 2]) + first[8:], int(kind[-1]), CLIENT)
    p.sock.sendall(b"\x03" + c1)
    p.read(1)
    s1, s2 = p.read(1536), p.read(1536)
    found = kind != "simple" and find(s1, SERVER)
    if found:
        o = offset(c1, int(kind[-1]))
        print("server scheme", found[0], "s2 signed:", s2[1504:] == mac(mac(SERVER + TAIL, c1[o:o + 32]), s2[:1504]))
        c2 = answer(second[:1504], found[1], CLIENT)
    else:
        print("simple answer; echo:", s2[8:] == c1[8:], s1[4:8].hex())
        c2 = s1
    p.sock.sendall(c2)
    open(path + ".random", "wb").write(first + second)
    open(path + ".sent", "wb").write(b"\x03" + c1 + c2)
    if role is None:
        p.log.close()
        return
    try:
        p.send(20, text("connect") + number(1) + obj(app="live", tcUrl="rtmp://%s/live" % host, flashVer="LNX 9,0,124,2"))
        p.send(20, text("createStream") + number(2) + b"\x05")
        asked = False
        while True:
            kind, body = p.message()
            if kind == 20:
                print(body[3:3 + body[2]])
            if kind == 20 and body[3:10] == b"_result" and body[11:19] == struct.pack(">d", 2):
                p.send(20, text(role) + number(0 if role == "play" else 3) + b"\x05" + text(name)
                       + (b"" if role == "play" else text("live")), 1, cs=8)
    except Exception as e:
        print("end", repr(e))
    p.log.close()


def messages(data):
    streams, chunk, i = {}, 128, 0
    while i < len(data):
        fmt, cs = data[i] >> 6, data[i] & 63
        i += 1
        if cs == 0:
            cs, i = 64 + data[i], i + 1
        elif cs == 1:
            cs, i = 64 + data[i] + 256 * data[i + 1], i + 2
        s = streams.setdefault(cs, {"time": 0, "field": 0, "len": 0, "type": 0, "stream": 0, "buf": b"", "ext": False})
        if fmt < 3:
            size = (11, 7, 3)[fmt]
            h, i = data[i:i + size], i + size
            field = int.from_bytes(h[:3], "big")
            s["ext"] = field == 0xFFFFFF
            if fmt < 2:
                s["len"], s["type"] = int.from_bytes(h[3:6], "big"), h[6]
            if fmt == 0:
                s["stream"] = struct.unpack("<I", h[7:])[0]
            if s["ext"]:
                field, i = struct.unpack(">I", data[i:i + 4])[0], i + 4
            s["time"], s["field"] = field if fmt == 0 else s["time"] + field, field
        else:
            if s["ext"] and data[i:i + 4] == struct.pack(">I", s["field"]):
                i += 4
            if not s["buf"]:
                s["time"] += s["field"]
        take = min(chunk, s["len"] - len(s["buf"]))
        s["buf"], i = s["buf"] + data[i:i + take], i + take
        if len(s["buf"]) < s["len"]:
            continue
        body, s["buf"] = s["buf"], b""
        if s["type"] == 1:
            chunk = struct.unpack(">I", body)[0]
        name = body[3:3 + body[2]].decode() if s["type"] in (18, 20) else ""
        yield s["type"], s["stream"], s["time"] % 2**32, len(body), name


if __name__ == "__main__":
    if sys.argv[1] == "list":
        for row in messages(open(sys.argv[2], "rb").read()[3073:]):
            print(*row)
    elif sys.argv[1] == "listen":
        listen(int(sys.argv[2]), sys.argv[3], (sys.argv[4:] or ["simple"])[0])
    else:
        connect(sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
