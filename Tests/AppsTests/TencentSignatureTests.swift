import Crypto
import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// Signatures that the vendor's Python SDK 3.1.195 has made, and each of them with one thing changed.
@Suite struct TencentSignatureTests {
    private static let secret = "0123456789abcdefghijABCDEFGHIJ01"
    private static let body =
        #"{"AppName": "live", "DomainName": "push.example.com", "StreamName": "cam1", "Reason": "\u6d4b\u8bd5 a+b&c"}"#

    /// Signs as the vendor's recipe says, with code of its own.
    private static func signed(
        method: TencentRequest.Method = .post, host: String = "127.0.0.1:39499", query: String = "", body: String = Self.body,
        timestamp: Int64 = 1_795_238_581, service: String = "live", secret: String = Self.secret,
        names: [String] = ["content-type", "host"],
        folds: Bool = false, more: [(name: String, value: String)] = []
    ) -> TencentRequest {
        func mac(_ key: [UInt8], _ text: String) -> [UInt8] {
            Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: key)))
        }
        let date = String(Instant.text(timestamp * 1_000).prefix(10))
        let type = method == .post ? "application/json" : "application/x-www-form-urlencoded"
        let base = [
            ("content-type", type), ("x-tc-action", "ForbidLiveStream"), ("x-tc-timestamp", "\(timestamp)"), ("x-tc-version", "2018-08-01"),
        ]
        let headers = base.map { (name: $0.0, value: $0.1) } + more
        let unsigned = headers.contains { $0.name == "x-tc-content-sha256" && $0.value == "UNSIGNED-PAYLOAD" }
        let payload = unsigned ? "UNSIGNED-PAYLOAD" : method == .get ? "" : body
        let block = names.map { name in
            let value = name == "host" ? host : headers.first { $0.name == name }?.value ?? ""
            return "\(name):\(folds ? value.lowercased() : value)\n"
        }.joined()
        let canonical =
            "\(method.rawValue)\n/\n\(query)\n\(block)\n\(names.joined(separator: ";"))\n"
            + SecretText.hex(SHA256.hash(data: Array(payload.utf8)))
        let text =
            "TC3-HMAC-SHA256\n\(timestamp)\n\(date)/\(service)/tc3_request\n" + SecretText.hex(SHA256.hash(data: Array(canonical.utf8)))
        let key = mac(mac(mac(Array("TC3\(secret)".utf8), date), service), "tc3_request")
        let authorization =
            "TC3-HMAC-SHA256 Credential=AKIDlab/\(date)/\(service)/tc3_request, SignedHeaders=\(names.joined(separator: ";")),"
            + " Signature=\(SecretText.hex(mac(key, text)))"
        return TencentRequest(
            method: method, host: host, query: query, headers: headers + [(name: "authorization", value: authorization)],
            body: Array((method == .get ? "" : body).utf8))
    }

    private static let now: Int64 = 1_795_238_581

    private func code(_ request: TencentRequest, now: Int64 = Self.now) -> TencentError.Code? {
        do throws(TencentError) {
            try TencentSignature(request).check(request, secret: Self.secret, nowSeconds: now)
            return nil
        } catch {
            return error.code
        }
    }

    private func with(
        _ request: TencentRequest, host: String? = nil, query: String? = nil, body: [UInt8]? = nil, method: TencentRequest.Method? = nil,
        header: (String, String?)? = nil, added: (String, String)? = nil
    ) -> TencentRequest {
        var headers = request.headers
        if let (name, value) = header {
            headers = headers.compactMap { $0.name == name ? value.map { (name: name, value: $0) } : $0 }
        }
        if let (name, value) = added { headers.append((name: name, value: value)) }
        return TencentRequest(
            method: method ?? request.method, host: host ?? request.host, query: query ?? request.query, headers: headers,
            body: body ?? request.body)
    }

    @Test func rightOnesPass() throws {
        #expect(self.code(Self.signed()) == nil)
        #expect(self.code(Self.signed(method: .get, query: "AppName=live&Reason=a%2Bb+c")) == nil)
        #expect(self.code(Self.signed(method: .get)) == nil)
        // Old SDKs name the host's first part.
        #expect(self.code(Self.signed(service: "127")) == nil)
        #expect(self.code(Self.signed(more: [("x-tc-content-sha256", "UNSIGNED-PAYLOAD")])) == nil)
        // By the written recipe: values in lower case, and the action signed too.
        #expect(self.code(Self.signed(names: ["content-type", "host", "x-tc-action"], folds: true)) == nil)
        #expect(self.code(Self.signed(host: "LOCALHOST:1")) == nil)
        #expect(self.code(Self.signed(), now: Self.now + 300) == nil && self.code(Self.signed(), now: Self.now - 300) == nil)
        #expect(try TencentSignature(Self.signed()).action == "ForbidLiveStream")
    }

    @Test func oneChangedThingIsRefused() {
        let right = Self.signed()
        let expired = TencentError.Code.signatureExpired
        #expect(self.code(right, now: Self.now + 301) == expired && self.code(right, now: Self.now - 301) == expired)
        var body = right.body
        for index in body.indices {
            body[index] ^= 1
            #expect(self.code(self.with(right, body: body)) == .signatureWrong, "\(index)")
            body[index] ^= 1
        }
        // One bit of the signature: another digit, or none at all.
        let signed = Array((right.headers.first { $0.name == "authorization" }?.value ?? "").utf8)
        for index in signed.count - 64..<signed.count {
            for bit in 0..<7 {
                var text = signed
                text[index] ^= 1 << UInt8(bit)
                let code = self.code(self.with(right, header: ("authorization", String(decoding: text, as: UTF8.self))))
                let isDigit = "0123456789abcdef".utf8.contains(text[index])
                #expect(code == (isDigit ? .signatureWrong : .invalidAuthorization), "\(index), bit \(bit)")
            }
        }
        for changed in [
            self.with(right, body: right.body + [32]), self.with(right, body: []), self.with(right, host: "127.0.0.1"),
            self.with(right, host: "127.0.0.2:39499"), self.with(right, query: "a=b"), self.with(right, method: .get),
            self.with(right, header: ("content-type", "application/json; charset=utf-8")),
            self.with(right, header: ("x-tc-timestamp", "1795238580")),
            self.with(right, added: ("x-tc-content-sha256", "UNSIGNED-PAYLOAD")),
            Self.signed(secret: "another"),
        ] {
            #expect(self.code(changed) == .signatureWrong, "\(changed)")
        }
        let query = Self.signed(method: .get, query: "A=1&B=x+y")
        for other in ["B=x+y&A=1", "A=1&B=x%20y", "A=1&B=x+y&C=1", ""] {
            #expect(self.code(self.with(query, query: other)) == .signatureWrong, "\(other)")
        }
        #expect(self.code(Self.signed(service: "cvm")) == .invalidAuthorization)
        #expect(self.code(Self.signed(names: ["host"])) == .invalidAuthorization)
        #expect(self.code(Self.signed(more: [("x-tc-token", "t")])) == .tokenWrong)
        #expect(self.code(self.with(right, header: ("x-tc-version", "2017-03-12"))) == .noSuchVersion)
        #expect(self.code(self.with(right, header: ("x-tc-version", nil))) == .noSuchVersion)
        #expect(self.code(self.with(right, header: ("x-tc-action", nil))) == .missing)
        #expect(self.code(self.with(right, header: ("x-tc-timestamp", nil))) == .missing)
        #expect(self.code(self.with(right, header: ("x-tc-timestamp", "12e3"))) == .invalid)
        #expect(self.code(self.with(right, header: ("x-tc-timestamp", "99999999999"))) == expired)
        for twice in ["authorization", "content-type", "x-tc-timestamp", "x-tc-action"] {
            let value = right.headers.first { $0.name == twice }?.value ?? ""
            #expect(self.code(self.with(right, added: (twice, value))) == .invalidAuthorization, "\(twice)")
        }
        for text in ["SKIP", "", "Bearer x", "TC3-HMAC-SHA256 Credential=a/b/c", String(repeating: "x", count: 100_000)] {
            #expect(self.code(self.with(right, header: ("authorization", text))) == .invalidAuthorization, "\(text.prefix(40))")
        }
        let authorization = right.headers.first { $0.name == "authorization" }?.value ?? ""
        #expect(self.code(self.with(right, header: ("authorization", String(authorization.dropLast())))) == .invalidAuthorization)
        let upper = authorization.prefix(authorization.count - 64) + authorization.suffix(64).uppercased()
        #expect(self.code(self.with(right, header: ("authorization", String(upper)))) == .invalidAuthorization)
    }

    /// Captured from the SDK: HmacSHA1 and HmacSHA256, as POST and as GET.
    private static func v1(_ method: TencentRequest.Method, sha256: Bool, changed: (name: String, value: String)? = nil) -> TencentRequest {
        var pairs = [
            ("Action", "ForbidLiveStream"), ("AppName", "live"), ("Nonce", "9223372036854775807"), ("Reason", "测试 a+b&c="),
            ("SecretId", "AKIDlab"),
            ("SignatureMethod", sha256 ? "HmacSHA256" : "HmacSHA1"), ("StreamName", ""), ("Timestamp", "1795238581"),
            ("Version", "2018-08-01"),
        ]
        let host = "127.0.0.1:1"
        let text = Array("\(method.rawValue)\(host)/?\(pairs.map { "\($0.0)=\($0.1)" }.joined(separator: "&"))".utf8)
        let key = SymmetricKey(data: Array(Self.secret.utf8))
        let code =
            sha256
            ? Array(HMAC<SHA256>.authenticationCode(for: text, using: key))
            : Array(HMAC<Insecure.SHA1>.authenticationCode(for: text, using: key))
        if let changed { pairs = pairs.map { $0.0 == changed.name ? (changed.name, changed.value) : $0 } }
        func encoded(_ text: String) -> String {
            text.utf8.map { byte -> String in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: String(UnicodeScalar(byte))
                case 0x20: "+"
                default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
                }
            }.joined()
        }
        let form = (pairs + [("Signature", Self.base64(code))]).map { "\($0.0)=\(encoded($0.1))" }.joined(separator: "&")
        return TencentRequest(
            method: method, host: host, query: method == .get ? form : "", headers: [("content-type", "application/x-www-form-urlencoded")],
            body: method == .post ? Array(form.utf8) : [])
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        let text = SecretText.base64URL(bytes).replacing("-", with: "+").replacing("_", with: "/")
        return text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    }

    @Test(arguments: [TencentRequest.Method.get, .post], [true, false]) func theOlderSignatures(
        _ method: TencentRequest.Method, _ sha256: Bool
    ) throws {
        #expect(self.code(Self.v1(method, sha256: sha256)) == nil)
        for changed in [("Action", "ResumeLiveStream"), ("Reason", "x"), ("StreamName", "cam1"), ("Nonce", "1")] {
            #expect(self.code(Self.v1(method, sha256: sha256, changed: changed)) == .signatureWrong, "\(changed)")
        }
        let request = Self.v1(method, sha256: sha256)
        #expect(self.code(self.with(request, host: "127.0.0.1:2")) == .signatureWrong)
        #expect(self.code(request, now: Self.now + 301) == .signatureExpired)
        // The signed parameter counts; a header of the other method's is no part of this one.
        let headed = self.with(request, added: ("x-tc-action", "ResumeLiveStream"))
        #expect(self.code(headed) == nil)
        #expect(try TencentSignature(headed).action == "ForbidLiveStream")
        var fields = try TencentSignature(request).fields(request)
        #expect(try fields.text("Reason") == "测试 a+b&c=" && fields.text("AppName") == "live" && fields.text("StreamName") == nil)
        try fields.finish()
    }

    @Test func formsAreStrict() {
        func read(_ text: String) -> [String]? { try? TencentForm.pairs(text).map { "\($0.name)=\($0.value)" } }
        #expect(read("a=1&b=x+y%21&c=&d") == ["a=1", "b=x y!", "c=", "d="])
        for text in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2", "%C3=1"] { #expect(read(text) == nil, "\(text)") }
        #expect(read((0...200).map { "p\($0)=1" }.joined(separator: "&")) == nil)
    }
}

