package import DTLSSRTP

/// The client's side of the transport that all its tracks share (RFC 9143). A value.
package struct RemoteTransport: Sendable, Equatable {
    package let user: String
    package let password: String
    package let fingerprints: [Fingerprint]
    /// The client waits for this server's handshake (RFC 8842 §5.1); otherwise this server waits for the client's.
    package let isPassive: Bool

    /// `media`: the first section of those that are wanted.
    init(_ offer: SessionOffer, _ media: SessionOffer.Media) throws(SessionDescriptionError) {
        guard let user = media.user ?? offer.user, let password = media.password ?? offer.password else {
            throw .missing("a=ice-ufrag and a=ice-pwd")
        }
        let fingerprints = media.fingerprints.isEmpty ? offer.fingerprints : media.fingerprints
        guard !fingerprints.isEmpty else { throw .missing("a=fingerprint with sha-256, sha-384 or sha-512") }
        self.user = user
        self.password = password
        self.fingerprints = fingerprints
        self.isPassive = media.setup ?? offer.setup ?? "actpass" == "passive"
    }
}

/// The server's side of a transport.
package struct OwnTransport: Sendable {
    package var user: String
    package var password: String
    package var fingerprint: Fingerprint
    /// "192.0.2.1 8189", the addresses at which the server's port is reached, the best first.
    package var candidates: [(address: String, port: Int)]
    /// Whether these take TCP connections too.
    package var acceptsStreams = false

    package init(user: String, password: String, fingerprint: Fingerprint, candidates: [(address: String, port: Int)]) {
        self.user = user
        self.password = password
        self.fingerprint = fingerprint
        self.candidates = candidates
    }

    /// The lines of an answer before its sections. `session`: a number that tells it from others. `mids`: of the sections that are accepted.
    func head(session: UInt64, mids: [String], offer: SessionOffer) -> [String] {
        var lines = ["v=0", "o=- \(session >> 1) 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=ice-lite"]
        if !mids.isEmpty, !offer.bundle.isEmpty { lines.append("a=group:BUNDLE \(mids.joined(separator: " "))") }
        lines.append("a=msid-semantic: WMS *")
        return lines
    }

    /// The first lines of a section. `isFirst`: it names the addresses.
    func lines(_ media: SessionOffer.Media, types: [UInt8], for remote: RemoteTransport, isFirst: Bool) -> [String] {
        let port = isFirst ? self.candidates.first?.port ?? 9 : 9
        var lines = [
            "m=\(media.kind) \(port) \(media.protocolName) \(types.map(String.init).joined(separator: " "))", "c=IN IP4 0.0.0.0",
            "a=rtcp:9 IN IP4 0.0.0.0", "a=ice-ufrag:\(self.user)", "a=ice-pwd:\(self.password)",
            "a=fingerprint:\(self.fingerprint.text)", "a=setup:\(remote.isPassive ? "active" : "passive")",
        ]
        if !media.mid.isEmpty { lines.append("a=mid:\(media.mid)") }
        return lines
    }

    /// RFC 3264 §6: a rejected section has port 0.
    static func rejection(of media: SessionOffer.Media) -> [String] {
        let formats = media.formats.isEmpty ? "0" : media.formats.map { "\($0.payloadType)" }.joined(separator: " ")
        let lines = ["m=\(media.kind) 0 \(media.protocolName) \(formats)", "c=IN IP4 0.0.0.0", "a=inactive"]
        return media.mid.isEmpty ? lines : lines + ["a=mid:\(media.mid)"]
    }

    /// The addresses, the last lines of the first section.
    var candidateLines: [String] {
        var lines: [String] = []
        for (index, candidate) in self.candidates.enumerated() {
            // RFC 8445 §5.1.2.1: type preference 126 of host candidates, then their order, then component 1.
            let priority = 126 << 24 | max(0, 65_535 - index) << 8 | 255
            lines.append("a=candidate:\(index + 1) 1 udp \(priority) \(candidate.address) \(candidate.port) typ host")
        }
        for (index, candidate) in self.candidates.enumerated() where self.acceptsStreams {
            // RFC 6544 §4.2: below all of UDP, and direction preference 4 of passive candidates.
            let priority = 90 << 24 | (4 << 13 | max(0, 8_191 - index)) << 8 | 255
            let number = self.candidates.count + index + 1
            lines.append("a=candidate:\(number) 1 tcp \(priority) \(candidate.address) \(candidate.port) typ host tcptype passive")
        }
        return lines + ["a=end-of-candidates"]
    }
}
