import JWTKit
import RTMP
import ServerConfiguration
import Support

@testable import Access

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension FuzzTarget {
    /// A URL's query and the credentials in it. Secrets are not shown, nothing else is lost, and only the key's owner signs.
    static let credentials = FuzzTarget("credentials", maxLength: 512) { input in
        var input = input
        let beside = String(decoding: input.pop(Int(input.byte() & 0x3F)), as: UTF8.self)
        let query = String(decoding: input.rest, as: UTF8.self)
        let parameters = QueryParameters(query)
        let known = CredentialParameters(ServerConfig().credentials)
        let parts = query.utf8.split(separator: UInt8(ascii: "&")).map { Substring($0) }
        expect(parameters.pairs.map(\.raw) == parts, "other parts than \(parts)")
        for (text, hidesOthers) in [(known.redact(query), true), (known.redactOwn(query), false)] {
            let shown = QueryParameters(text)
            expect(shown.pairs.count == parameters.pairs.count, "another number of parameters in \(text)")
            for (pair, shown) in zip(parameters.pairs, shown.pairs) {
                let isSecret = pair.value != nil && known.checked.contains(pair.name.lowercased())
                expect(!isSecret || shown.value == "***", "\(text) shows the value of \(pair.name)")
                let isPlain = !isSecret && (!hidesOthers || (pair.name == "user" && pair.value?.contains(".") == false))
                expect(!isPlain || shown.raw == pair.raw, "\(text) hides \(pair.raw)")
            }
        }
        let rest = known.own(of: query, beside: beside)
        let left = QueryParameters(rest.query).pairs
        expect(left.allSatisfy { parameters.pairs.contains($0) }, "parameters that were not there")
        func others(_ pairs: [QueryParameters.Pair]) -> [QueryParameters.Pair] {
            pairs.filter { !["txSecret", "txTime", "token", "jwt"].contains($0.name) }
        }
        expect(others(left) == others(parameters.pairs), "other parameters than credentials were taken")
        signedURL(parameters, stream: beside)
    }

    /// A token's text, or the header and claims of one that the key's holder has signed. What is accepted holds now, and opens only what
    /// its claims name.
    static let token = FuzzTarget("token", maxLength: 2_048) { input in
        var input = input
        let isSigned = input.byte() & 1 == 1
        let text: String
        if isSigned {
            let header = input.byte() & 1 == 1 ? input.pop(Int(input.byte())) : Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8)
            let signedPart = "\(SecretText.base64URL(header)).\(SecretText.base64URL(input.rest))"
            text = "\(signedPart).\(SignedToken.signature(of: signedPart, key: keys.jwtKey))"
        } else {
            text = String(decoding: input.rest, as: UTF8.self)
        }
        let token: AccessToken
        do throws(AdmissionRefusal) {
            token = try AccessToken(signed: text, keys: keys)
            try token.checkTimes(nowSeconds: nowSeconds)
        } catch {
            expect(!error.message.isEmpty && !error.message.contains(keys.jwtKey), "\(error.message)")
            return
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        expect(parts.count == 3 && parts[2] == SignedToken.signature(of: "\(parts[0]).\(parts[1])", key: keys.jwtKey), "a stranger's token")
        expect(token.exp.value.timeIntervalSince1970 > Double(nowSeconds), "an expired token")
        expect(token.nbf.map { $0.value.timeIntervalSince1970 <= Double(nowSeconds) } ?? true, "a token of later")
        for (app, name) in [("live", "cam"), ("live", "cam-2"), ("live", "cam-9"), ("talk", "cam/me"), ("other", "cam")] {
            guard let address = try? StreamAddress(app: app, name: name) else { fatalError("\(app)/\(name)") }
            for action in [AdmissionRequest.Action.publish, .play] {
                guard (try? token.check(action, address)) != nil else { continue }
                expect(opens(token, app, name), "\(action) of \(app)/\(name) with \(token)")
                expect(action == .play || allowsPush(token, app), "a push of \(app)/\(name) with \(token)")
            }
        }
    }
}

private let nowSeconds: Int64 = 1_800_000_000
private let keys = KeyRing(
    key: "a key of pushes", backupKey: "one more of them", jwtKey: "a key of at least thirty-two bytes", webhookKey: "a key of hooks")

/// Whether each claim of the token that names something fits, and there is one.
private func opens(_ token: AccessToken, _ app: String, _ name: String) -> Bool {
    func holds(_ room: String) -> Bool { app == "talk" && name.hasPrefix("\(room)/") }
    var fits = [token.stream.map { $0 == "\(app)/\(name)" }, token.talk.map(holds)]
    fits.append(token.room.map { room in holds(room) || (app == "live" && [room, "\(room)-2"].contains(name)) })
    return fits.contains(true) && !fits.contains(false)
}

/// Whether a claim of the token allows pushes.
private func allowsPush(_ token: AccessToken, _ app: String) -> Bool {
    if let act = token.act { return act.names.contains("publish") }
    let roles = ["publisher", "host", "owner", "anchor", "device"] + (app == "talk" ? ["cohost", "guest"] : [])
    return token.role.map { roles.contains($0.lowercased()) } ?? false
}

/// Signatures of strangers are refused; one by the key is accepted, for its stream and time alone.
private func signedURL(_ parameters: QueryParameters, stream: String) {
    let (secret, time) = (parameters.all("txSecret").first ?? "", parameters.all("txTime").first)
    let isAccepted: Bool
    do throws(AdmissionRefusal) {
        let seconds = try TxSecret.check(secret, txTime: time, streamName: stream, keys: keys.publishKeys, nowSeconds: nowSeconds)
        expect(seconds > nowSeconds, "expired \(nowSeconds - seconds) s ago")
        isAccepted = true
    } catch {
        expect(!error.message.isEmpty, "a refusal without words")
        isAccepted = false
    }
    guard let time else { return expect(!isAccepted, "accepted without a time") }
    let signatures = keys.publishKeys.flatMap { key in
        TxSecret.Hash.allCases.map { TxSecret.signature(key: key, streamName: stream, txTime: time, hash: $0) }
    }
    expect(!isAccepted || signatures.contains(secret), "a stranger's signature")
    for signature in signatures {
        let seconds = try? TxSecret.check(signature, txTime: time, streamName: stream, keys: keys.publishKeys, nowSeconds: nowSeconds)
        let expected = TxSecret.seconds(time).flatMap { $0 > nowSeconds ? $0 : nil }
        expect(seconds == expected, "the key's owner gets \(seconds ?? 0) for \(time)")
    }
}