/// Actions and their parameters.
@Suite struct TencentActionTests {
    private func read(_ action: String, _ json: String, domains: [String] = []) -> Result<TencentAction, TencentError> {
        do throws(TencentError) {
            guard let value = try? JSONParser.parse(json.utf8), case .object(let members) = value else {
                throw TencentError(.failed, "no JSON")
            }
            return .success(try TencentAction(action, TencentFields(members), domains: domains))
        } catch {
            return .failure(error)
        }
    }

    private func code(_ action: String, _ json: String, domains: [String] = []) -> TencentError.Code? {
        if case .failure(let error) = self.read(action, json, domains: domains) { error.code } else { nil }
    }

    private let stream = #""AppName": "live", "DomainName": "push.example.com", "StreamName": "a/b""#

    @Test func whatIsRead() throws {
        #expect(try self.read("DescribeLiveStreamState", "{\(self.stream)}").get() == .state(.init(app: "live", name: "a/b")))
        #expect(
            try self.read("DescribeLiveStreamOnlineList", #"{"PageNum": "3", "PageSize": 300000, "AppName": ""}"#).get()
                == .onlineList(app: nil, name: nil, .init(number: 3, size: 300_000)))
        #expect(
            try self.read("ForbidLiveStream", #"{\#(self.stream), "ResumeTime": "2026-12-01T00:00:00Z", "Reason": null}"#).get()
                == .forbid(.init(app: "live", name: "a/b"), untilMs: 1_796_083_200_000, reason: ""))
        guard
            case .success(.history(let history, let page, .events)) = self.read(
                "DescribeLiveStreamEventList",
                #"{"StartTime": "2026-11-20T00:00:00Z", "EndTime": "2026-11-21T00:00:00Z", "IsStrict": 1, "StreamName": "x"}"#)
        else {
            Issue.record("not a history")
            return
        }
        #expect(history.isExact && !history.isAscending && !history.onlyWithMedia && page.size == 10 && history.name == "x")
        #expect(TencentAction.offered.count == 9)
        #expect(TencentAction.offered.allSatisfy { !TencentAction.unsupported.contains($0) } && TencentAction.unsupported.count > 200)
    }

    @Test func whatIsRefused() {
        #expect(self.code("DescribeLiveStreamState", "{}") == .missing)
        #expect(self.code("DescribeLiveStreamState", #"{"AppName": "live", "DomainName": "d", "StreamName": ""}"#) == .missing)
        #expect(self.code("DescribeLiveStreamState", "{\(self.stream), \"Other\": 1}") == .unknown)
        #expect(self.code("DescribeLiveStreamState", #"{"AppName": 1, "DomainName": "d", "StreamName": "s"}"#) == .invalid)
        for name in ["../x", "a?b", "a\\u0000", "x/..", String(repeating: "n", count: 300)] {
            #expect(
                self.code("DropLiveStream", #"{"AppName": "live", "DomainName": "d", "StreamName": "\#(name)"}"#) == .invalidStreamName,
                "\(name)")
        }
        #expect(self.code("DropLiveStream", #"{"AppName": "a/b", "DomainName": "d", "StreamName": "s"}"#) == .invalidStreamName)
        for fields in [#"{"PageNum": 0}"#, #"{"PageNum": -1}"#, #"{"PageSize": 9}"#, #"{"PageSize": 300001}"#] {
            #expect(self.code("DescribeLiveStreamOnlineList", fields) == .invalidValue, "\(fields)")
        }
        for fields in [#"{"PageNum": 1.5}"#, #"{"PageNum": "+1"}"#, #"{"PageNum": true}"#, #"{"PageNum": [1]}"#] {
            #expect(self.code("DescribeLiveStreamOnlineList", fields) == .invalid, "\(fields)")
        }
        #expect(self.code("CreateLiveRecord", "{}") == .unsupported && self.code("Nonsense", "{}") == .invalidAction)
        #expect(self.code("DescribeLiveStreamState", "{\(self.stream)}", domains: ["other.example.com"]) == .noSuchDomain)
        #expect(self.code("DescribeLiveStreamState", "{\(self.stream)}", domains: ["push.example.com"]) == nil)
    }

    @Test func answers() {
        #expect(TencentAnswer.success([], requestID: "r").text == #"{"Response":{"RequestId":"r"}}"#)
        #expect(
            TencentAnswer.failure(TencentError(.unsupported, "no"), requestID: "r").text
                == #"{"Response":{"Error":{"Code":"UnsupportedOperation","Message":"no"},"RequestId":"r"}}"#)
        #expect(TencentAnswer.utc(1_796_083_200_999) == "2026-12-01T00:00:00Z")
        #expect(TencentAnswer.beijing(1_796_083_200_000) == "2026-12-01 08:00:00")
        let page = TencentAnswer.page(.init(number: 2, size: 10), total: 21, "List", [])
        #expect(JSONValue.object(page).text == #"{"TotalNum":21,"TotalPage":3,"PageNum":2,"PageSize":10,"List":[]}"#)
    }
}
