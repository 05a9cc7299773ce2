import Crypto
import Support

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The signature of a request by one of the vendor's three methods, checked over the bytes as received. Pure.
///
/// As the vendor's SDKs use it, TC3-HMAC-SHA256 signs Content-Type, Host and the payload, but not the action. Anybody who can read a request on its
/// way can send its body again as another action for five minutes; TLS prevents the reading. Equal requests within a second have equal signatures, so
/// a repeated signature is not refused.
package struct TencentSignature: Sendable {
    /// The key's id, as given.
    package let keyID: String
    package let action: String
    private let version: String?
    private let timestamp: Int64
    private let form: Form

    private enum Form: Sendable {
        case tc3(TC3)
        /// The decoded parameters without the signature; and the digest that `SignatureMethod` names.
        case v1(parameters: [(name: String, value: String)], isSHA256: Bool, signature: [UInt8])
    }

    private struct TC3: Sendable {
        let date: String
        let service: String
        let names: [String]
        let signature: String
        let isUnsignedPayload: Bool
    }

    package static let version = "2018-08-01"
    private static let service = "live"
    /// Seconds by which the client's clock may differ, either way.
    package static let skewSeconds: Int64 = 300

    /// Parses the request's signature; nothing is checked against a key yet.
    package init(_ request: TencentRequest) throws(TencentError) {
        let (authorization, action) = (try request.header("authorization"), try request.header("x-tc-action"))
        // A form with its own signature may carry that header too; then its parameter counts.
        if authorization != nil || (action != nil && !Self.hasSignature(request)) {
            try self.init(tc3: request)
        } else {
            try self.init(v1: request)
        }
        guard (1...128).contains(self.keyID.utf8.count) else { throw TencentError(.secretIDNotFound, "The SecretId is unknown.") }
    }

    private init(tc3 request: TencentRequest) throws(TencentError) {
        guard let text = try request.header("authorization"), let parts = Self.parse(text) else {
            throw TencentError(
                .invalidAuthorization,
                "The Authorization header is not TC3-HMAC-SHA256 Credential=…/date/service/tc3_request, SignedHeaders=…, Signature=….")
        }
        self.keyID = parts.id
        guard let action = try request.header("x-tc-action"), !action.isEmpty else {
            throw TencentError(.missing, "The header X-TC-Action is missing.")
        }
        self.action = action
        self.version = try request.header("x-tc-version")
        guard parts.names.contains("content-type"), parts.names.contains("host"), Set(parts.names).count == parts.names.count,
            // Old SDKs use the first part of the host as the service.
            parts.service == Self.service || request.host.split(separator: ".").first.map(String.init) == parts.service
        else {
            throw TencentError(
                .invalidAuthorization,
                "The signature's scope is wrong; expected the service live, and content-type and host as signed headers.")
        }
        self.timestamp = try Self.seconds(try request.header("x-tc-timestamp"), "X-TC-Timestamp")
        if let token = try request.header("x-tc-token"), !token.isEmpty { throw Self.noTokens }
        let payload = try request.header("x-tc-content-sha256")
        self.form = .tc3(
            TC3(
                date: parts.date, service: parts.service, names: parts.names, signature: parts.signature,
                isUnsignedPayload: payload == Self.unsigned))
    }

    private static func hasSignature(_ request: TencentRequest) -> Bool {
        let form = request.method == .get ? request.query : String(validating: request.body, as: UTF8.self) ?? ""
        return form.split(separator: "&").contains { $0.hasPrefix("Signature=") }
    }

    private static let unsigned = "UNSIGNED-PAYLOAD"

    private init(v1 request: TencentRequest) throws(TencentError) {
        let source: String
        switch request.method {
        case .get: source = request.query
        case .post:
            guard request.query.isEmpty, let text = String(validating: request.body, as: UTF8.self) else {
                throw TencentError(.invalid, "Expected a form in the body, in UTF-8, and no query.")
            }
            source = text
        }
        var pairs = try TencentForm.pairs(source)
        func value(_ name: String) -> String? { pairs.first { $0.name == name }?.value }
        guard let action = value("Action"), !action.isEmpty else { throw TencentError(.missing, "Action is missing.") }
        guard let id = value("SecretId") else { throw TencentError(.missing, "SecretId is missing.") }
        guard let signature = value("Signature"), let bytes = Data(base64Encoded: signature) else {
            throw TencentError(.invalidAuthorization, "Signature is missing or not base64.")
        }
        if let token = value("Token"), !token.isEmpty { throw Self.noTokens }
        self.action = action
        self.keyID = id
        self.version = value("Version")
        self.timestamp = try Self.seconds(value("Timestamp"), "Timestamp")
        let isSHA256 = value("SignatureMethod") == "HmacSHA256"
        pairs.removeAll { $0.name == "Signature" }
        self.form = .v1(parameters: pairs, isSHA256: isSHA256, signature: Array(bytes))
    }

    private static let noTokens = TencentError(.tokenWrong, "This server gives out no temporary credentials, so it takes no token.")

    private static func seconds(_ text: String?, _ name: String) throws(TencentError) -> Int64 {
        guard let text else { throw TencentError(.missing, "\(name) is missing.") }
        guard (1...11).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }), let seconds = Int64(text) else {
            throw TencentError(.invalid, "\(name) is no time; expected seconds since 1970.")
        }
        return seconds
    }

    // MARK: - Authorization

    private typealias Parts = (id: String, date: String, service: String, names: [String], signature: String)

    private static func parse(_ text: String) -> Parts? {
        let pattern =
            #/^TC3-HMAC-SHA256\s+Credential=([^,\s]+)/(\d{4}-\d\d-\d\d)/([^/,\s]+)/tc3_request\s*,\s*SignedHeaders=([a-z0-9;\-]+)\s*,\s*Signature=([0-9a-f]{64})$/#
        guard text.utf8.count <= 2_048, let match = text.wholeMatch(of: pattern) else { return nil }
        return (
            String(match.1), String(match.2), String(match.3),
            match.4.split(separator: ";", omittingEmptySubsequences: false).map(String.init), String(match.5)
        )
    }

    // MARK: - Checking

    /// Checks the time, the signature and the version, in this order. `nowSeconds` is the wall clock, since 1970.
    package func check(_ request: TencentRequest, secret: String, nowSeconds: Int64) throws(TencentError) {
        let skew = nowSeconds.subtractingReportingOverflow(self.timestamp)
        guard !skew.overflow, skew.partialValue.magnitude <= UInt64(Self.skewSeconds) else {
            throw TencentError(
                .signatureExpired,
                "The request's time differs from the server's by more than \(Self.skewSeconds) s; the server's is \(nowSeconds).")
        }
        let isRight =
            switch self.form {
            case .tc3(let form): try self.isRight(form, request, secret)
            case .v1(let parameters, let isSHA256, let signature): self.isRight(parameters, isSHA256, signature, request, secret)
            }
        guard isRight else { throw TencentError(.signatureWrong, "The signature does not fit the request and the key.") }
        guard self.version == Self.version else {
            throw TencentError(
                .noSuchVersion, "There is no version \(self.version?.prefix(40) ?? "without a name"); expected \(Self.version).")
        }
    }

    private func isRight(_ form: TC3, _ request: TencentRequest, _ secret: String) throws(TencentError) -> Bool {
        guard form.date == Instant.text(self.timestamp * 1_000).prefix(10) else { return false }
        let payload: [UInt8] =
            form.isUnsignedPayload ? Array(Self.unsigned.utf8) : request.method == .get ? [] : request.body
        var signed: [(name: String, value: String)] = []
        for name in form.names {
            let value = name == "host" ? TencentForm.trimmed(request.host) : try request.header(name)
            guard let value else { return false }
            signed.append((name, value))
        }
        let key = Self.code(
            Self.code(Self.code(Array("TC3\(secret)".utf8), form.date), form.service), "tc3_request")
        // SDKs sign values as they are; the vendor's documentation puts them in lower case.
        return [{ $0 }, { $0.lowercased() }].contains { (fold: (String) -> String) in
            let canonical =
                "\(request.method.rawValue)\n/\n\(request.query)\n"
                + signed.map { "\($0.name):\(fold($0.value))\n" }.joined() + "\n\(form.names.joined(separator: ";"))\n"
                + SecretText.hex(SHA256.hash(data: payload))
            let text =
                "TC3-HMAC-SHA256\n\(self.timestamp)\n\(form.date)/\(form.service)/tc3_request\n"
                + SecretText.hex(SHA256.hash(data: Array(canonical.utf8)))
            return SecretText.isEqual(Array(SecretText.hex(Self.code(key, text)).utf8), Array(form.signature.utf8))
        }
    }

    private static func code(_ key: [UInt8], _ text: String) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: SymmetricKey(data: key)))
    }

    private func isRight(
        _ parameters: [(name: String, value: String)], _ isSHA256: Bool, _ signature: [UInt8], _ request: TencentRequest, _ secret: String
    ) -> Bool {
        let sorted = parameters.map { (name: $0.name.replacing("_", with: "."), value: $0.value) }
            .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        let text = Array(
            ("\(request.method.rawValue)\(TencentForm.trimmed(request.host))/?"
                + sorted.map { "\($0.name)=\($0.value)" }.joined(separator: "&"))
                .utf8)
        let key = SymmetricKey(data: Array(secret.utf8))
        let expected =
            isSHA256
            ? Array(HMAC<SHA256>.authenticationCode(for: text, using: key))
            : Array(HMAC<Insecure.SHA1>.authenticationCode(for: text, using: key))
        return SecretText.isEqual(expected, signature)
    }

    // MARK: - Parameters

    /// The action's parameters.
    package func fields(_ request: TencentRequest) throws(TencentError) -> TencentFields {
        guard request.method == .post || request.body.isEmpty else {
            throw TencentError(.invalid, "A GET has no body; this one has \(request.body.count) bytes.")
        }
        switch (self.form, request.method) {
        case (.v1(let parameters, _, _), _): return TencentFields(form: parameters)
        case (.tc3, .get): return TencentFields(form: try TencentForm.pairs(request.query))
        case (.tc3, .post):
            let value: JSONValue
            do {
                value = try JSONParser.parse(request.body)
            } catch {
                throw TencentError(.invalid, "The body is not JSON: \(error).")
            }
            guard case .object(let members) = value else {
                throw TencentError(.invalid, "The body is \(value.kind); expected a JSON object.")
            }
            return TencentFields(members)
        }
    }
}
